//! Nodes without a GPU or an engine: a `docker` that prints the report of an agent, an `nvidia-smi`, a boot of their own; and the
//! programs that lead to them: `sinfo`, `srun`, `squeue`, `scancel`, `ssh`. What they run is the real launcher.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The image that is asked for.
pub(crate) const IMAGE: &str =
    "box.test/team/torch@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// What every stand-in begins with: its folder, its node, the fault of that node. Where the folder `environments` is there, its variables.
const HEAD: &str = r#"#!/bin/bash
here=@HERE@
node=${SLURMD_NODENAME:-${FLEET_NODE:-}}
fault=
[ ! -f "$here/faults/$node" ] || read -r fault <"$here/faults/$node"
called() { echo "$node ${0##*/} $*" >>"$here/calls"; }
[ ! -d "$here/environments" ] || env >"$here/environments/${0##*/}-$$"
"#;

/// What a container prints: the report of an agent, by the fault of its node.
const AGENT: &str = r#"
line() { printf '{"id":"%s","stage":"%s","outcome":"%s","detail":"%s","measured":{"gpu.0":"NVIDIA H200 (sm_90)"%s},"expected":{},"hint":null}\n' "$@"; }
agent() {
    local outcome=passed speed=700
    [ "$fault" != failed ] || outcome=failed
    if [ -f "$here/report" ]; then
        exec sed "/\"id\":\"gemm-tf32-own\"/s/\"passed\"/\"$outcome\"/" "$here/report"
    fi
    echo '{"schema":1,"agent":"envforge-agent"}'
    line driver gpu passed fine ',"gpus":"2"'
    line gemm-fp32-own gpu passed exact ""
    [ "$fault" != hang ] || exec sleep 600
    # Checks that go on when the test says so.
    while [ -f "$here/wait" ]; do sleep 0.05; done
    # A fault that is not there when the node is asked again.
    [ "$fault" != once ] || { outcome=failed; rm "$here/faults/$node"; }
    line gemm-tf32-own gpu "$outcome" "$([ $outcome = passed ] && echo exact || echo '3 elements differ')" ""
    [ "$fault" != slow ] || speed=600
    line speed-gemm-fp16 perf passed fast ",\"median\":\"$speed\""
    echo '{"done":true,"seconds":1.5}'
    [ $outcome = passed ]
}
"#;

/// An engine whose containers print the report of an agent. It has the image, unless the file `empty` is there: then from its pull on.
const DOCKER: &str = r#"
case $1 in
rm) sleep 0.3; called "$@"; exit ;; # Its end counts: a removal takes a while.
*) called "$@" ;;
esac
case $1 in
image)
    [ "$fault" != no-image ] || exit 1
    [ ! -f "$here/empty" ] || [ -f "$here/pulled-$node" ] || exit 1
    [ "${3:-}" != -f ] || echo "LD_LIBRARY_PATH=/opt/lib"
    ;;
pull)
    [ -f "$here/empty" ] || { echo "Error response from daemon: manifest unknown" >&2; exit 1; }
    sleep 0.2
    touch "$here/pulled-$node"
    ;;
run)
    [ "$fault" != engine ] || { echo "docker: could not select device driver" >&2; exit 125; }
    agent
    ;;
esac
"#;

/// Runtimes that start files; `enroot` keeps what it has unpacked. On some nodes the file is another one while it is started, and is then put
/// back, or has its time set back.
const APPTAINER: &str = r#"
called "$@"
file=
for word; do
    [ "$word" != /envforge/agent ] || break
    file=$word
done
case $fault in
exchanged-file)
    mv "$file" "$file.kept"
    echo another >"$file"
    (agent)
    mv -f "$file.kept" "$file"
    ;;
rewritten-file)
    touch -r "$file" "$here/time"
    cp "$file" "$here/kept"
    tr h H <"$here/kept" >"$file"
    (agent)
    cp "$here/kept" "$file"
    touch -r "$here/time" "$file"
    ;;
*) agent ;;
esac
"#;
const ENROOT: &str = r#"
called "$@"
case $1 in
import) echo sqsh >"$3" ;;
create) touch "$here/unpacked-$3" ;;
start) agent ;;
remove) rm "$here/unpacked-$3" ;;
esac
"#;
/// Starts what is to have a network of its own in that of the test.
const UNSHARE: &str = r#"
called "$@"
[ "$fault" != no-user-namespaces ] || { echo "unshare: unshare failed: Operation not permitted" >&2; exit 1; }
while [ "$1" != -- ]; do shift; done
shift 5 # the shell that sets the loopback up
exec "$@"
"#;
/// A user as others are: root starts no files.
const ID: &str = "\necho 1000\n";
/// The file of an image, which is missing or another one on some nodes.
const SHA256SUM: &str = r#"
case "$fault:${2:-}" in
no-file:?*) echo "sha256sum: $2: No such file or directory" >&2; exit 1 ;;
other-file:?*) echo "$(printf b%.0s {1..64})  $2"; exit ;;
esac
exec /usr/bin/sha256sum "$@"
"#;

const NVIDIA_SMI: &str = r#"
driver=570.86.15
[ "$fault" != driver ] || driver=550.54.15
echo "GPU-$node-0, $driver, 96.00.01, NVIDIA H200"
[ "$fault" = less ] || echo "GPU-$node-1, $driver, 96.00.01, NVIDIA H200"
"#;

/// Every node has a boot of its own.
const CAT: &str = r#"
[ "$1" != /proc/sys/kernel/random/boot_id ] || { echo "boot-$node"; exit; }
exec /bin/cat "$@"
"#;

/// A node whose disk is full.
const MKTEMP: &str = r#"
[ "$fault" != full ] || { echo "mktemp: failed to create directory: No space left on device" >&2; exit 1; }
exec /usr/bin/mktemp "$@"
"#;

const SINFO: &str = r#"
called "$@"
/bin/cat "$here/sinfo"
"#;

/// Runs a script on the node that it is for, in place of a queue: its output is the file that was named. A node that has the file
/// `refuse-NODE` is refused. With the file `late` the jobs are there some time before their numbers are said, and do not run.
const SBATCH: &str = r#"
called "$@"
for word; do
    case $word in
    --nodelist=*) node=${word#*=} ;;
    --output=*) output=${word#*=} ;;
    esac
done
mark=$'\x01'
output=${output//%%/$mark}
output=${output//%n/0}
output=${output//$mark/%}
[ ! -f "$here/late" ] || { echo "$node" >>"$here/submitted"; sleep 3; echo "${node#node}"; exit; }
[ ! -f "$here/refuse-$node" ] || { echo "sbatch: error: Batch job submission failed: Invalid qos" >&2; exit 1; }
cat >"$here/script-$node"
SLURMD_NODENAME=$node SLURM_JOB_ID=${node#node} SLURM_JOB_GPUS=0,1 PATH=$here/only-$node:$PATH bash "$here/script-$node" >"$output" 2>&1 </dev/null
echo "${node#node};west"
"#;

const SCANCEL: &str = "\ncalled \"$@\"\n";

/// Drains nobody where the file `no-operator` is there.
const SCONTROL: &str = r#"
called "$@"
[ ! -f "$here/no-operator" ] || { echo "slurm_update error: Access/permission denied" >&2; exit 1; }
"#;

/// Ranks follow the order of the file `order`, as Slurm's follow its own.
const SQUEUE: &str = r#"
called "$@"
[ ! -f "$here/order" ] || paste -sd, "$here/order"
"#;

/// Runs the launcher for each node, with labels. Where the file `deaf` is there, nodes do not hear that its input ends. A call for more than one node is refused if the file `refuse-many` is there.
/// With the file `srun-says` it prints that and gives out no job. With the file `pyxis` it has that plug-in: a step that names an image prints the report of an agent.
const SRUN: &str = r#"
if [ "$1" = --help ]; then
    [ ! -f "$here/pyxis" ] || cat "$here/pyxis"
    exit
fi
called "$@"
[ ! -f "$here/srun-says" ] || { /bin/cat "$here/srun-says" >&2; exit 1; }
case " $* " in *" --container-image="*) env >"$here/environment"; agent; exit ;; esac
for word; do
    case $word in --nodelist=*) list=${word#*=} ;; esac
done
nodes=()
stem=${list%%\[*}
ranges=${list#"$stem"}
ranges=${ranges#\[}
for range in $(tr , ' ' <<<"${ranges%\]}"); do
    for number in $(seq "${range%-*}" "${range#*-}"); do nodes+=("$stem$number"); done
done
[ ${#nodes[@]} -gt 0 ] || nodes=("$stem")
if [ ${#nodes[@]} -gt 1 ] && [ -f "$here/refuse-many" ] || [ -f "$here/refuse-$stem" ]; then
    echo "srun: error: Unable to allocate resources: Requested nodes are busy" >&2
    exit 1
fi
[ ! -f "$here/order" ] || [ ${#nodes[@]} -eq 1 ] || mapfile -t nodes <"$here/order"
temporary=$(mktemp -d "$here/srun.XXXXXX")
below() { for child in $(/bin/cat /proc/"$1"/task/*/children 2>/dev/null); do below "$child"; echo "$child"; done; }
# Slurm signals every process of a step. A node hears twice of the end: its input ends, too.
cancel() {
    echo ended >>"$here/ended"
    for _ in 1 2 3 4 5; do
        kill $(for job in $(jobs -p); do below "$job"; echo "$job"; done) 2>/dev/null
    done
    exit 143
}
trap cancel TERM
exec 5<&0
sed '/^\.$/q' >"$temporary/in"
tasks=()
for rank in "${!nodes[@]}"; do
    name=${nodes[rank]}
    [ ! -f "$here/says-$name" ] || read -r name <"$here/says-$name"
    mkfifo "$temporary/$rank"
    # What srun reads is every node's, and so is its end.
    (/bin/cat "$temporary/in"; [ -f "$here/deaf" ] && exec sleep 600; exec /bin/cat <&5) >"$temporary/$rank" &
    SLURMD_NODENAME=$name SLURM_JOB_ID=7 SLURM_PROCID=$rank SLURM_STEP_GPUS=0,1 SLURM_LABELIO=1 PATH=$here/only-$name:$PATH bash -s <"$temporary/$rank" \
        > >(exec sed -u "s/^/$rank: /") 5<&- &
    tasks+=($!)
done
code=0
for task in "${tasks[@]}"; do wait "$task" || code=$?; done
sleep 0.1
for rank in "${!nodes[@]}"; do
    [ ! -f "$here/replay-${nodes[rank]}" ] || sed "s/^/$rank: /" "$here/replay-${nodes[rank]}"
done
exit $code
"#;

/// A host by its name: what it does is its fault.
const SSH: &str = r#"
called "$@"
while [ "$1" != -- ]; do shift; done
export FLEET_NODE=$2
read -r fault <"$here/faults/$FLEET_NODE" || true
case $fault in
refused) echo "ssh: connect to host $FLEET_NODE port 22: Connection refused" >&2; exit 255 ;;
key) echo "Host key verification failed." >&2; exit 255 ;;
no-bash) echo "sh: exec: bash: not found" >&2; exit 127 ;;
lost-late) bash -s; echo "Connection to $FLEET_NODE closed by remote host." >&2; exit 255 ;;
lost-half) bash -s | sed -u 's/^\(envforge-report .\{500\}\).*/\1/'; echo "Connection to $FLEET_NODE closed by remote host." >&2; exit 255 ;;
lost) bash -s | sed -u '/stage=check/q'; echo "Connection to $FLEET_NODE closed by remote host." >&2; exit 255 ;;
esac
PATH=$here/only-$FLEET_NODE:$PATH exec bash -s
"#;

/// The folder of the stand-ins.
pub(crate) struct FakeNodes {
    folder: PathBuf,
}

impl FakeNodes {
    /// Writes them below a folder.
    pub(crate) fn new(folder: &Path) -> Self {
        let nodes = Self { folder: folder.to_owned() };
        for name in ["node", "way", "faults"] {
            std::fs::create_dir_all(folder.join(name)).expect("ours");
        }
        for (name, text) in [
            ("docker", DOCKER),
            ("nvidia-smi", NVIDIA_SMI),
            ("cat", CAT),
            ("mktemp", MKTEMP),
            ("sha256sum", SHA256SUM),
        ] {
            nodes.program("node", name, text);
        }
        for (name, text) in [
            ("sinfo", SINFO),
            ("srun", SRUN),
            ("sbatch", SBATCH),
            ("squeue", SQUEUE),
            ("scancel", SCANCEL),
            ("scontrol", SCONTROL),
            ("ssh", SSH),
        ] {
            nodes.program("way", name, text);
        }
        nodes
    }

    fn program(&self, folder: &str, name: &str, text: &str) {
        let path = self.folder.join(folder).join(name);
        let head = HEAD.replace("@HERE@", &format!("'{}'", self.folder.display()));
        std::fs::write(&path, head + AGENT + text).expect("ours");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("ours");
    }

    /// Gives a node a runtime that starts files, `apptainer` or `enroot`; every node then has an ordinary user.
    pub(crate) fn runtime(&self, node: &str, name: &str) {
        let folder = format!("only-{node}");
        std::fs::create_dir_all(self.folder.join(&folder)).expect("ours");
        self.program(&folder, name, if name == "enroot" { ENROOT } else { APPTAINER });
        self.program(&folder, "unshare", UNSHARE);
        self.ordinary_user();
    }

    /// Lets nodes be asked by a user who is not root.
    pub(crate) fn ordinary_user(&self) {
        self.program("node", "id", ID);
    }

    /// Gives a node a fault.
    pub(crate) fn fault(&self, node: &str, fault: &str) {
        self.write(&format!("faults/{node}"), &format!("{fault}\n"));
    }

    /// Writes a file of the stand-ins.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).expect("ours");
    }

    /// Reads one; empty: there is none.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap_or_default()
    }

    /// The calls of a stand-in, a line each.
    pub(crate) fn calls(&self, program: &str) -> Vec<String> {
        let is_of = |line: &&str| line.split(' ').nth(1) == Some(program);
        self.read("calls").lines().filter(is_of).map(str::to_owned).collect()
    }

    /// The PATH of nodes; `ways`: with the stand-ins of Slurm and ssh.
    pub(crate) fn path(&self, ways: bool) -> String {
        let own = std::env::var("PATH").expect("a PATH");
        let at = |name: &str| self.folder.join(name).display().to_string();
        if ways { format!("{}:{}:{own}", at("way"), at("node")) } else { format!("{}:{own}", at("node")) }
    }

    /// Lets `sinfo` list so many idle nodes with two GPUs each, after these lines.
    pub(crate) fn idle(&self, count: usize, others: &str) {
        let line = |number| format!("node{number}|gpu*|idle|gpu:h200:2|Unknown|Unknown|none\n");
        let lines: String = (1..=count).map(line).collect();
        self.write("sinfo", &(others.to_owned() + &lines));
    }
}

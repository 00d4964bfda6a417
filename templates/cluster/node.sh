# What `envforge verify --on` runs on each node, with bash. Before these lines stand its values (nonce, image or file with its SHA-256, digest
# of the agent, level, seconds); after them, the agent in base64. Standard input stays open as long as the caller lives. Its end ends this, but
# not with watched=no, where no caller waits.
#
# Prints one line when a stage begins and one line for the report. Every value is a word; texts are in base64.
umask 077 # On a node of several users nobody else reads an image or starts a program of it.
exec 3<&0
LC_ALL=C
export LC_ALL
work= tool= container= child= watch= code= root= marks= stage=start
began=$(date +%s)

fail() { echo "error: $*" >&2; exit 1; }

#RUNTIME#

word() { printf %s "$1" | tr -cd 'A-Za-z0-9._:,/+@-' | head -c 200; }
text() { base64 | tr -d '\n'; } # in base64, on one line

# Where this runs.
place() {
    printf 'nonce=%s node=%s host=%s job=%s boot=%s' "$nonce" "$(word "${SLURMD_NODENAME:-}")" "$(word "$(uname -n)")" \
        "$(word "${SLURM_JOB_ID:-}")" "$(word "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)")"
}

stage() { # NAME
    stage=$1
    printf 'envforge-node 1 %s stage=%s .\n' "$(place)" "$1"
}

gpus() {
    timeout -k 2 20 nvidia-smi --query-gpu=uuid,driver_version,vbios_version,name --format=csv,noheader 2>/dev/null | head -c 16384
}

# The one line of the report: how far it came, its code, what the agent and the tool printed.
report() { # [WHY]
    local body why=$1 gpus=
    body=$(head -c 10485760 "$work/lines" 2>/dev/null | gzip -9n | text)
    [ -n "$why" ] || why=$(tail -c 4096 "$work/errors" 2>/dev/null)
    [ ! -f "$work/gpus" ] || gpus=$(text <"$work/gpus")
    printf 'envforge-report 1 %s stage=%s code=%s level=%s kernel=%s runtime=%s agent=%s began=%s seconds=%s gpus=%s why=%s sum=%s body=%s .\n' \
        "$(place)" "$stage" "$code" "$level" "$(word "$(uname -r)")" "$(word "${tool##*/}")" "$agent" "$began" "$(($(date +%s) - began))" \
        "$gpus" "$(printf %s "$why" | text)" "$(printf %s "$body" | sha256sum | head -c 16)" "$body"
}

bounded() { # SECONDS COMMAND...: in the background, so that a signal is handled at once
    timeout -k 5 "$@" 3<&- &
    child=$!
    wait "$child"
    code=$?
    child=
    return "$code"
}

clean() {
    # A second signal, from Slurm or from the end of the input, leaves no container behind; children ignore it, too.
    trap '' TERM INT HUP
    [ -z "$watch" ] || kill "$watch" 2>/dev/null
    [ -z "$child" ] || kill "$child" 2>/dev/null
    # Ending the client does not end its container.
    case ${container:+${tool##*/}} in
    '') ;;
    enroot) timeout -k 2 60 "$tool" remove --force "$container" >/dev/null 2>&1 ;;
    *) timeout -k 2 20 "$tool" rm -f -v "$container" >/dev/null 2>&1 ;;
    esac
    # What code of the image left there, too.
    [ -z "$work" ] || { chmod -R u+rwX "$work" 2>/dev/null; rm -rf "$work"; }
}

fetch() {
    case $kind in
    image) stage pull && pull ;;
    *) stage file && bring ;;
    esac
}

pull() {
    local since importer=$tool
    since=$(date +%s)
    case ${tool##*/} in
    apptainer | singularity)
        root=$work/image.sif
        bounded "$pull_seconds" "$tool" pull --force "$root" "docker://$image"
        ;;
    pyxis | enroot)
        # The plug-in fetches images with enroot, too; a file of its own has the time of its own.
        [ "${tool##*/}" = enroot ] || importer=enroot
        # Nothing of an image that others made is started by a pyxis that leaves it the network of the node.
        if [ "${tool##*/}" = pyxis ] && ! has_own_network; then
            code=1
            echo "pyxis here has no --container-unshare: an image of a registry would have the node's network" >&2
            return 1
        fi
        if [ "${tool##*/}" = enroot ] && ! "${alone[@]}" true; then
            code=1
            echo "enroot would give an image of a registry the node's network: a user may not have one of his own here (unshare, ip, setpriv)" >&2
            return 1
        fi
        root=$work/image.sqsh
        bounded "$pull_seconds" "$importer" import --output "$root" "$uri" && unpack "$since"
        ;;
    *) bounded 60 "$tool" image inspect "$image" || bounded "$pull_seconds" "$tool" pull "$image" ;;
    esac >/dev/null 2>"$work/errors"
}

# What every write to a file and every exchange of it changes: no user sets the time of a change. Whoever may rename a directory above it could
# still put it back unseen.
marks_of() { readlink -f -- "$1" && stat -Lc '%d %i %s %y %z' -- "$1"; } 2>/dev/null

# Whether the runtime, which takes a path, had the file that was read.
unchanged() {
    # Without marks nothing is known of it.
    [ -n "$marks" ] && [ "$(marks_of "$image")" = "$marks" ] && return 0
    code=1
    echo "$image was changed while it was checked" >"$work/errors"
    return 1
}

# Brings the file that nodes have: it is the one that is meant, and enroot has unpacked it.
bring() {
    local found since
    since=$(date +%s)
    root=$image
    marks=$(marks_of "$image")
    bounded "$pull_seconds" sha256sum -- "$image" >"$work/sum" 2>"$work/errors" || return
    read -r found _ <"$work/sum"
    found=${found#\\} # a mark of names with a backslash or a line break
    if [ "$found" != "$sum" ]; then
        code=1
        echo "$image is another file here, with the SHA-256 $found" >"$work/errors"
        return 1
    fi
    unpack "$since" && unchanged
}

# Lets enroot unpack the file, in what is left of the time.
unpack() { # SINCE
    local left
    [ "${tool##*/}" = enroot ] || return 0
    container=$(container_name)
    left=$((pull_seconds - $(date +%s) + $1))
    bounded "$((left > 0 ? left : 1))" "$tool" create --name "$container" -- "$root" >/dev/null 2>"$work/errors"
}

container_name() { printf 'envforge-verify-%s-%s' "$nonce" "$(word "${SLURM_PROCID:-0}")"; }

# The agent in the image: nothing of the node but its GPUs. Docker, Podman and Apptainer give it no network, no capabilities and a read-only
# root; enroot and pyxis have no such walls, and give an image of a registry a network of its own.
check() {
    local options=() settings=(NCCL_SOCKET_IFNAME=lo XDG_CACHE_HOME=/tmp/.cache CUDA_CACHE_PATH=/tmp/.nv
        TRITON_CACHE_DIR=/tmp/.triton TORCHINDUCTOR_CACHE_DIR=/tmp/.inductor)
    mkdir "$work/scratch"
    case ${tool##*/} in
    apptainer | singularity) in_apptainer ;;
    enroot) in_enroot ;;
    pyxis) in_pyxis ;;
    *) in_engine ;;
    esac >"$work/lines" 2>"$work/errors"
}

in_apptainer() {
    local line
    gpu_options "${tool##*/}"
    # What a site or the caller sets for their own containers would open this one.
    for line in $(compgen -e); do
        case $line in APPTAINER* | SINGULARITY*) unset "$line" ;; esac
    done
    for line in "${settings[@]}" LD_PRELOAD= LD_AUDIT= GLIBC_TUNABLES=; do options+=(--env "$line"); done
    bounded "$check_seconds" "$tool" exec "${options[@]}" --containall --cleanenv --net --network none --workdir "$work/scratch" \
        --pwd / --bind "$work/carried:/envforge:ro" "$root" /envforge/agent "${words[@]}"
}

# The variables of the GPUs for NVIDIA's hook, which reads them of the caller, too.
nvidia_variables() {
    NVIDIA_VISIBLE_DEVICES=void
    [ -z "$GPUS" ] || NVIDIA_VISIBLE_DEVICES=all # Of what the job has: the hook sees no other.
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
    export NVIDIA_VISIBLE_DEVICES NVIDIA_DRIVER_CAPABILITIES
}

# Begins a command that has a network of its own with a loopback, which NCCL wants: the same user, and no rights over that network.
alone=(unshare --user --map-current-user --keep-caps --net -- bash -c
    'PATH=$PATH:/usr/sbin:/sbin ip link set lo up && exec setpriv --ambient-caps=-all --inh-caps=-all -- "$@"' bash)

in_enroot() {
    local line within=()
    nvidia_variables
    # A file is what somebody of the site has put there; anybody's image is not.
    [ "$kind" != image ] || within=("${alone[@]}")
    export ENROOT_MOUNT_HOME=no ENROOT_REMAP_ROOT=no ENROOT_ROOTFS_WRITABLE=no
    for line in "${settings[@]}" HOME=/tmp LD_PRELOAD= LD_AUDIT= GLIBC_TUNABLES= NVIDIA_VISIBLE_DEVICES NVIDIA_DRIVER_CAPABILITIES; do
        options+=(--env "$line")
    done
    # In place of the image's own start, which may do anything.
    echo 'exec "$@"' >"$work/rc"
    bounded "$check_seconds" ${within[@]+"${within[@]}"} "$tool" start "${options[@]}" --rc "$work/rc" --mount "$work/scratch:/tmp:none:x-create=dir,rbind" \
        --mount "$work/carried:/envforge:none:x-create=dir,rbind,ro" -- "$container" /envforge/agent "${words[@]}"
}

# Whether pyxis can give a step a network of its own.
has_own_network() { srun --help 2>/dev/null | grep -q -e --container-unshare; }

# A step in this job. Slurm and pyxis hand every variable of srun to the image, and credentials have any name: srun gets what it and enroot
# need to start. What this step was started with would hold for that one, too: labels, its number of nodes, its image.
in_pyxis() {
    local line variables=()
    nvidia_variables
    for line in PATH HOME XDG_DATA_HOME XDG_RUNTIME_DIR SLURM_CONF SLURMD_NODENAME NVIDIA_VISIBLE_DEVICES NVIDIA_DRIVER_CAPABILITIES; do
        [ -z "${!line+set}" ] || variables+=("$line=${!line}")
    done
    ! has_own_network || options+=(--container-unshare=net)
    bounded "$check_seconds" env -i "${variables[@]}" srun --jobid="$SLURM_JOB_ID" --overlap --nodes=1 --ntasks=1 --nodelist="$SLURMD_NODENAME" \
        --chdir=/ --cpu-bind=none --mpi=none --input=none --container-image="$root" --container-readonly --no-container-mount-home \
        --no-container-remap-root --no-container-entrypoint --container-workdir=/ "${options[@]}" \
        --container-mounts="$work/carried:/envforge:ro,$work/scratch:/tmp" \
        /usr/bin/env -u LD_PRELOAD -u LD_AUDIT -u GLIBC_TUNABLES HOME=/tmp "${settings[@]}" /envforge/agent "${words[@]}"
}

in_engine() {
    local memory line variables
    memory=$(sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
    gpu_options "${tool##*/}"
    for line in "${settings[@]}"; do options+=(--env "$line"); done
    # The agent starts without what the image sets for the dynamic linker, and hands it to the checks.
    if ! variables=$(timeout 60 "$tool" image inspect -f '{{range .Config.Env}}{{println .}}{{end}}' "$image" 2>"$work/errors"); then
        code=125
        return 1
    fi
    while IFS= read -r line; do
        case $line in
        LD_*=* | GLIBC_TUNABLES=*) options+=(--env "${line%%=*}=" --env "ENVFORGE_CHILD_$line") ;;
        esac
    done <<<"$variables"
    [ "$tool" = podman ] || options+=(--memory "$((memory / 8 * 7))k")
    container=$(container_name)
    bounded "$check_seconds" "$tool" run --rm --name "$container" "${options[@]}" --env HOME=/tmp --network none --read-only \
        --log-driver none --no-healthcheck \
        --cap-drop ALL --security-opt no-new-privileges --pids-limit 16384 --shm-size "$((memory / 4))k" \
        --tmpfs "/tmp:rw,exec,nosuid,nodev,mode=1777,size=$((memory / 4))k" --volume "$work/carried:/envforge:ro" \
        --entrypoint /envforge/agent "$image" "${words[@]}"
}

# The runtimes to look for: those that start what is meant, and for root none whose containers have root's capabilities.
runtimes() {
    local one all='apptainer singularity pyxis enroot docker podman'
    # Anybody's image comes last to those without walls.
    [ "$kind" != image ] || all='apptainer singularity docker podman pyxis enroot'
    for one in ${ENVFORGE_WITH:-$all}; do
        case $kind:$(id -u):${one##*/} in
        image:0:apptainer | image:0:singularity | image:0:pyxis | image:0:enroot) ;;
        image:*:pyxis) [ -z "${SLURM_JOB_ID:-}" ] || ! command -v enroot >/dev/null || echo "$one" ;;
        image:*) echo "$one" ;;
        *:0:*) ;;
        sif:*:apptainer | sif:*:singularity) echo "$one" ;;
        squashfs:*:apptainer | squashfs:*:singularity | squashfs:*:enroot) echo "$one" ;;
        squashfs:*:pyxis) [ -z "${SLURM_JOB_ID:-}" ] || echo "$one" ;;
        esac
    done
}

# Whether the node has what it is to start: the stage that would come next is said, and nothing is fetched.
probe() {
    local next=pull
    [ "$kind" = image ] || next=check
    ENVFORGE_WITH=$(runtimes | tr '\n' ' ')
    if [ -n "$ENVFORGE_WITH" ] && tool=$(tool 2>/dev/null); then
        case ${tool##*/} in
        docker | podman) ! timeout -k 2 20 "$tool" image inspect "$image" >/dev/null 2>&1 || next=check ;;
        esac
    fi
    stage "$next"
    exit 0
}

main() {
    local carried
    trap clean EXIT
    trap 'trap "" TERM INT HUP; exit 143' TERM INT HUP
    stage start
    if ! work=$(mktemp -d "${TMPDIR:-/tmp}/envforge-verify.XXXXXX" 2>&1); then
        carried=$work work= code=1
        report "$carried"
        exit 1
    fi
    carried=$work/carried
    mkdir "$carried"
    sed -n '/^\.$/q;p' <&3 | base64 -d >"$carried/agent" 2>"$work/errors"
    printf %s "$expect" | base64 -d >"$carried/expect.txt"
    # The image's user reads these; the folder above stays the caller's.
    chmod 755 "$carried" "$carried/agent"
    chmod 644 "$carried/expect.txt"
    if [ "$(sha256sum <"$carried/agent" | head -c 64)" != "$agent" ]; then
        echo "the agent did not arrive whole in $work" >>"$work/errors"
        code=1
        report
        exit 1
    fi
    # The caller is gone when its end of the pipe is closed.
    if [ "$watched" = yes ]; then
        (while read -r -u 3 _; do :; done; kill -TERM $$) >/dev/null 2>&1 &
        watch=$!
        disown
    fi
    gpus >"$work/gpus"
    GPUS=${SLURM_STEP_GPUS:-${SLURM_JOB_GPUS:-}}
    [ -n "$GPUS" ] || [ ! -s "$work/gpus" ] || GPUS=all
    stage=runtime
    ENVFORGE_WITH=$(runtimes | tr '\n' ' ')
    if [ -z "$ENVFORGE_WITH" ]; then
        code=127 tool=
        case $(id -u):$kind in
        0:*) echo "root's containers of apptainer, enroot and pyxis have root's capabilities: ask as an ordinary user" ;;
        *) echo "none of the runtimes that this node is to use starts a $kind" ;;
        esac >>"$work/errors"
    elif tool=$(tool 2>"$work/errors"); then
        if fetch; then
            stage check
            check
            # enroot checks what it has unpacked.
            if [ "$kind:${tool##*/}" = squashfs:enroot ] || [ "$kind" = image ] || unchanged; then
                [ ! -s "$work/lines" ] || stage=end
            else
                stage=file
                : >"$work/lines"
            fi
        fi
    else
        code=127 tool=
    fi
    report
    exit 0
}

//! `verify --on` with a real Slurm cluster and real ssh servers on this machine; containers and GPUs are stand-ins.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fake_nodes::{FakeNodes, IMAGE};
use crate::program;
use crate::program::{Program, Run};
use crate::slurm_nodes::{SlurmNodes, below, signal};

/// Whoever submits: not root.
const USER: &str = "65534";

/// The program and the stand-ins in folders that every user may write.
fn scene() -> (Program, FakeNodes) {
    let mut program = program();
    let nodes = FakeNodes::new(&program.path("nodes"));
    program.set("PATH", nodes.path(false));
    for name in ["", "home", "cache", "state", "tmp", "nodes", "nodes/faults"] {
        std::fs::set_permissions(program.path(name), std::fs::Permissions::from_mode(0o777)).expect("ours");
    }
    (program, nodes)
}

fn start_cluster(program: &mut Program, count: u16, port: u16) -> SlurmNodes {
    start_cluster_with(program, count, port, "")
}

/// The same with lines of the configuration.
fn start_cluster_with(program: &mut Program, count: u16, port: u16, more: &str) -> SlurmNodes {
    let folder = program.path("slurm");
    std::fs::create_dir(&folder).expect("ours");
    let cluster = SlurmNodes::start(&folder, count, port, more);
    program.set("SLURM_CONF", cluster.conf().display().to_string());
    cluster
}

/// The command as an ordinary user, who may not read where this repository lies.
fn as_user(program: &Program, args: &[&str]) -> Command {
    let own = program.path("envforge");
    if !own.exists() {
        std::fs::copy(env!("CARGO_BIN_EXE_envforge"), &own).expect("copied");
    }
    let wrapped = ["--reuid", USER, "--regid", USER, "--clear-groups", own.to_str().expect("UTF-8")];
    program.command_of(Path::new("setpriv"), &[&wrapped[..], args].concat())
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_mins(5);
    while !is_there() {
        assert!(Instant::now() < end, "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn runs_on(nodes: &FakeNodes, node: &str) -> bool {
    nodes.calls("docker").iter().any(|call| call.starts_with(&format!("{node} docker run ")))
}

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", run.stdout, run.stderr))
}

/// Asserts state and reason of a node.
#[track_caller]
fn assert_node(report: &Value, node: &str, state: &str, why: &str) {
    let all = report["nodes"].as_array().expect("nodes");
    let row = all.iter().find(|row| row["node"] == node).unwrap_or_else(|| panic!("no {node}: {all:#?}"));
    assert_eq!(row["state"], state, "{node}: {}", row["why"]);
    assert!(row["why"].to_string().contains(why), "{node}: `{why}` is not in {}", row["why"]);
}

#[test]
#[ignore = "needs Slurm and root"]
fn slurm_names_five_faults_at_once_for_an_ordinary_user() {
    assert_five_faults(26_100);
}

/// Whatever the order in which nodes answer, are lost and run into their deadline.
#[test]
#[ignore = "nightly: needs Slurm and root, for a quarter of an hour"]
fn slurm_names_five_faults_in_each_of_twenty_runs() {
    for run in 0..20 {
        assert_five_faults(28_000 + 20 * run);
    }
}

/// A node that hangs, one that dies, one GPU less, one slow, another driver: each is named, and no other.
fn assert_five_faults(port: u16) {
    let (mut program, nodes) = scene();
    let mut cluster = start_cluster(&mut program, 8, port);
    for (node, fault) in
        [("node1", "hang"), ("node2", "hang"), ("node3", "less"), ("node4", "slow"), ("node5", "driver")]
    {
        nodes.fault(node, fault);
    }
    let args = [
        "verify",
        IMAGE,
        "--on",
        "slurm",
        "--level",
        "perf",
        "--json",
        "--pull-deadline",
        "120",
        "--deadline",
        "10",
    ];
    let child = as_user(&program, &args).spawn().expect("it starts");
    wait_for("the container of node2", || runs_on(&nodes, "node2"));
    cluster.power_off("node2");
    let run = Run::of(&child.wait_with_output().expect("a child of ours"));
    let report = json(&run);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert_node(&report, "node1", "no-report", "deadline, after 2 checks, the last `gemm-fp32-own`");
    assert_node(&report, "node2", "no-report", "while running the checks");
    assert_node(&report, "node3", "different", "GPUs 1, most have 2");
    assert_node(&report, "node4", "slow", "speed-gemm-fp16 14 % under the median of 6 nodes");
    assert_node(&report, "node5", "different", "driver 550.54.15, most have 570.86.15");
    for node in ["node6", "node7", "node8"] {
        assert_node(&report, node, "ok", "");
        let row =
            report["nodes"].as_array().expect("nodes").iter().find(|row| row["node"] == node).expect("one");
        assert_ne!(row["job"], "", "{row}");
    }
    // Slurm ends it on a node without power when it has given that node up.
    let states = ["-h", "--states=PENDING,RUNNING"];
    wait_for("the end of the job", || cluster.output("squeue", &states).is_empty());
    let left: Vec<PathBuf> =
        std::fs::read_dir(program.path("tmp")).expect("ours").map(|one| one.expect("one").path()).collect();
    // A node without power removes nothing.
    assert!(left.len() <= 1, "{left:?}");
}

#[test]
#[ignore = "needs Slurm and root"]
fn slurm_keeps_no_job_after_an_interrupt_and_names_what_it_could_not_ask() {
    let (mut program, nodes) = scene();
    let cluster = start_cluster(&mut program, 4, 26_200);
    // A queue with a job of somebody else, a drained node, and a job that its owner cancels.
    let busy = ["--wrap=sleep 600", "-w", "node1", "--exclusive", "--output=/dev/null", "--chdir=/"];
    cluster.output("sbatch", &busy);
    cluster.output("scontrol", &["update", "NodeName=node2", "State=DRAIN", "Reason=Xid 79 | seen"]);
    wait_for("the other job", || {
        cluster.output("sinfo", &["-h", "-N", "-o", "%N %T"]).contains("node1 allocated")
    });
    nodes.fault("node3", "hang");
    let args = ["verify", IMAGE, "--on", "slurm:node[1-4]", "--json", "--deadline", "300"];
    let child = as_user(&program, &args).spawn().expect("it starts");
    wait_for("the container of node3", || runs_on(&nodes, "node3"));
    wait_for("the report of node4", || {
        nodes.calls("docker").iter().any(|call| call.starts_with("node4 docker rm "))
    });
    cluster.output("scancel", &["--name=envforge-verify"]);
    let run = Run::of(&child.wait_with_output().expect("a child of ours"));
    let report = json(&run);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert_node(&report, "node1", "not-run", "busy: allocated");
    assert_node(&report, "node2", "not-run", "drained: Xid 79 | seen (root, ");
    assert_node(&report, "node3", "no-report", "");
    assert_node(&report, "node4", "ok", "");

    // A job of ours waits for the busy node, and runs when the other one is over.
    let reports = program.path("tmp/reports").display().to_string();
    let waits = ["verify", IMAGE, "--on", "slurm:node[1-2]", "--as-they-free", &reports];
    let run = Run::of(&as_user(&program, &waits).output().expect("it starts"));
    assert_eq!(run.code, 3, "node2 was named: {}", run.stderr);
    assert!(run.stdout.contains("submitted 1 job for node1;"), "{}", run.stdout);
    cluster.output("scancel", &["--name=wrap"]);
    let report = program.path("tmp/reports/node1.log");
    wait_for("the report of node1", || {
        std::fs::read_to_string(&report).is_ok_and(|text| text.contains("\nenvforge-report "))
    });
    wait_for("the end of its job", || {
        !cluster.output("squeue", &["-h", "-o", "%j"]).contains("envforge-verify")
    });
    let merged =
        Run::of(&as_user(&program, &["verify", "--merge", &reports, "--json"]).output().expect("starts"));
    assert_node(&json(&merged), "node1", "ok", "");

    nodes.write("calls", "");
    std::fs::set_permissions(program.path("nodes/calls"), std::fs::Permissions::from_mode(0o666))
        .expect("ours");
    let mut child = as_user(&program, &args).spawn().expect("it starts");
    wait_for("the container of node3", || runs_on(&nodes, "node3"));
    signal(child.id(), "INT");
    assert_eq!(child.wait().expect("a child of ours").code(), Some(130));
    wait_for("the end of the job", || {
        !cluster.output("squeue", &["-h", "-o", "%j"]).contains("envforge-verify")
    });
    wait_for("the end of the container", || {
        nodes.calls("docker").iter().any(|call| call.starts_with("node3 docker rm -f "))
    });
    let states = cluster.output("sinfo", &["-h", "-N", "-n", "node3,node4", "-o", "%T"]);
    wait_for("idle nodes", || {
        states.contains("idle")
            || cluster.output("sinfo", &["-h", "-N", "-n", "node3", "-o", "%T"]).contains("idle")
    });
}

/// The example's `TaskProlog`: a node that does not admit its image ends the task with its words and takes the next job; it is not drained.
#[test]
#[ignore = "needs Slurm and root"]
fn task_prolog_that_refuses_leaves_every_node_idle() {
    let (mut program, nodes) = scene();
    let write = |name: &str, text: &str| {
        std::fs::write(program.path(name), text).expect("ours");
        std::fs::set_permissions(program.path(name), std::fs::Permissions::from_mode(0o755)).expect("ours");
        program.path(name).display().to_string()
    };
    let refuses = "#!/bin/sh\necho 'refused: no level is proven on NVIDIA H200'\nexit 1\n";
    let (image, admits) = (write("admit", &format!("{IMAGE}\n")), write("admits", refuses));
    let example = include_str!("../../examples/admit/task-prolog.sh");
    let script = example
        .replace("ADMIT=/etc/envforge/admit", &format!("ADMIT={image}"))
        .replace("ENVFORGE=/usr/local/bin/envforge", &format!("ENVFORGE={admits}"));
    assert!(script.contains(&image) && script.contains(&admits), "its first lines are fitted: {script}");
    let prolog = write("task-prolog.sh", &script);
    let cluster = start_cluster_with(&mut program, 2, 26_400, &format!("TaskProlog={prolog}\n"));
    let states = || cluster.output("sinfo", &["-h", "-N", "-o", "%T"]);
    let task = ["-N2", "--immediate=120", "--chdir=/", "sh", "-c", "echo it ran"];
    let refused = cluster.output("srun", &task);
    assert!(refused.contains("refused: no level is proven") && !refused.contains("it ran"), "{refused}");
    wait_for("idle nodes after a refusal", || states() == "idle\nidle\n");

    // What asks the nodes is a task, too: no report came, so nothing is known of them.
    let args = ["verify", IMAGE, "--on", "slurm", "--json", "--deadline", "300"];
    let run = Run::of(&as_user(&program, &args).output().expect("it starts"));
    assert_eq!(run.code, 3, "{}{}", run.stdout, run.stderr);
    for node in ["node1", "node2"] {
        assert_node(&json(&run), node, "not-run", "");
    }
    assert!(nodes.calls("docker").is_empty(), "{}", nodes.read("calls"));
    wait_for("idle nodes after all refusals", || states() == "idle\nidle\n");

    std::fs::write(program.path("admits"), "#!/bin/sh\nexit 0\n").expect("ours");
    let admitted = cluster.output("srun", &task);
    assert_eq!(admitted.matches("it ran").count(), 2, "{admitted}");
    wait_for("idle nodes after a job", || states() == "idle\nidle\n");
    let run = Run::of(&as_user(&program, &args).output().expect("it starts"));
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
}

/// Munge does not answer: no node is asked, and the line that says so is shown.
#[test]
#[ignore = "needs Slurm and root"]
fn slurm_without_munge_is_exit_3_with_the_line_that_names_it() {
    let (mut program, _nodes) = scene();
    let mut cluster = start_cluster(&mut program, 1, 26_500);
    cluster.end_munge();
    let run = Run::of(&as_user(&program, &["verify", IMAGE, "--on", "slurm"]).output().expect("it starts"));
    assert_eq!(run.code, 3, "{}{}", run.stdout, run.stderr);
    for text in ["`sinfo` failed: Munge encode failed: ", "`systemctl status munge`"] {
        assert!(run.stderr.contains(text), "`{text}` is missing: {}", run.stderr);
    }
}

/// Four ssh servers.
struct Servers {
    all: Vec<Child>,
}

impl Servers {
    fn start(folder: &Path, nodes: &FakeNodes, tmp: &Path, port: u16) -> Self {
        let at = |name: &str| folder.join(name).display().to_string();
        let key = |name: &str| {
            let made =
                Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &at(name)]).status();
            assert!(made.expect("ssh-keygen").success());
            std::fs::read_to_string(at(&format!("{name}.pub"))).expect("a key")
        };
        // Debian's server asks for it where it is started by root.
        drop(std::fs::create_dir_all("/run/sshd"));
        let user = key("user");
        std::fs::write(at("authorized"), user).expect("ours");
        let (mut known, mut config) =
            (String::new(), format!("UserKnownHostsFile {}\nIdentityFile {}\n", at("known"), at("user")));
        let mut all = Vec::new();
        for number in 1..=4_u16 {
            let (name, port) = (format!("h{number}"), port + number);
            let public = key(&name);
            // The second has another key than it had.
            let public = if number == 2 { key("earlier") } else { public };
            let _ = write!(known, "[127.0.0.1]:{port} {public}");
            let _ = write!(config, "Host {name}\n  HostName 127.0.0.1\n  Port {port}\n");
            let text = format!(
                "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
                 PermitRootLogin yes\nSetEnv FLEET_NODE={name} TMPDIR={} PATH={}\n",
                at(&name),
                at("authorized"),
                tmp.display(),
                nodes.path(false),
            );
            std::fs::write(at(&format!("{name}.conf")), text).expect("ours");
            let sshd = Command::new("sh")
                .args(["-c", "command -v sshd || echo /usr/sbin/sshd"])
                .output()
                .expect("sh");
            let sshd = String::from_utf8(sshd.stdout).expect("a path");
            let mut server = Command::new(sshd.trim());
            server.args(["-D", "-e", "-f", &at(&format!("{name}.conf"))]);
            server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            all.push(server.spawn().expect("sshd is installed"));
        }
        std::fs::write(at("known"), known).expect("ours");
        std::fs::write(at("config"), config).expect("ours");
        wait_for("the servers", || {
            (1..=4).all(|number| std::net::TcpStream::connect(("127.0.0.1", port + number)).is_ok())
        });
        Self { all }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in &mut self.all {
            for process in below(server.id()) {
                signal(process, "KILL");
            }
            drop(server.kill());
            drop(server.wait());
        }
    }
}

/// A key that changed, a host that freezes in the middle, a connection that is lost; the fourth is fit.
#[test]
#[ignore = "needs sshd and root"]
fn ssh_names_changed_keys_frozen_hosts_and_lost_connections() {
    let (program, nodes) = scene();
    let folder = program.path("ssh");
    std::fs::create_dir(&folder).expect("ours");
    let servers = Servers::start(&folder, &nodes, &program.path("tmp"), 26_300);
    for host in ["h3", "h4"] {
        nodes.fault(host, "hang");
    }
    let config = folder.join("config").display().to_string();
    let args = ["verify", IMAGE, "--on", "ssh:h[1-4]", "--json", "--deadline", "300", "--", "-F", &config];
    let child = program.command(&args).spawn().expect("it starts");
    wait_for("the containers", || runs_on(&nodes, "h3") && runs_on(&nodes, "h4"));
    let frozen: Vec<u32> = below(servers.all[2].id());
    let sessions: Vec<u32> = frozen
        .iter()
        .copied()
        .filter(|process| {
            std::fs::read_to_string(format!("/proc/{process}/comm"))
                .is_ok_and(|name| name.starts_with("sshd"))
        })
        .collect();
    for process in sessions {
        signal(process, "STOP");
    }
    for process in below(servers.all[3].id()) {
        if std::fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|name| name.starts_with("sshd"))
        {
            signal(process, "KILL");
        }
    }
    let run = Run::of(&child.wait_with_output().expect("a child of ours"));
    let report = json(&run);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert_node(&report, "h1", "ok", "");
    assert_node(&report, "h2", "not-run", "Host key verification failed");
    assert_node(
        &report,
        "h3",
        "no-report",
        "connection lost: Timeout, server 127.0.0.1 not responding. while running the checks",
    );
    assert_node(&report, "h4", "no-report", "while running the checks");
    // The launcher of the host that lost its caller ends by itself, with its container.
    wait_for("the end of h4", || {
        nodes.calls("docker").iter().any(|call| call.starts_with("h4 docker rm -f "))
    });
    let known = std::fs::read_to_string(folder.join("known")).expect("ours");
    assert_eq!(known.lines().count(), 4, "no key was added: {known}");
}

//! `verify --on` and `verify --merge`: the real launcher on stand-in nodes, and files that others wrote.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::evidence::{Place, assert_answer, with_driver};
use crate::fake_nodes::{FakeNodes, IMAGE};
use crate::memory_registry::Habits;
use crate::program::{Program, Run};
use crate::verify::{H200, SPEC, lock, report};
use crate::{assert_message, program};

pub(crate) fn scene() -> (Program, FakeNodes) {
    let mut program = program();
    let nodes = FakeNodes::new(&program.path("nodes"));
    program.set("PATH", nodes.path(true));
    (program, nodes)
}

pub(crate) fn json(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", run.stdout, run.stderr))
}

/// `node1: failed drain gemm-tf32-own: …`, a line for each node.
pub(crate) fn rows(report: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let row = |node: &Value| {
        let why: Vec<String> = node["why"].as_array().expect("reasons").iter().map(text).collect();
        format!(
            "{}: {} {} {}",
            text(&node["node"]),
            text(&node["state"]),
            text(&node["action"]),
            why.join("; ")
        )
    };
    report["nodes"].as_array().expect("nodes").iter().map(row).collect()
}

#[track_caller]
pub(crate) fn assert_rows(rows: &[String], expected: &[&str]) {
    for start in expected {
        assert!(rows.iter().any(|row| row.starts_with(start)), "`{start}` is missing: {rows:#?}");
    }
    assert_eq!(rows.len(), expected.len(), "{rows:#?}");
}

pub(crate) fn ask(program: &Program, on: &str, more: &[&str]) -> Run {
    ask_about(program, IMAGE, on, more)
}

pub(crate) fn ask_about(program: &Program, subject: &str, on: &str, more: &[&str]) -> Run {
    let deadline: &[&str] = if more.contains(&"--deadline") { &[] } else { &["--deadline", "300"] };
    program.run(&[&["verify", subject, "--on", on, "--pull-deadline", "120"], deadline, more].concat())
}

#[test]
fn nodes_of_slurm_become_rows_with_their_faults() {
    let (program, nodes) = scene();
    nodes.idle(8, "node9|gpu*|drained|gpu:h200:2|root|2026-11-22T10:00:00|Xid 79 seen\nnode10|gpu*|mixed|gpu:h200:2|||none\n");
    for (node, fault) in [
        ("node1", "failed"),
        ("node2", "hang"),
        ("node3", "less"),
        ("node4", "slow"),
        ("node5", "driver"),
        ("node6", "no-image"),
        ("node7", "engine"),
    ] {
        nodes.fault(node, fault);
    }
    let args = ["--json", "--level", "perf", "--deadline", "8", "--", "--account=ml", "--qos=low"];
    let run =
        program.run(&[&["verify", IMAGE, "--on", "slurm", "--pull-deadline", "120"], &args[..]].concat());
    let report = json(&run);
    assert_eq!((run.code, &report["verdict"]), (1, &"failed".into()), "{}", run.stderr);
    assert_rows(
        &rows(&report),
        &[
            "node1: failed drain gemm-tf32-own: 3 elements differ",
            "node2: no-report watch the checks ran into their deadline, after 2 checks, the last `gemm-fp32-own`",
            "node3: different drain GPUs 1, most have 2",
            "node4: slow watch speed-gemm-fp16 14 % under the median",
            "node5: different watch driver 550.54.15, most have 570.86.15",
            "node6: no-report watch docker, fetching the image: Error response from daemon: manifest unknown",
            "node7: no-report watch docker, running the checks: docker: could not select device driver",
            "node8: ok use ",
            "node9: not-run none drained: Xid 79 seen (root, 2026-11-22T10:00:00)",
            "node10: not-run none busy: mixed",
        ],
    );
    let job = nodes.calls("srun").join("\n");
    for word in [
        "--job-name=envforge-verify",
        "--nodelist=node[1-8]",
        "--nodes=8",
        "--gpus-per-node=2",
        "--partition=gpu",
        "--label",
        "--no-kill",
        "--kill-on-bad-exit=0",
        "--account=ml --qos=low bash -s",
    ] {
        assert!(job.contains(word), "`{word}` is missing: {job}");
    }
    assert_eq!(job.lines().count(), 1, "one job: {job}");
    let containers: Vec<String> =
        nodes.calls("docker").into_iter().filter(|call| call.contains("docker run ")).collect();
    for word in [
        "--network none",
        "--read-only",
        "--cap-drop ALL",
        "--security-opt no-new-privileges",
        "--gpus \"device=0,1\"",
        "--env LD_LIBRARY_PATH= --env ENVFORGE_CHILD_LD_LIBRARY_PATH=/opt/lib",
        "perf --json",
    ] {
        assert!(containers.iter().all(|call| call.contains(word)), "`{word}` is missing: {containers:#?}");
    }
    // What ran into the deadline is removed by its name, and nothing of the launcher stays.
    assert!(
        nodes.calls("docker").iter().any(|call| call.starts_with("node2 docker rm -f -v envforge-verify-"))
    );
    let left: Vec<_> = std::fs::read_dir(program.path("tmp"))
        .expect("ours")
        .map(|entry| entry.expect("one").path())
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let first = &report["nodes"][0];
    assert_eq!(
        (&first["job"], &first["boot_id"], &first["runtime"]),
        (&"7".into(), &"boot-node1".into(), &"docker".into())
    );
}

#[test]
fn answer_for_people_names_bad_nodes_first() {
    let (program, nodes) = scene();
    nodes.idle(6, "");
    nodes.fault("node2", "failed");
    let run = ask(&program, "slurm:gpu", &["--html", "nodes.html", "--junit", "nodes.xml"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(
        lines[1].starts_with("failed  drain  node2")
            && lines[1].ends_with("gemm-tf32-own: 3 elements differ"),
        "{}",
        run.stdout
    );
    assert!(lines[2].starts_with("ok      use    node[1,3-6]"), "{}", run.stdout);
    assert!(run.stdout.contains("gemm-tf32-own  failed  ok"), "{}", run.stdout);
    assert_eq!(lines.last(), Some(&"6 nodes: 1 failed, 5 ok"));
    let page = std::fs::read_to_string(program.path("nodes.html")).expect("a page");
    assert!(page.contains("6 nodes: 1 failed, 5 ok") && page.contains(IMAGE), "{page}");
    let unit = std::fs::read_to_string(program.path("nodes.xml")).expect("a file");
    assert_eq!(unit.matches("<testsuite ").count(), 6);
}

#[test]
fn node_that_was_named_and_cannot_be_asked_is_exit_3() {
    let (program, nodes) = scene();
    nodes.idle(2, "node9|gpu*|down*|gpu:h200:2|root|2026-11-22T10:00:00|Not responding\n");
    let run = ask(&program, "slurm:node[1-2,9,11]", &["--json"]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    let report = json(&run);
    assert_eq!(report["verdict"], "incomplete");
    assert_rows(
        &rows(&report),
        &[
            "node1: ok",
            "node2: ok",
            "node9: not-run none down*: Not responding",
            "node11: not-run none not a node of this cluster",
        ],
    );
    assert_eq!(ask(&program, "slurm", &[]).code, 0, "the same nodes of the whole cluster");
    assert_message(
        &ask(&program, "slurm:node[", &[]),
        2,
        &["invalid value for --on: invalid node list `node[`"],
    );
}

#[test]
fn refused_job_becomes_one_job_for_each_node() {
    let (program, nodes) = scene();
    nodes.idle(3, "");
    nodes.write("refuse-many", "");
    nodes.write("refuse-node2", "");
    let run = ask(&program, "slurm", &["--json"]);
    assert_rows(
        &rows(&json(&run)),
        &["node1: ok", "node2: not-run none Requested nodes are busy", "node3: ok"],
    );
    assert_eq!((run.code, nodes.calls("srun").len()), (0, 4), "{:?}", nodes.calls("srun"));
}

/// As Slurm prints it where the clocks of two machines differ.
const EXPIRED: &str = "srun: error: If munged is up, restart with --num-threads=10\n\
                       srun: error: Munge decode failed: Expired credential\n\
                       srun: error: ENCODED: Wed May 12 12:34:56 2008\n\
                       srun: error: slurm_receive_msg: Zero Bytes were transmitted or received\n\
                       srun: error: Unable to allocate resources: Zero Bytes were transmitted or received\n";

/// Nothing is known of any node: that is no success, though one node more or less would not count.
#[test]
fn answer_without_any_report_is_exit_3_with_slurms_words() {
    let account = "Invalid account or account/partition combination specified";
    let refused = format!("srun: error: Unable to allocate resources: {account}\n");
    let full = "Slurm temporarily unable to accept job, sleeping and retrying";
    let retried = format!("srun: error: {full}\nsrun: error: Unable to allocate resources: {full}\n");
    for (says, why, hint, calls) in [
        (EXPIRED, "Munge decode failed: Expired credential", "`systemctl status munge`", 1),
        (&*refused, account, "`sacctmgr show assoc", 4),
        (&*retried, full, "the queue is full", 4),
    ] {
        let (program, nodes) = scene();
        nodes.idle(3, "node4|gpu*|drained|gpu:h200:2|root|2026-11-22T10:00:00|Xid 79 seen\n");
        nodes.write("srun-says", says);
        let run = ask(&program, "slurm", &["--json", "--html", "nodes.html"]);
        assert_message(&run, 3, &[&format!("error: no node gave a report: {why}"), "hint: ", hint]);
        assert!(run.stderr.contains("-- --account=ml"), "{}", run.stderr);
        let report = json(&run);
        assert_eq!(report["verdict"], "incomplete");
        let row = |number: usize| format!("node{number}: not-run none {why}");
        assert_rows(&rows(&report), &[&row(1), &row(2), &row(3), "node4: not-run none drained: Xid 79"]);
        assert_eq!(nodes.calls("srun").len(), calls, "{:?}", nodes.calls("srun"));
        assert!(program.path("nodes.html").exists());
    }
    let (program, nodes) = scene();
    let lines = ["drained|gpu:h200:2|root|2026-11-22T10:00:00|Xid 79 seen", "allocated|gpu:h200:2|||none"];
    nodes.write("sinfo", &format!("node1|gpu*|{}\nnode2|gpu*|{}\n", lines[0], lines[1]));
    let run = ask(&program, "slurm", &[]);
    let says =
        ["no node gave a report: busy: allocated; drained: Xid 79 seen", "`--as-they-free DIR` leaves"];
    assert_message(&run, 3, &says);
    assert!(run.stdout.ends_with("2 nodes: 2 not run\n"), "{}", run.stdout);
    assert!(nodes.calls("srun").is_empty());
    // One report is enough for an answer.
    nodes.idle(1, &format!("node2|gpu*|{}\n", lines[0]));
    assert_eq!(ask(&program, "slurm", &[]).code, 0);
}

/// Slurm gives ranks in an order of its own, and a node may say what it likes.
#[test]
fn rank_decides_whose_report_it_is() {
    let (program, nodes) = scene();
    nodes.idle(3, "");
    nodes.write("order", "node3\nnode1\nnode2\n");
    nodes.fault("node3", "failed");
    nodes.write("says-node2", "node1\n");
    let run = ask(&program, "slurm", &["--json"]);
    assert_rows(
        &rows(&json(&run)),
        &["node3: failed", "node2: no-report watch its report says that it is `node1`", "node1: ok"],
    );
}

#[test]
fn parallel_gives_each_node_a_job_of_its_own() {
    let (program, nodes) = scene();
    nodes.idle(3, "");
    let run = ask(&program, "slurm", &["--parallel", "1"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let calls = nodes.read("calls");
    // A container begins after the one before has ended: its removal is the last call of a node.
    let order: Vec<&str> = calls
        .lines()
        .filter(|call| call.contains(" srun ") || call.contains("docker rm "))
        .map(|call| call.split(' ').nth(1).unwrap_or_default())
        .collect();
    // Which of them have the image is asked first, one at a time too.
    let checks = ["srun", "docker"].repeat(3);
    assert_eq!(order, [vec!["srun"; 3], checks].concat(), "{calls}");
}

/// One that fetches the image holds up none that has it. Nothing is asked where no node waits.
#[test]
fn nodes_that_have_the_image_come_first() {
    let (program, nodes) = scene();
    nodes.idle(3, "");
    nodes.write("empty", "");
    nodes.write("pulled-node3", "");
    let order = |nodes: &FakeNodes| -> Vec<String> {
        let calls = nodes.calls("docker");
        let runs = calls.iter().filter(|call| call.contains(" docker run "));
        runs.map(|call| call.split(' ').next().unwrap_or_default().to_owned()).collect()
    };
    let run = ask(&program, "slurm", &["--parallel", "1"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert_eq!(order(&nodes), ["node3", "node1", "node2"]);
    let pulls = nodes.calls("docker").iter().filter(|call| call.contains(" docker pull ")).count();
    assert_eq!(pulls, 2, "nothing is fetched to answer that: {}", nodes.read("calls"));

    nodes.write("calls", "");
    assert_eq!(ask(&program, "slurm", &["--parallel", "3"]).code, 0);
    assert_eq!(nodes.calls("srun").len(), 3, "{}", nodes.read("calls"));

    nodes.write("calls", "");
    nodes.write("pulled-h3", "");
    for host in ["h1", "h2", "h3"] {
        nodes.fault(host, "ok");
    }
    let run = ask(&program, "ssh:h[1-3]", &["--parallel", "1"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert_eq!(order(&nodes), ["h3", "h1", "h2"]);
    assert_eq!(nodes.calls("ssh").len(), 6, "{}", nodes.read("calls"));
}

/// Ctrl-C ends the input of `srun`, which ends its nodes in order, and cancels the job; no launcher, container or folder stays.
#[test]
fn interrupt_leaves_no_job() {
    interrupted(false);
}

/// A `srun` that does not end by itself is signalled, and nodes still remove what they made.
#[test]
fn interrupt_ends_a_job_that_does_not_end_by_itself() {
    interrupted(true);
}

fn interrupted(is_deaf: bool) {
    let (program, nodes) = scene();
    nodes.idle(2, "");
    if is_deaf {
        nodes.write("deaf", "");
    }
    nodes.fault("node1", "hang");
    nodes.fault("node2", "hang");
    let args = ["verify", IMAGE, "--on", "slurm", "--deadline", "300"];
    let mut child = program.command(&args).spawn().expect("it starts");
    let end = Instant::now() + Duration::from_mins(5);
    while nodes.calls("docker").iter().filter(|call| call.contains(" run ")).count() < 2 {
        assert!(Instant::now() < end, "{}", nodes.read("calls"));
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("it waits for the nodes");
    assert_eq!(child.wait().expect("a child of ours").code(), Some(130));
    assert_eq!(nodes.read("ended"), if is_deaf { "ended\n" } else { "" });
    assert_eq!(nodes.calls("scancel"), [" scancel --quiet --me 7"]);
    let end = Instant::now() + Duration::from_mins(5);
    loop {
        let left = std::fs::read_dir(program.path("tmp")).expect("ours").count();
        let removed = nodes.calls("docker").iter().filter(|call| call.contains(" rm -f ")).count();
        if (left, removed) == (0, 2) {
            break;
        }
        assert!(Instant::now() < end, "{left} folders, {removed} containers removed");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What signs evidence and logs in stays in this process: `srun` and `sbatch` give their environment to every node.
#[test]
fn secrets_reach_no_program_and_no_node() {
    let (mut program, nodes) = scene();
    nodes.idle(2, "");
    let seen = program.path("nodes/environments");
    std::fs::create_dir(&seen).expect("ours");
    let secrets = [
        ("ENVFORGE_SIGNING_KEY", include_str!("../fixtures/evidence/p256.pem")),
        ("COSIGN_PASSWORD", "planted-1"),
        ("COSIGN_PRIVATE_KEY", "planted-2"),
        ("ENVFORGE_REGISTRY", "box.test"),
        ("ENVFORGE_REGISTRY_USER", "ann"),
        ("ENVFORGE_REGISTRY_PASSWORD", "planted-3"),
        ("COSIGN_REPOSITORY", "box.test/kept"),
    ];
    for (name, value) in secrets {
        program.set(name, value);
    }
    for on in ["slurm", "ssh:h1"] {
        let run = ask(&program, on, &[]);
        assert_eq!(run.code, 0, "{on}: {}{}", run.stdout, run.stderr);
    }
    let reports = program.path("reports");
    let args = ["verify", IMAGE, "--on", "slurm", "--as-they-free", reports.to_str().expect("UTF-8")];
    assert_eq!(program.run(&args).code, 0);
    let mut programs = BTreeSet::new();
    for entry in std::fs::read_dir(seen).expect("ours") {
        let path = entry.expect("one").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        programs.extend(name.split('-').next().map(str::to_owned));
        let variables = std::fs::read_to_string(&path).expect("text");
        assert!(
            variables.contains("\nCOSIGN_REPOSITORY=") || variables.starts_with("COSIGN_REPOSITORY="),
            "{name}"
        );
        for secret in
            ["PRIVATE KEY", "planted-", "COSIGN_PASSWORD", "COSIGN_PRIVATE_KEY", "ENVFORGE_SIGNING_KEY"]
        {
            assert!(!variables.contains(secret), "{name} has {secret}");
        }
    }
    for name in ["sinfo", "srun", "sbatch", "ssh", "docker"] {
        assert!(programs.contains(name), "{name} left none: {programs:?}");
    }
}

/// A cluster that is never idle: a job for each node, whose answer is read from files.
#[test]
fn busy_nodes_are_left_a_job_and_merged_later() {
    let (program, nodes) = scene();
    nodes.idle(2, "node3|gpu*|allocated|gpu:h200:2|||none\nnode4|gpu*|mixed|gpu:h200:2|||none\nnode5|gpu*|drained|gpu:h200:2|root|2026-11-22T10:00:00|Xid 79\n");
    nodes.fault("node3", "failed");
    nodes.write("refuse-node4", "");
    // The name of a file is a pattern for Slurm.
    let reports = program.path("the reports 50%n");
    let reports = reports.to_str().expect("UTF-8");
    let run =
        program.run(&["verify", IMAGE, "--on", "slurm", "--as-they-free", reports, "--", "--account=ml"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(
        run.stdout,
        format!(
            "not run: node5: drained: Xid 79 (root, 2026-11-22T10:00:00)\n\
             not run: node4: Batch job submission failed: Invalid qos\n\
             submitted 3 jobs for node[1-3]; `squeue --me --name=envforge-verify` shows those that wait\n\
             their answer: envforge verify --merge '{reports}'\n"
        )
    );
    for call in nodes.calls("sbatch") {
        assert!(call.contains(" --exclusive ") && call.contains(" --gpus-per-node=2 "), "{call}");
        assert!(call.contains(" --nice=100000 ") && call.ends_with(" --account=ml"), "{call}");
    }
    assert!(nodes.calls("scancel").is_empty());
    let merged = program.run(&["verify", "--merge", reports, "--json"]);
    assert_eq!(merged.code, 1, "{}", merged.stderr);
    assert_rows(
        &rows(&json(&merged)),
        &["node3: failed ", "node4: no-report watch no report in its file", "node1: ok", "node2: ok"],
    );
    // A node that was named and has no job counts; an earlier report stays.
    let named =
        program.run(&["verify", IMAGE, "--on", "slurm:node[1,4]", "--as-they-free", reports, "--json"]);
    assert_eq!(named.code, 3, "{}", named.stderr);
    let report = json(&named);
    assert_eq!(report["jobs"][0]["job"], 1, "{report}");
    assert_eq!(report["not_run"][0]["node"], "node4", "{report}");
    // No job stays for which nobody will read a report.
    std::fs::write(program.path("file"), "").expect("ours");
    let run = program.run(&["verify", IMAGE, "--on", "slurm", "--as-they-free", "file"]);
    assert_message(&run, 2, &["cannot write reports to `"]);
}

#[test]
fn hosts_of_ssh_become_rows_with_their_faults() {
    let (program, nodes) = scene();
    for (host, fault) in [
        ("h1", "ok"),
        ("root@h2", "refused"),
        ("h3", "key"),
        ("h4", "lost"),
        ("h5", "no-bash"),
        ("h6", "no-image"),
        ("h7", "failed"),
        ("h8", "full"),
    ] {
        nodes.fault(host, fault);
    }
    std::fs::write(program.path("hosts"), "# rack one\nh[1,3-5]\nroot@h2 # by its user\n\nh6\nh[7-8]\n")
        .expect("ours");
    let run = ask(&program, "ssh:@hosts", &["--json", "--", "-p", "2222"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_rows(
        &rows(&json(&run)),
        &[
            "h1: ok",
            "root@h2: not-run none ssh: connect to host root@h2 port 22: Connection refused",
            "h3: not-run none Host key verification failed.",
            "h4: no-report watch connection lost: Connection to h4 closed by remote host. while running the checks",
            "h5: no-report watch the launcher ended with code 127: sh: exec: bash: not found",
            "h6: no-report watch docker, fetching the image: Error response from daemon: manifest unknown",
            "h7: failed drain",
            "h8: no-report watch the node, starting: mktemp: failed to create directory: No space left on device",
        ],
    );
    for call in nodes.calls("ssh") {
        assert!(call.contains("-o BatchMode=yes") && call.contains(" -p 2222 -- "), "{call}");
        assert!(!call.contains("StrictHostKeyChecking"), "the user's configuration decides: {call}");
    }
    let none = ask(&program, "ssh:root@h2,h3", &[]);
    let says = ["no node gave a report: ", "Host key verification failed.", "`ssh HOST true` must connect"];
    assert_message(&none, 3, &says);
    let ok = ask(&program, "ssh:h1", &[]);
    assert_eq!(ok.code, 0, "{}", ok.stderr);
    let refused = ask(&program, "ssh:h1,h3", &[]);
    assert_eq!(refused.code, 3, "a host that was named counts: {}", refused.stdout);
}

/// A report that came whole counts, whatever becomes of the connection; half of one does not.
#[test]
fn connection_that_is_lost_after_the_checks_costs_no_whole_report() {
    let (program, nodes) = scene();
    for (host, fault) in [("h1", "lost-late"), ("h2", "lost-half"), ("h3", "ok")] {
        nodes.fault(host, fault);
    }
    let run = ask(&program, "ssh:h[1-3]", &["--json"]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert_rows(
        &rows(&json(&run)),
        &[
            "h2: no-report watch damaged report: the line is cut: Connection to h2 closed by remote host.",
            "h1: ok use ",
            "h3: ok use ",
        ],
    );
    assert_eq!(ask(&program, "ssh:h1", &[]).code, 0);
}

#[test]
fn call_that_cannot_be_meant_is_refused() {
    let (program, nodes) = scene();
    nodes.idle(1, "");
    let refused =
        |args: &[&str], says: &[&str]| assert_message(&program.run(&[&["verify"], args].concat()), 2, says);
    let digest = ["--on requires one image by its digest", "envforge push IMAGE REF"];
    refused(&["box.test/a:1", "--on", "slurm"], &digest);
    refused(&["--on", "slurm"], &digest);
    refused(&[IMAGE, IMAGE, "--on", "slurm"], &digest);
    refused(&[IMAGE, "--on", "ssh:-oProxyCommand=id"], &["invalid node name `-oProxyCommand=id`"]);
    refused(&[IMAGE, "--on", "kubernetes"], &["expected `slurm`"]);
    refused(&[IMAGE, "--on", "slurm", "--push"], &["cannot be used with"]);
    refused(&[IMAGE, "--merge", "x"], &["cannot be used with"]);
    refused(&[IMAGE, "--parallel", "2"], &["--on"]);
    assert!(nodes.read("calls").is_empty(), "{}", nodes.read("calls"));
    let mut without = crate::program();
    without.set("PATH", "/nonexistent");
    assert_message(
        &ask(&without, "slurm", &[]),
        3,
        &["cannot run `sinfo`", "install `sinfo`", "a login node", "--on ssh:HOST,…"],
    );
}

#[test]
fn scheduler_that_does_not_answer_is_exit_3() {
    let (program, nodes) = scene();
    nodes.write("sinfo", "");
    assert_message(&ask(&program, "slurm", &[]), 3, &["no node found", "hint: `sinfo --Node` lists"]);
    let fake = program.path("nodes/way/sinfo");
    std::fs::write(
        fake,
        "#!/bin/sh\necho 'slurm_load_partitions: Unable to contact slurm controller' >&2; exit 1\n",
    )
    .expect("ours");
    assert_message(
        &ask(&program, "slurm", &[]),
        3,
        &["`sinfo` failed: slurm_load_partitions: Unable to contact slurm controller", "see `scontrol ping`"],
    );
    // The last line says only that it failed.
    nodes.write("sinfo-says", "sinfo: error: If munged is up, restart with --num-threads=10\n\
        sinfo: error: Munge encode failed: Failed to access \"/run/munge/munge.socket.2\": No such file or directory\n\
        sinfo: error: slurm_send_node_msg: auth_g_create: REQUEST_PARTITION_INFO has authentication error\n\
        slurm_load_partitions: Protocol authentication error\n");
    let says = format!("#!/bin/sh\ncat '{}' >&2; exit 1\n", program.path("nodes/sinfo-says").display());
    std::fs::write(program.path("nodes/way/sinfo"), says).expect("ours");
    assert_message(
        &ask(&program, "slurm", &[]),
        3,
        &["`sinfo` failed: Munge encode failed: Failed to access", "hint: ", "`systemctl status munge`"],
    );
}

/// Logs of launchers as `srun --label` and ssh wrote them.
fn logs(program: &Program, nodes: &FakeNodes) -> String {
    let fake = program.path("nodes/way/srun");
    let text = std::fs::read_to_string(&fake).expect("ours");
    let kept = text.replace("exec sed -u \"s/^/$rank: /\"", "sed -u \"s/^/$rank: /\" | tee -a \"$here/log\"");
    std::fs::write(&fake, kept).expect("ours");
    let run = ask(program, "slurm", &[]);
    assert!(run.code < 2, "{}", run.stderr);
    nodes.read("log")
}

/// `nodes.html` of four nodes, one of them bad.
pub(crate) fn example_page() -> Program {
    let (program, nodes) = scene();
    nodes.idle(4, "");
    nodes.fault("node2", "failed");
    std::fs::write(program.path("all.log"), logs(&program, &nodes)).expect("ours");
    let run = program.run(&["verify", "--merge", "all.log", "--html", "nodes.html"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    program
}

#[test]
fn files_of_any_origin_are_one_answer() {
    let (program, nodes) = scene();
    nodes.idle(4, "");
    nodes.fault("node2", "failed");
    let log = logs(&program, &nodes);
    std::fs::create_dir(program.path("reports")).expect("ours");
    let write =
        |name: &str, bytes: &[u8]| std::fs::write(program.path("reports").join(name), bytes).expect("ours");
    write("job.log", format!("a module was loaded\n{log}").as_bytes());
    // A job that was cut in the middle of a report, and one that never came to it.
    let report = log
        .lines()
        .find(|line| line.contains("envforge-report") && line.contains("node=node3"))
        .expect("a report");
    let (_, report) = report.split_once(": ").expect("a label");
    let of = |node: &str| {
        report.replace("node=node3", &format!("node={node}")).replace("boot-node3", &format!("boot-{node}"))
    };
    write("node5.log", &of("node5").as_bytes()[..600]);
    write("node6.log", b"envforge-node 1 nonce=a node=node6 host=x job=1 boot=b stage=pull .\nslurmstepd: error: *** STEP CANCELLED ***\n");
    write("node7.log", "\u{1b}[2J<script>\n".repeat(10).as_bytes());
    write("node8.log", b"");
    write(".hidden", b"x");
    let agent = "{\"schema\":1,\"agent\":\"envforge-agent\"}\n{\"id\":\"gemm-tf32-own\",\"stage\":\"gpu\",\"outcome\":\"passed\",\"detail\":\"exact\",\"measured\":{\"gpu.0\":\"NVIDIA H200 (sm_90)\"},\"expected\":{},\"hint\":null}\n";
    write("node10.jsonl", format!("{agent}{{\"done\":true,\"seconds\":1}}\n").as_bytes());
    write("node11.jsonl", agent.as_bytes());
    let several = r#"{"schema":1,"verdict":"passed","reports":[{},{}],"errors":[]}"#;
    write("node12.json", several.as_bytes());
    let lying = r#"{"schema":1,"image":"x","executed":true,"verdict":"passed","checks":[{"id":"gemm-tf32-own","stage":"gpu","outcome":"failed","detail":"\u001b[2Jwrong","measured":{}}],"gpus":["a"],"versions":{},"seconds":1,"level":"full"}"#;
    write("node13.json", lying.as_bytes());
    let huge = std::fs::File::create(program.path("reports/node14.log")).expect("ours");
    huge.set_len(600 << 20).expect("sparse");
    let pipe = program.path("reports/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let run = program.run(&["verify", "--merge", "reports", "--json"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(
        run.stderr.contains("skipping report: ")
            && run.stderr.contains("is not a regular file: it is a pipe"),
        "{}",
        run.stderr
    );
    assert_rows(
        &rows(&json(&run)),
        &[
            "node1: ok",
            "node2: failed drain gemm-tf32-own: 3 elements differ",
            "node3: ok",
            "node4: ok",
            "node5: no-report watch damaged report: the line is cut",
            "node6: no-report watch its log ends while fetching the image",
            "node7: no-report watch no report in its file",
            "node8: no-report watch no report in its file",
            "node10: ok",
            "node11: no-report watch the agent's report in its file is cut",
            "node12: no-report watch its file has reports of 2 images",
            "node13: failed drain gemm-tf32-own: \\u{1b}[2Jwrong",
            "node14: no-report watch the file is larger than 512 MiB",
        ],
    );
    let text =
        program.run(&["verify", "--merge", "reports/job.log", "reports/node5.log", "--html", "page.html"]);
    assert!(text.stdout.ends_with("5 nodes: 1 failed, 1 no report, 3 ok\n"), "{}", text.stdout);
    assert_message(
        &program.run(&["verify", "--merge", "reports/pipe"]),
        2,
        &["cannot read report `reports/pipe`", "it is a pipe"],
    );
    assert_message(&program.run(&["verify", "--merge", "nothing"]), 2, &["cannot read report `nothing`"]);
    std::fs::create_dir(program.path("empty")).expect("ours");
    assert_message(&program.run(&["verify", "--merge", "empty"]), 2, &["no report found in `empty`"]);
}

/// One report under two names, and a byte that is lost in the middle.
#[test]
fn copied_and_damaged_reports_count_for_none() {
    let (program, nodes) = scene();
    nodes.idle(2, "");
    let log = logs(&program, &nodes);
    let reports: Vec<&str> = log
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(_, line)| line)
        .filter(|line| line.starts_with("envforge-report"))
        .collect();
    let merged = |text: &str| {
        std::fs::write(program.path("one.log"), text).expect("ours");
        json(&program.run(&["verify", "--merge", "one.log", "--json"]))
    };
    let whole = merged(&reports.join("\n"));
    assert_rows(&rows(&whole), &["node1: ok", "node2: ok"]);
    let copied = reports[0].replace("node=node1", "node=node2").replace("node=node2 host", "node=node3 host");
    let copied = merged(&format!("{}\n{copied}\n", reports.join("\n")));
    let all = rows(&copied);
    assert!(all.iter().filter(|row| row.contains("one of them is not its own")).count() == 2, "{all:#?}");
    let lost = reports[0].replacen("body=H", "body=", 1);
    assert_ne!(lost, reports[0], "the body begins as gzip does");
    assert_rows(
        &rows(&merged(&lost)),
        &[&format!(
            "{}: no-report watch damaged report: the checksum differs",
            reports[0].split("node=").nth(1).and_then(|rest| rest.split(' ').next()).expect("a node")
        )],
    );
}

/// A node that prints the report of an earlier call has given none in this one.
#[test]
fn report_of_an_earlier_call_does_not_count() {
    let (program, nodes) = scene();
    nodes.idle(2, "");
    let log = logs(&program, &nodes);
    let mut reports = log
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(_, line)| line)
        .filter(|line| line.starts_with("envforge-report") && line.contains("node=node2 "));
    nodes.write("replay-node2", &format!("{}\n", reports.next().expect("a report")));
    nodes.fault("node2", "hang");
    let run = ask(&program, "slurm", &["--json", "--deadline", "8"]);
    assert_eq!(run.code, 3, "{}{}", run.stdout, run.stderr);
    assert_rows(
        &rows(&json(&run)),
        &["node1: ok", "node2: no-report watch the checks ran into their deadline"],
    );
}

/// A fault that is found twice, one that is not, and more of them than may be drained.
#[test]
fn drain_prints_the_command_for_faults_that_are_found_twice() {
    let (program, nodes) = scene();
    nodes.idle(8, "");
    nodes.fault("node2", "failed");
    nodes.fault("node3", "less");
    nodes.fault("node5", "once");
    let run = ask(&program, "slurm", &["--drain"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let printed: Vec<&str> = run.stdout.lines().filter(|line| line.starts_with("scontrol ")).collect();
    assert_eq!(
        printed,
        [
            "scontrol update NodeName=node2 State=DRAIN 'Reason=envforge: gemm-tf32-own failed twice'",
            "scontrol update NodeName=node3 State=DRAIN 'Reason=envforge: gpu-count failed twice'",
        ]
    );
    let once = run.stdout.lines().find(|line| line.contains("node5")).expect("a line");
    assert!(once.starts_with("failed     watch") && once.ends_with("when asked again: ok"), "{once}");
    let again = nodes.calls("srun").pop().expect("a call");
    assert!(again.contains("--nodelist=node[2-3,5] "), "the suspects alone are asked again: {again}");
    assert!(nodes.calls("scontrol").is_empty(), "nothing is drained without --yes");

    let run = ask(&program, "slurm", &["--drain", "--yes", "--json"]);
    assert_eq!(
        nodes.calls("scontrol"),
        [
            " scontrol update NodeName=node2 State=DRAIN Reason=envforge: gemm-tf32-own failed twice",
            " scontrol update NodeName=node3 State=DRAIN Reason=envforge: gpu-count failed twice",
        ]
    );
    assert!(run.stderr.contains("drained node2\ndrained node3\n"), "{}", run.stderr);
    assert_eq!(json(&run)["drain"][0]["command"][4], "Reason=envforge: gemm-tf32-own failed twice");
    nodes.write("no-operator", "");
    let run = ask(&program, "slurm", &["--drain", "--yes"]);
    assert!(
        run.stderr.contains("warning: node2 is not drained: slurm_update error: Access/permission denied"),
        "{}",
        run.stderr
    );

    nodes.fault("node4", "failed");
    let run = ask(&program, "slurm", &["--drain"]);
    assert!(!run.stdout.contains("scontrol"), "{}", run.stdout);
    assert!(
        run.stderr.contains(
            "3 nodes have a fault that was found twice, more than 2 of the 8 with a report: none is drained"
        ),
        "{}",
        run.stderr
    );
    assert_message(&ask(&program, "ssh:a", &["--drain"]), 2, &["--drain requires `--on slurm`"]);
    let waits = ask(&program, "ssh:a", &["--as-they-free", "reports"]);
    assert_message(&waits, 2, &["--as-they-free requires `--on slurm`"]);
}

/// Signed once, where the reports come together: what the nodes proved, though one of them is bad.
#[test]
fn reports_of_nodes_are_signed_as_evidence() {
    let place = Place::new(Habits::default());
    let mut scene = place.tester(String::new());
    let nodes = FakeNodes::new(&scene.program.path("nodes"));
    scene.program.set("PATH", nodes.path(true));
    nodes.idle(4, "");
    nodes.write("report", &with_driver(&report(&lock(), H200, true), "580.95.05"));
    nodes.fault("node2", "failed");
    let fleet = |more: &[&str]| {
        let verify =
            ["verify", &place.image, "--on", "slurm", "--level", "full", "--attest", "--key", "key.pem"];
        scene.program.run(&[&verify[..], more].concat())
    };
    // Nothing of this machine's own went there: no node is asked.
    assert_message(&fleet(&[]), 1, &["the image's own word"]);
    assert!(nodes.calls("srun").is_empty());

    place.registry.put_image("2.8-unverified", &place.id);
    let target = format!("{}/team/torch:2.8-unverified", place.registry.host);
    assert_answer(&scene.program.run(&["push", SPEC, &target]), 0, &[&target]);
    let run = fleet(&[]);
    assert_answer(&run, 1, &["node2", &format!("attested: {} by key ", place.image)]);
    let node = Place::node();
    let admit = |level: &str| {
        let gpu = ["--gpu", "NVIDIA H200", "--driver", "580.95.05", "--level", level, "--key", "lab.pub"];
        node.run(&[&["evidence", "admit", &place.image], &gpu[..]].concat())
    };
    assert_answer(&admit("full"), 0, &["admitted: level full on NVIDIA H200, driver 580.95.05"]);

    // Nodes are named where that is asked for, those that passed.
    let said = || json(&node.run(&["evidence", &place.image, "--key", "lab.pub", "--json"]));
    assert!(!said().to_string().contains("node1"), "{}", said());
    assert_answer(&fleet(&["--attest-nodes"]), 1, &["node2", "attested: "]);
    let gpus = |node: &str| vec![format!("GPU-{node}-0"), format!("GPU-{node}-1")];
    let named = ["node1", "node3", "node4"].map(|node| (node.to_owned(), gpus(node)));
    let expected = serde_json::json!(std::collections::BTreeMap::from(named));
    assert_eq!(said()["entries"][0]["nodes"], expected, "{}", said());

    // Most nodes fail: the image may be at fault, and what it proved is taken back.
    for node in ["node1", "node3"] {
        nodes.fault(node, "failed");
    }
    let run = fleet(&["--json"]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert!(json(&run)["attested"].as_str().is_some_and(|line| line.contains(" by key ")), "{}", run.stdout);
    assert_answer(&admit("quick"), 1, &["refused", "withdrawn on"]);
    // Keys are looked at before nodes are.
    let args = ["verify", &place.image, "--on", "slurm", "--attest", "--key", "missing.pem"];
    assert_message(&scene.program.run(&args), 2, &["missing.pem"]);
}

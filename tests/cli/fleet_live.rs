//! `verify --on` while nodes are asked: the table on a terminal, the lines of a log, Ctrl-C, and what the registry is asked for.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::fake_nodes::{FakeNodes, IMAGE};
use crate::fleet::{ask, scene};
use crate::program::Run;
use crate::terminal::screen_of;

fn slow_scene(seconds: &str) -> (crate::program::Program, FakeNodes) {
    let (mut program, nodes) = scene();
    program.set("FLEET_SECONDS", seconds);
    nodes.idle(2, "");
    (program, nodes)
}

#[test]
fn terminal_has_a_table_of_nodes_until_the_answer_stands() {
    let (program, nodes) = slow_scene("5");
    nodes.fault("node2", "no-image");
    let screen = screen_of(program.command(&["verify", IMAGE, "--on", "slurm"]), 100, "", None);
    screen.is_clean();
    let shown = String::from_utf8_lossy(&screen.bytes);
    for text in [
        "1 of 2 nodes done; outstanding: node1",
        "NODE   STATE",
        "node1  running the checks",
        "node2  report received",
    ] {
        assert!(shown.contains(text), "`{text}` is missing:\n{shown}");
    }
    assert_eq!(screen.code, 3, "{}", screen.text);
    for text in ["outstanding", "running the checks", "report received"] {
        assert!(!screen.text.contains(text), "`{text}` stays:\n{}", screen.text);
    }
    assert!(screen.text.contains("2 nodes: 1 no report, 1 ok"), "{}", screen.text);
}

#[test]
fn interrupt_takes_the_table_away() {
    let (program, nodes) = slow_scene("0");
    nodes.fault("node1", "hang");
    let own = env!("CARGO_BIN_EXE_envforge");
    let args = ["--foreground", "--signal=INT", "10", own, "verify", IMAGE, "--on", "slurm"];
    let screen = screen_of(program.command_of(Path::new("timeout"), &args), 100, "", None);
    screen.is_clean();
    let shown = String::from_utf8_lossy(&screen.bytes);
    assert!(shown.contains("node1  running the checks"), "{shown}");
    assert!(
        !screen.text.contains("running the checks") && screen.text.contains("interrupted"),
        "{}",
        screen.text
    );
}

#[test]
fn log_has_plain_lines_that_name_what_is_outstanding() {
    let (program, nodes) = slow_scene("11");
    nodes.fault("node2", "no-image");
    let run = ask(&program, "slurm", &[]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert!(lines.contains(&"1 of 2 nodes done; outstanding: node1"), "{lines:#?}");
    assert!(!(run.stderr + &run.stdout).contains('\u{1b}'));
    // Programs have a line for each change, as before.
    let (program, _nodes) = slow_scene("0");
    let run = ask(&program, "slurm", &["--progress", "json"]);
    let events = run.stderr;
    assert!(
        events.contains(r#"{"event":"step-output","id":"nodes","line":"node1: running the checks"}"#),
        "{events}"
    );
    assert!(events.contains(r#""line":"node2: report received"}"#), "{events}");
    assert!(!events.contains("table"), "{events}");
}

/// The scheduler has the jobs and answers late: Ctrl-C, which a terminal sends to the whole group, waits for their numbers.
#[test]
fn interrupt_while_jobs_are_submitted_leaves_none() {
    let (program, nodes) = scene();
    nodes.idle(2, "");
    nodes.write("late", "");
    let mut command = program.command(&["verify", IMAGE, "--on", "slurm", "--as-they-free", "reports"]);
    let child = command.process_group(0).spawn().expect("it starts");
    let end = Instant::now() + Duration::from_secs(30);
    while nodes.read("submitted").lines().count() < 2 {
        assert!(Instant::now() < end, "{}", nodes.read("calls"));
        std::thread::sleep(Duration::from_millis(20));
    }
    Command::new("kill").args(["-INT", "--", &format!("-{}", child.id())]).status().expect("kill");
    let run = Run::of(&child.wait_with_output().expect("a child of ours"));
    assert_eq!(run.code, 130, "{}", run.stderr);
    assert_eq!(nodes.calls("scancel"), [" scancel --quiet --me 1 2"]);
}

/// However often it is asked, a node fetches the image once.
#[test]
fn node_fetches_the_image_once() {
    let (program, nodes) = scene();
    nodes.idle(3, "");
    nodes.write("empty", "");
    nodes.write("refuse-many", "");
    nodes.fault("node2", "failed");
    let fetched = || {
        let pulls = |node: usize| {
            let call = format!("node{node} docker pull {IMAGE}");
            nodes.calls("docker").iter().filter(|line| **line == call).count()
        };
        [1, 2, 3].map(pulls)
    };
    // Its suspect is asked again in the same call.
    let run = ask(&program, "slurm", &["--drain"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let checks = |node: &str| {
        nodes.calls("docker").iter().filter(|call| call.starts_with(&format!("{node} docker run "))).count()
    };
    assert_eq!((checks("node1"), checks("node2"), fetched()), (1, 2, [1, 1, 1]));
    assert_eq!(ask(&program, "ssh:node1", &[]).code, 0);
    assert_eq!((checks("node1"), fetched()), (2, [1, 1, 1]));
}

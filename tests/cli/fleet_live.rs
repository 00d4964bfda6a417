//! `verify --on` while nodes are asked: the table on a terminal, the lines of a log, Ctrl-C, and what the registry is asked for.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::fake_nodes::{FakeNodes, IMAGE};
use crate::fleet::{ask, scene};
use crate::program::{Program, Run};
use crate::terminal::screen_with;

/// The checks of a node wait in their middle until they may go on.
fn waiting_scene() -> (Program, FakeNodes) {
    let (program, nodes) = scene();
    nodes.idle(2, "");
    nodes.write("wait", "");
    (program, nodes)
}

fn go_on(program: &Program) {
    std::fs::remove_file(program.path("nodes/wait")).expect("nothing went on yet");
}

/// A deadline that no machine reaches for being slow.
const ASKED: [&str; 8] = ["verify", IMAGE, "--on", "slurm", "--pull-deadline", "120", "--deadline", "300"];

#[test]
fn terminal_has_a_table_of_nodes_until_the_answer_stands() {
    let (program, nodes) = waiting_scene();
    nodes.fault("node2", "no-image");
    let table = [
        "1 of 2 nodes done; outstanding: node1",
        "NODE   STATE",
        "node1  running the checks",
        "node2  report received",
    ];
    let screen = screen_with(program.command(&ASKED), 100, &table, &mut |_| go_on(&program));
    screen.is_clean();
    let shown = String::from_utf8_lossy(&screen.bytes);
    for text in table {
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
    let (program, nodes) = scene();
    nodes.idle(2, "");
    nodes.fault("node1", "hang");
    let mut interrupt = |id| kill_process(id, Signal::INT).expect("it waits for the node");
    let screen = screen_with(program.command(&ASKED), 100, &["node1  running the checks"], &mut interrupt);
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
    let (program, nodes) = waiting_scene();
    nodes.fault("node2", "no-image");
    let mut child = program.command(&ASKED).spawn().expect("it starts");
    let mut said = String::new();
    for line in BufReader::new(child.stderr.take().expect("it is caught")).lines().map_while(Result::ok) {
        if line == "1 of 2 nodes done; outstanding: node1" && !said.contains(&line) {
            go_on(&program);
        }
        said += &(line + "\n");
    }
    let run = Run::of(&child.wait_with_output().expect("a child of ours"));
    assert_eq!(run.code, 3, "{said}");
    assert!(said.contains("1 of 2 nodes done; outstanding: node1\n"), "{said}");
    assert!(!(said + &run.stdout).contains('\u{1b}'));
    // Programs have a line for each change, as before.
    let (program, nodes) = scene();
    nodes.idle(2, "");
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
    let end = Instant::now() + Duration::from_mins(5);
    while nodes.read("submitted").lines().count() < 2 {
        assert!(Instant::now() < end, "{}", nodes.read("calls"));
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process_group(Pid::from_child(&child), Signal::INT).expect("it waits for the jobs");
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

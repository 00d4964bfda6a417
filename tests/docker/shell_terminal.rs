//! `shell` as a terminal and as a pipe.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use crate::program::Run;
use crate::scene::{TAG, wait_until};
use crate::shell::Shells;

/// Whatever the prompt ends in, what is printed is not what was typed.
const READY: &str = "printf 're%s\\n' ady\n";

#[test]
#[ignore = "needs docker"]
fn terminal_has_a_size_a_keyboard_and_an_exit_code() {
    let shells = Shells::new();
    let mut terminal = shells.terminal(&["shell", TAG], (100, 37));
    terminal.type_in(READY);
    terminal.wait_for("ready");
    terminal.type_in("stty size\n");
    terminal.wait_for("37 100");
    terminal.resize((120, 50));
    terminal.type_in("until stty size | grep -q '^50 '; do sleep 0.1; done; stty size\n");
    terminal.wait_for("50 120");
    terminal.type_in("sh -c 'echo sl''eeping; exec sleep 1000'\n");
    terminal.wait_for("sleeping");
    terminal.type_in("\x03");
    terminal.type_in("echo after=$?\n");
    terminal.wait_for("after=130");
    terminal.type_in("echo $TERM; exit 7\n");
    terminal.wait_for("xterm-256color");
    assert_eq!(terminal.code(), 7);
    assert_eq!(shells.listed(), Vec::<serde_json::Value>::new(), "it goes with its terminal");

    let mut terminal = shells.terminal(&["shell", TAG], (80, 24));
    terminal.type_in(READY);
    terminal.wait_for("ready");
    // Between a command and the prompt the end of the input is the terminal's own affair, and is lost.
    terminal.wait_for("\x1b[?2004h");
    terminal.type_in("\x04");
    assert_eq!(terminal.code(), 0, "the end of what is typed ends it");

    let python = ["python", "-c", "input('name? ')"];
    let mut terminal = shells.terminal(&[&["shell", TAG, "--"], &python[..]].concat(), (80, 24));
    terminal.wait_for("name? ");
    // Python hears a signal only once it waits, a moment after the prompt.
    wait_until("Python waits for its input", || is_waiting(&python));
    terminal.type_in("\x03");
    terminal.wait_for("KeyboardInterrupt");
    assert_eq!(terminal.code(), 130, "Python was interrupted, not envforge");
}

#[test]
#[ignore = "needs docker"]
fn second_terminal_joins_and_the_last_ends_the_container() {
    let shells = Shells::new();
    let mut first = shells.terminal(&["shell", TAG], (80, 24));
    first.type_in("echo $((41+1)) >/tmp/seen; printf 're%s\\n' ady\n");
    first.wait_for("ready");
    let mut second = shells.terminal(&["shell", TAG], (80, 24));
    second.wait_for("joining");
    second.type_in("cat /tmp/seen\n");
    second.wait_for("42");
    first.type_in("exit\n");
    first.wait_for("until its other terminals are closed");
    assert_eq!(first.code(), 0);
    assert_eq!(shells.listed().len(), 1);
    second.type_in("exit 3\n");
    assert_eq!(second.code(), 3);
    assert_eq!(shells.listed().len(), 0);
}

#[test]
#[ignore = "needs docker"]
fn shell_passes_pipes_signals_and_exit_codes() {
    let shells = Shells::new();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("exit 130", 130), ("kill -9 $$", 137)] {
        assert_eq!(shells.run(&["shell", TAG, "--", "bash", "-c", script]).code, code, "{script}");
    }
    let run = shells.run(&["shell", TAG, "--", "sh", "-c", "echo out; echo err >&2"]);
    assert_eq!(run.stdout, "out\n", "stdout is the program's alone");
    assert!(run.stderr.ends_with("err\n"), "{}", run.stderr);
    let error = "RuntimeError: CUDA error: no kernel image is available for execution on the device";
    for (code, is_explained) in [(3, true), (0, false)] {
        let script = format!("echo '{error}' >&2; exit {code}");
        let run = shells.run(&["shell", TAG, "--", "sh", "-c", &script]);
        assert_eq!((run.code, run.stdout.as_str()), (code, ""));
        assert_eq!(run.stderr.contains("no-code-for-gpu: "), is_explained, "{}", run.stderr);
    }
    assert_eq!(shells.run(&["shell", TAG, "--", "/no/such/program"]).code, 127);
    assert_eq!(shells.run(&["shell", "no-such-image-anywhere:1", "--", "true"]).code, 125);

    let sent: Vec<u8> =
        (0..10_000_000_u32).map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    let mut child =
        shells.command(&["shell", TAG, "--", "cat"]).stdin(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    let copy = sent.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&copy).expect("it reads all"));
    let output = child.wait_with_output().expect("a child of ours");
    writer.join().expect("it wrote all");
    assert!(output.stdout == sent, "10 MB came back: {} bytes", output.stdout.len());

    let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.1; done";
    let joined = ["shell", TAG, "--name", "other", "--detach"];
    assert_eq!(signalled(&shells, &["shell", TAG, "--", "sh", "-c", script]), 9);
    shells.succeed(&joined);
    assert_eq!(
        signalled(&shells, &["shell", TAG, "--", "sh", "-c", script]),
        9,
        "in a container that runs, too"
    );
    shells.succeed(&["stop", "other"]);
    assert_eq!(shells.listed().len(), 0);
}

/// Whether a process of this machine with those arguments sleeps.
fn is_waiting(arguments: &[&str]) -> bool {
    let line = arguments.join("\0") + "\0";
    std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok).any(|entry| {
        let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        read("cmdline") == line
            && read("stat").rsplit(") ").next().is_some_and(|state| state.starts_with('S'))
    })
}

/// Starts it, waits for its first line, sends SIGTERM, gives the exit code.
fn signalled(shells: &Shells, args: &[&str]) -> i32 {
    let mut child = shells.command(args).spawn().expect("it starts");
    let mut line = String::new();
    let mut lines = BufReader::new(child.stdout.take().expect("piped"));
    lines.read_line(&mut line).expect("text");
    assert_eq!(line, "ready\n");
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").arg(id).status().expect("kill starts").success());
    Run::of(&child.wait_with_output().expect("a child of ours")).code
}

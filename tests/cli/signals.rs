//! Signals that end a command.

use std::os::unix::net::UnixListener;
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::program;
use crate::program::Run;

/// Sends the signal while `ps` waits for an engine that accepts the connection and never answers.
fn run_until(signal: Signal) -> Run {
    let program = program();
    let socket = program.path("docker.sock");
    let listener = UnixListener::bind(&socket).expect("a socket of ours");
    let (sender, accepted) = mpsc::channel();
    std::thread::spawn(move || drop(sender.send(listener.accept())));
    let program = program.with("DOCKER_HOST", format!("unix://{}", socket.display()));
    let child = program.command(&["ps"]).spawn().expect("the program starts");
    let connection = accepted.recv_timeout(Duration::from_mins(5)).expect("`ps` asks the engine");
    kill_process(Pid::from_child(&child), signal).expect("the program has not ended by itself");
    let run = Run::of(&child.wait_with_output().expect("its output"));
    drop(connection);
    run
}

#[test]
fn hangup_and_terminate_end_a_command_like_ctrl_c() {
    let ctrl_c = run_until(Signal::INT);
    assert_eq!(ctrl_c.code, 130, "{}", ctrl_c.stderr);
    assert!(ctrl_c.stderr.contains("interrupted: cancelling and cleaning up"), "{}", ctrl_c.stderr);
    for signal in [Signal::TERM, Signal::HUP] {
        let run = run_until(signal);
        assert_eq!((run.code, run.stderr), (130, ctrl_c.stderr.clone()), "{signal:?}");
    }
}

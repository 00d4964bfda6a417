//! Standard output that cannot be written, or that is closed early.

use std::fs::OpenOptions;
use std::io::Read as _;

use crate::program::Run;
use crate::{assert_message, program};

#[test]
fn full_disk_on_stdout_is_an_error() {
    for args in [
        &["list", "--json"] as &[&str],
        &["list"],
        &["plan", "pytorch-cuda:2.8-cu128", "--target", "any"],
        &["generate", "schema"],
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("the device");
        let run = program().command(args).stdout(full).output().expect("the program starts");
        assert_message(&Run::of(&run), 3, &["cannot write to standard output: No space left on device"]);
    }
}

#[test]
fn closed_pipe_on_stdout_ends_quietly() {
    let program = program();
    let mut child = program.command(&["list", "--all", "--json"]).spawn().expect("the program starts");
    let mut first = [0];
    let mut pipe = child.stdout.take().expect("a pipe");
    pipe.read_exact(&mut first).expect("it prints");
    drop(pipe);
    let run = Run::of(&child.wait_with_output().expect("its end"));
    assert_eq!((run.code, run.stderr.as_str(), first), (0, "", *b"{"));
}

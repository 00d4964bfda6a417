//! A program on a pseudo-terminal: what it is answered, and everything it shows.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::program::Run;

/// Runs a program to its end with a terminal for all three streams; `typed` waits in it from the start. Both streams are in `stdout`.
pub(crate) fn run_on_terminal(mut command: Command, typed: &str) -> Run {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it is ours");
    let name = ptsname(&master, Vec::new()).expect("it has a name");
    let path = Path::new(name.to_str().expect("a path"));
    let slave = || Stdio::from(File::options().read(true).write(true).open(path).expect("the other end"));
    command.stdin(slave()).stdout(slave()).stderr(slave());
    let mut child = command.spawn().expect("the program starts");
    // It holds the other end open: the output ends when the program does.
    drop(command);
    let mut master = File::from(master);
    master.write_all(typed.as_bytes()).expect("the terminal takes it");
    let mut shown = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = master.read(&mut buffer) {
        shown.extend_from_slice(&buffer[..read]);
    }
    let status = child.wait().expect("the program ends");
    let stdout = String::from_utf8_lossy(&shown).replace("\r\n", "\n");
    Run { code: status.code().unwrap_or(-1), stdout, stderr: String::new() }
}

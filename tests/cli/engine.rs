//! Engines that do not answer, or have no image.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;

use crate::gpu_daemon::GpuDaemon;
use crate::program::Run;
use crate::{assert_message, program, transcript};

const SPEC: &str = "pytorch-cuda:2.8-cu128";

#[test]
fn engine_not_running_is_reported() {
    let program = program().with("DOCKER_HOST", "unix:///nonexistent.sock");
    for command in ["lock", "build"] {
        let run = program.run(&[command, "pytorch-cuda:2.8-cu128"]);
        assert_message(&run, 3, &["/nonexistent.sock"]);
        insta::assert_snapshot!(format!("engine_not_running_{command}"), transcript(&program, &run));
    }
    let run = program.run(&["export", "dockerfile", "pytorch-cuda:2.8-cu128", "out"]);
    assert_message(&run, 3, &["/nonexistent.sock"]);
    assert!(!program.path("out").exists());
}

#[test]
fn missing_image_is_reported() {
    let program = program();
    let socket = program.path("docker.sock");
    let requests = GpuDaemon::default().listen(&socket);
    let program = program.with("DOCKER_HOST", format!("unix://{}", socket.display()));
    for (args, code, says) in [
        (&["verify", SPEC][..], 3, &["no image of", "on this engine", "envforge build"][..]),
        (&["verify", "127.0.0.1:9/no/such:image"], 3, &["127.0.0.1:9/no/such:image", "hint:"]),
        (&["verify", SPEC, "--last"], 1, &["no verification report for"]),
    ] {
        assert_message(&program.run(args), code, says);
    }
    assert!(!requests.contain("/containers/create") && requests.tags().is_empty());
}

/// Root may open every socket, so as root the program runs as another user.
#[test]
fn no_permission_on_the_socket() {
    let program = program();
    let socket = program.path("docker.sock");
    let _listener = UnixListener::bind(&socket).expect("a socket of ours");
    let mode = |path: &std::path::Path, bits: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).expect("ours to change");
    };
    mode(&socket, 0o000);
    for folder in ["home", "cache", "state", "tmp"] {
        mode(&program.path(folder), 0o777);
    }
    mode(&program.path(""), 0o755);
    let program = program.with("DOCKER_HOST", format!("unix://{}", socket.display()));
    let binary = program.path("envforge");
    // By another process: a file this one has open for writing would be inherited by programs other tests start meanwhile,
    // and then it cannot be run.
    let copied = std::process::Command::new("cp").arg(env!("CARGO_BIN_EXE_envforge")).arg(&binary).status();
    assert!(copied.expect("cp").success(), "a copy anybody may run");
    mode(&binary, 0o755);
    let mut command = program.command_of(&binary, &["build", "pytorch-cuda:2.8-cu128"]);
    if is_root() {
        command.uid(65534).gid(65534);
    }
    let run = Run::of(&command.output().expect("the program starts"));
    assert_message(&run, 3, &["permission", "docker.sock"]);
    insta::assert_snapshot!(transcript(&program, &run));
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

#[test]
fn response_of_another_server_is_rejected() {
    let program = program();
    let socket = program.path("other.sock");
    let listener = UnixListener::bind(&socket).expect("a socket of ours");
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let program = program.with("DOCKER_HOST", format!("unix://{}", socket.display()));
    let run = program.run(&["build", "pytorch-cuda:2.8-cu128"]);
    assert_message(&run, 3, &["the first request", "hint:"]);
}

#[test]
fn invalid_engine_address_is_rejected() {
    let program = program().with("DOCKER_HOST", "carrier-pigeon://loft");
    let run = program.run(&["build", "pytorch-cuda:2.8-cu128"]);
    assert_message(&run, 2, &["carrier-pigeon", "DOCKER_HOST"]);
}

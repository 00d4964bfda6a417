//! An engine whose disk is full. Shells on Podman, on Docker without root, and on an engine that is restarted meanwhile.
//! `tests/engines.sh` starts the engines and runs this.

use std::process::{Command, Stdio};

use crate::engine_table::docker;
use crate::program::Run;
use crate::scene::{SPEC, Scene, TAG, assert_message, wait_until};
use crate::shell::Shells;
use crate::shell_owner::assert_files_are_the_callers;
use crate::shell_services::{keys, page};

/// An engine on a small disk.
const SMALL: &str = "ENVFORGE_TEST_SMALL_ENGINE";
/// The shell command that gives it room.
const GROW: &str = "ENVFORGE_TEST_GROW";

#[test]
#[ignore = "by hand: needs an engine on a small disk: run tests/engines.sh"]
fn full_engine_disk_is_reported_and_next_build_works() {
    let address = std::env::var(SMALL).expect("tests/engines.sh names the engine");
    let scene = Scene::new().set("DOCKER_HOST", &address);
    scene.succeed(&["lock", SPEC]);
    scene.fail(&["build", SPEC], 3, &["the engine's disk is full", "hint:"]);
    scene.assert_no_temporary_files();
    assert_eq!(docker(&address, &["ps", "-aq"]), "", "a container is left");
    assert_eq!(docker(&address, &["images", "-q", "envforge-scratch"]), "", "a private tag is left");
    assert_eq!(docker(&address, &["images", "-q", "pytorch-cuda"]), "", "it got a tag");

    let grow = std::env::var(GROW).expect("tests/engines.sh names the command");
    assert!(Command::new("sh").args(["-c", &grow]).status().expect("sh starts").success());
    scene.succeed(&["build", SPEC]);
    assert_ne!(docker(&address, &["images", "-q", TAG]), "");
}

/// `UID,UID=ADDRESS` words: engines, and who may call each; `UID:0` for one who is root inside.
const CALLED: &str = "ENVFORGE_TEST_SHELL_ENGINES";

#[test]
#[ignore = "by hand: needs Podman, and Docker without root: run tests/engines.sh"]
fn shell_files_belong_to_the_caller_on_every_engine() {
    let list = std::env::var(CALLED).expect("tests/engines.sh names the engines");
    for word in list.split_whitespace() {
        let (uids, address) = word.split_once('=').expect("UID,UID=ADDRESS");
        let shells = Shells::of(Scene::locked().set("DOCKER_HOST", address));
        shells.scene.succeed(&["build", SPEC]);
        for uid in uids.split(',') {
            let (uid, inside) = uid.split_once(':').unwrap_or((uid, uid));
            let [uid, inside] = [uid, inside].map(|id| id.parse().expect("a number"));
            assert_files_are_the_callers(&shells, uid, inside);
        }
    }
}

/// A Docker without root and without cgroups v2, whose ports are this machine's: `UID=ADDRESS`.
const ROOTLESS: &str = "ENVFORGE_TEST_ROOTLESS_DOCKER";

#[test]
#[ignore = "by hand: needs Docker without root: run tests/engines.sh"]
fn rootless_docker_serves_a_shell_and_reports_its_limits() {
    let word = std::env::var(ROOTLESS).expect("tests/engines.sh names the engine");
    let (uid, address) = word.split_once('=').expect("UID=ADDRESS");
    let uid = uid.parse().expect("a number");
    let shells = Shells::of(Scene::locked().set("DOCKER_HOST", address));
    shells.scene.succeed(&["build", SPEC]);
    let key = keys(&shells.scene.program.path("home"));
    let refused = shells.run_as(uid, &["shell", TAG, "--ssh", "--authorized-keys", &key]);
    assert_eq!(refused.code, 125, "{}", refused.stdout);
    assert_message(&refused.stderr, &["SSH requires a user other than root", "rootless Docker", "--vscode"]);
    let run = shells.run_as(uid, &["shell", TAG, "--memory", "1g", "--", "true"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("`--memory` has no effect"), "{}", run.stderr);
    let doctor = shells.run_as(uid, &["doctor", "-v"]);
    assert!(
        doctor.stdout.contains("rootless") && doctor.stdout.contains("--pids-limit"),
        "{}",
        doctor.stdout
    );

    // An agent lets its own user alone ask.
    let agent = shells.scene.program.path("agent");
    let id = uid.to_string();
    let mut running = Command::new("setpriv");
    running.args(["--reuid", &id, "--regid", &id, "--clear-groups", "ssh-agent", "-D", "-a"]).arg(&agent);
    let mut running = running.stdout(Stdio::null()).spawn().expect("setpriv starts");
    let mut listing = shells.command_as(uid, &["shell", TAG, "--ssh-agent", "--", "ssh-add", "-l"]);
    let listing = Run::of(&listing.env("SSH_AUTH_SOCK", &agent).output().expect("setpriv starts"));
    running.kill().expect("a child of ours");
    running.wait().expect("a child of ours");
    assert_eq!(
        (listing.code, listing.stdout.as_str()),
        (1, "The agent has no identities.\n"),
        "{}",
        listing.stderr
    );

    let served = shells.run_as(uid, &["shell", TAG, "--jupyter", "--detach", "--name", "lab"]);
    assert_eq!(served.code, 0, "{}", served.stderr);
    let (address, token) = served.stdout.trim().split_once("/lab?token=").expect("a token");
    let port = address.strip_prefix("http://127.0.0.1:").expect("the loopback").parse().expect("a port");
    assert!(page(port, &format!("/api/status?token={token}")).starts_with("HTTP/1.1 200"));
    assert!(page(port, "/api/status").starts_with("HTTP/1.1 403"));
    assert!(shells.run_as(uid, &["ps"]).stdout.contains("lab"));
    let stopped = shells.run_as(uid, &["stop", "lab", "--time", "2"]);
    assert_eq!((stopped.code, stopped.stdout.as_str()), (0, "lab\n"), "{}", stopped.stderr);
}

/// An engine whose containers run on without its daemon.
const RESTARTED: &str = "ENVFORGE_TEST_RESTARTED_ENGINE";
/// The shell command that kills its daemon, which then starts again.
const KILL: &str = "ENVFORGE_TEST_KILL_DAEMON";
/// The shell command that restarts its whole machine.
const RESTART: &str = "ENVFORGE_TEST_RESTART_MACHINE";

/// Runs the shell command of a variable and waits for another daemon to answer.
fn restart(address: &str, variable: &str) {
    let command = std::env::var(variable).expect("tests/engines.sh names the command");
    assert!(Command::new("sh").args(["-c", &command]).status().expect("sh starts").success());
    let answers = || Command::new("docker").args(["-H", address, "version"]).output();
    wait_until("the engine comes back", || answers().expect("docker starts").status.success());
}

/// Names and states of all shells, sorted.
fn states(shells: &Shells) -> Vec<String> {
    let word = |row: &serde_json::Value, key: &str| row[key].as_str().expect("text").to_owned();
    let mut states: Vec<_> =
        shells.listed().iter().map(|row| word(row, "name") + " " + &word(row, "state")).collect();
    states.sort();
    states
}

#[test]
#[ignore = "by hand: needs an engine to restart: run tests/engines.sh"]
fn shells_report_their_state_after_an_engine_restart() {
    let address = std::env::var(RESTARTED).expect("tests/engines.sh names the engine");
    let shells = Shells::of(Scene::locked().set("DOCKER_HOST", &address));
    shells.scene.succeed(&["build", SPEC]);
    let script = "echo begun; sleep 1000";
    shells.succeed(&["shell", TAG, "--name", "job", "--detach", "--", "sh", "-c", script]);
    shells.succeed(&["shell", TAG, "--new", "--name", "work", "--detach"]);
    let mut terminal = shells.terminal(&["shell", "work", "--attach"], (80, 24));
    terminal.type_in("export KEPT=me; printf 're%s\\n' ady\n");
    terminal.wait_for("ready");
    let waits = shells.command(&["shell", TAG, "--new", "--name", "waits", "--", "sleep", "1000"]).spawn();
    let waits = waits.expect("the program starts");
    let all = ["job running", "waits running", "work running"];
    wait_until("all three run", || states(&shells) == all);

    // The daemon dies, its containers do not.
    restart(&address, KILL);
    assert_eq!(states(&shells), all);
    let waited = Run::of(&waits.wait_with_output().expect("a child of ours"));
    assert_eq!(waited.code, 125, "{}", waited.stderr);
    assert_message(&waited.stderr, &["lost connection to the engine", "envforge ps"]);
    assert_ne!(terminal.code(), 0, "a lost terminal is no success");
    assert_eq!(shells.succeed(&["logs", "job"]), "begun");
    let mut terminal = shells.terminal(&["shell", "work", "--attach"], (80, 24));
    terminal.type_in("echo still=$KEPT\n");
    terminal.wait_for("still=me");
    drop(terminal);
    assert_eq!(shells.succeed(&["stop", "waits", "--time", "1"]), "waits");
    assert_eq!(states(&shells), [all[0], all[2]]);

    // The whole machine goes down and comes back.
    restart(&address, RESTART);
    assert_eq!(states(&shells), ["job exited", "work exited"]);
    assert_eq!(shells.succeed(&["logs", "job"]), "begun");
    let lost = shells.run(&["shell", "work", "--attach"]);
    assert_eq!(lost.code, 125, "{}", lost.stdout);
    assert_message(&lost.stderr, &["work", "hint:"]);
    assert_eq!(shells.succeed(&["shell", TAG, "--", "echo", "again"]), "again", "what ended is not joined");
    assert_eq!(shells.succeed(&["stop", "job"]), "job");
    assert_eq!(shells.succeed(&["stop", "--all"]), "work");
    assert_eq!(states(&shells), [""; 0]);
}

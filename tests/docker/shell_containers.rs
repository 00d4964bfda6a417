//! `shell --detach`, `ps`, `logs`, `stop`: what they say is what the engine has.

use std::io::{BufRead as _, BufReader};

use crate::engine::docker;
use crate::program::Run;
use crate::scene::{TAG, assert_message, wait_until};
use crate::shell::Shells;

fn states(shells: &Shells) -> Vec<(String, String)> {
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().expect(key).to_owned();
    shells.listed().iter().map(|row| (text(row, "name"), text(row, "state"))).collect()
}

#[test]
#[ignore = "needs docker"]
fn detached_command_is_listed_read_and_stopped() {
    let shells = Shells::new();
    let script = "echo begun; echo aside >&2; sleep 1000";
    let name = shells
        .succeed(&["shell", TAG, "--name", "run1", "--detach", "--port", "0:6006", "--", "sh", "-c", script]);
    assert_eq!(name, "run1");
    let row = &shells.listed()[0];
    assert_eq!((row["spec"].as_str(), row["gpu"].is_null()), (Some(TAG), true));
    let folder = shells.project().canonicalize().expect("it is there");
    assert_eq!(row["folder"].as_str(), folder.to_str());
    assert_eq!(
        (row["ports"][0]["address"].as_str(), row["ports"][0]["container"].as_u64()),
        (Some("127.0.0.1"), Some(6006))
    );
    let shown = shells.succeed(&["ps"]);
    assert!(shown.starts_with("NAME") && shown.contains("->6006") && shown.contains("Up "), "{shown}");

    let mut logs = shells.run(&["logs", "run1"]);
    wait_until("the command writes", || {
        logs = shells.run(&["logs", "run1"]);
        !logs.stdout.is_empty() && !logs.stderr.is_empty()
    });
    assert_eq!((logs.stdout.as_str(), logs.stderr.as_str()), ("begun\n", "aside\n"));

    let inside = shells.succeed(&["shell", TAG, "--", "sh", "-c", "cat /proc/*/cmdline | tr '\\0' ' '"]);
    assert!(inside.contains("sleep 1000"), "the second call is in the same container: {inside}");
    // By its name from anywhere: no image of that name is looked for.
    let elsewhere = |args: &[&str]| {
        let mut command = shells.command(args);
        command.current_dir(shells.scene.program.path("home"));
        Run::of(&command.output().expect("the program starts"))
    };
    let named =
        elsewhere(&["shell", "run1", "--", "sh", "-c", "pwd; cat /proc/*/cmdline | tr '\\0' ' '; exit 7"]);
    assert_eq!(named.code, 7, "{}", named.stderr);
    assert!(
        named.stdout.starts_with("/workspace\n") && named.stdout.contains("sleep 1000"),
        "{}",
        named.stdout
    );
    assert!(named.stderr.contains("joining running container `run1`"), "{}", named.stderr);
    let refused = elsewhere(&["shell", "run1", "--gpus", "none", "--", "true"]);
    assert_eq!(refused.code, 125);
    assert_message(&refused.stderr, &["cannot change `--gpus`: `run1` is running"]);
    let image = elsewhere(&["shell", "run1", "--new", "--", "true"]);
    assert_eq!(image.code, 125, "a new container is of an image");
    assert_message(&image.stderr, &["image `run1` not found"]);
    let refused = shells.run(&["shell", TAG, "--memory", "1g", "--", "true"]);
    assert_eq!(refused.code, 125);
    assert_message(&refused.stderr, &["`run1` is running", "--memory", "envforge stop run1", "--new"]);
    let taken = shells.run(&["shell", TAG, "--new", "--name", "run1", "--", "true"]);
    assert_eq!(taken.code, 125);
    assert_message(&taken.stderr, &["`run1`", "--name"]);
    assert_eq!(shells.script("pgrep -c sleep || true"), "0", "a new one has nothing of the first");

    assert_eq!(shells.succeed(&["stop", "run1", "--time", "1"]), "run1");
    assert_eq!(shells.listed().len(), 0);
    let gone = shells.run(&["stop", "run1"]);
    assert_eq!(gone.code, 1);
    assert_message(&gone.stderr, &["no container is named `run1`"]);
    shells.scene.assert_only_tags_added();
}

#[test]
#[ignore = "needs docker"]
fn ps_reports_containers_that_ended_or_were_killed() {
    let shells = Shells::new();
    shells.succeed(&["shell", TAG, "--name", "short", "--detach", "--", "sh", "-c", "echo done; exit 5"]);
    shells.succeed(&["shell", TAG, "--new", "--name", "long", "--detach"]);
    wait_until("the command ends", || states(&shells)[1].1 == "exited");
    let state = |name: &str| states(&shells).into_iter().find(|(known, _)| known == name).expect("listed").1;
    assert_eq!((state("short").as_str(), state("long").as_str()), ("exited", "running"));
    assert_eq!(shells.succeed(&["logs", "short"]), "done", "a command that ended can be read");
    assert!(shells.succeed(&["ps"]).contains("Exited (5)"));

    docker(&["kill", "envforge-long"]);
    assert_eq!(state("long"), "exited");
    docker(&["rm", "-f", "envforge-short"]);
    assert_eq!(states(&shells).len(), 1);
    assert_eq!(shells.succeed(&["stop", "--all"]), "long");
    assert_eq!(shells.listed().len(), 0);
}

#[test]
#[ignore = "needs docker"]
fn next_call_removes_the_container_of_a_killed_envforge() {
    let shells = Shells::new();
    // It ends when the test says so, in the folder that both see.
    let script = "echo begun; until [ -e end ]; do sleep 0.1; done";
    let mut child = shells.command(&["shell", TAG, "--", "sh", "-c", script]).spawn().expect("it starts");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    stdout.read_line(&mut line).expect("text");
    assert_eq!(line, "begun\n");
    child.kill().expect("a child of ours");
    child.wait().expect("a child of ours");
    let running = states(&shells);
    assert!(matches!(&running[..], [(_, state)] if state == "running"), "what runs goes on: {running:?}");
    let container = docker(&["ps", "-q", "--filter", "label=io.envforge.shell"]);
    std::fs::write(shells.project().join("end"), "").expect("a folder of ours");
    wait_until("the container ends", || {
        docker(&["inspect", "--format", "{{.State.Status}}", &container]) == "exited"
    });
    // The first call removes it, the second sees that it is gone.
    shells.listed();
    assert_eq!(states(&shells).len(), 0, "what ended and nobody waits for goes");
}

#[test]
#[ignore = "needs docker"]
fn attach_finds_a_lost_terminal_in_tmux() {
    let shells = Shells::new();
    let none = shells.run(&["shell", "--attach"]);
    assert_eq!(none.code, 125);
    assert_message(&none.stderr, &["no container is running for this directory", "--detach"]);
    shells.succeed(&["shell", TAG, "--name", "work", "--detach"]);
    let mut first = shells.terminal(&["shell", "work", "--attach"], (80, 24));
    first.type_in("export KEPT=me; printf 're%s\\n' ady\n");
    first.wait_for("ready");
    drop(first);
    let mut second = shells.terminal(&["shell", "--attach"], (80, 24));
    second.type_in("echo still=$KEPT\n");
    second.wait_for("still=me");
    drop(second);
    for by in [TAG, "work"] {
        let mut plain = shells.terminal(&["shell", by], (80, 24));
        plain.wait_for("--attach");
        plain.type_in("exit\n");
        assert_eq!(plain.code(), 0);
    }
    assert_eq!(states(&shells), [("work".to_owned(), "running".to_owned())]);
    shells.succeed(&["stop", "work"]);
}

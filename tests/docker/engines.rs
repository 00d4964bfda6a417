//! The same lock on every engine of a list: the same content. And an engine whose disk is full. `tests/engines.sh` starts
//! the engines and runs this.

use std::fmt::Write as _;
use std::io::BufReader;
use std::process::{Command, Stdio};
use std::time::Instant;

use envforge::content_digest::content_digest_of_tar;

use crate::scene::{SPEC, Scene, TAG};

/// `NAME=ADDRESS` words; the first one is this machine's own engine.
const LIST: &str = "ENVFORGE_TEST_ENGINES";
/// Where the table goes.
const TABLE: &str = "ENVFORGE_TEST_TABLE";

fn docker(address: &str, args: &[&str]) -> String {
    let output = Command::new("docker").args(["-H", address]).args(args).output().expect("docker starts");
    assert!(output.status.success(), "docker {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn content_on(address: &str) -> String {
    let container = docker(address, &["create", TAG]);
    let mut export = Command::new("docker");
    export.args(["-H", address, "export", &container]).stdout(Stdio::piped());
    let mut export = export.spawn().expect("docker starts");
    let digest = content_digest_of_tar(BufReader::new(export.stdout.take().expect("it is piped")));
    export.wait().expect("a child of ours");
    docker(address, &["rm", &container]);
    digest.expect("a digest")
}

#[test]
#[ignore = "needs several engines: run tests/engines.sh"]
fn one_lock_gives_the_same_content_on_every_engine() {
    let list = std::env::var(LIST).expect("tests/engines.sh names the engines");
    let mut scene = Scene::locked();
    let mut lock = None;
    let mut table =
        "| engine | version | `build --locked` | content digest |\n|---|---|---|---|\n".to_owned();
    let mut digests = Vec::new();
    for word in list.split_whitespace() {
        let (name, address) = word.split_once('=').expect("NAME=ADDRESS");
        let version = docker(address, &["version", "--format", "{{.Server.Version}}"]);
        scene = scene.set("DOCKER_HOST", address);
        let started = Instant::now();
        let run = scene.program.run(&["build", SPEC, "--locked"]);
        let seconds = started.elapsed().as_secs();
        if run.code == 0 {
            let digest = content_on(address);
            writeln!(table, "| {name} | {version} | {seconds} s | `{}` |", &digest[..16]).expect("a string");
            docker(address, &["rmi", TAG]);
            digests.push((name.to_owned(), digest));
        } else {
            let why = run.stderr.lines().find(|line| line.contains("error:")).unwrap_or_default().to_owned();
            writeln!(table, "| {name} | {version} | failed: {why} | |").expect("a string");
            digests.push((name.to_owned(), run.stderr));
        }
        // The first build records the content; the others are held to it.
        let now = scene.lock();
        assert_eq!(&now, lock.get_or_insert_with(|| now.clone()), "the lock changed on {name}");
    }
    std::fs::write(std::env::var(TABLE).expect("tests/engines.sh names the file"), &table).expect("writable");
    assert!(digests.iter().all(|(_, digest)| *digest == digests[0].1), "{table}\n{digests:#?}");
}

/// An engine on a small disk.
const SMALL: &str = "ENVFORGE_TEST_SMALL_ENGINE";
/// The shell command that gives it room.
const GROW: &str = "ENVFORGE_TEST_GROW";

#[test]
#[ignore = "needs an engine on a small disk: run tests/engines.sh"]
fn a_full_disk_of_the_engine_ends_clearly_and_the_next_build_works() {
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

//! One cache with several state directories: two users of a machine, or a CI that restores a cache.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use crate::engine::docker;
use crate::scene::{SPEC, Scene, TAG, copy_folder, files_below, shared_cache};

const LOCK: &str = "team.lock";
const BUILD: [&str; 5] = ["build", SPEC, "--locked", "--lockfile", LOCK];

/// A call of the program with a state directory, a new one of which has no more than the record of the base.
fn of_state(scene: &Scene, name: &str, args: &[&str]) -> Command {
    let state = scene.program.path(name);
    if !state.exists() {
        copy_folder(&scene.program.path("state/base"), &state.join("base"));
    }
    let mut command = scene.program.command(args);
    command.env("ENVFORGE_STATE_DIR", state);
    command
}

#[track_caller]
fn succeed(what: &str, child: Child) {
    let output = child.wait_with_output().expect("a child of ours");
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The records of byte code in the shared cache.
fn byte_code() -> BTreeSet<PathBuf> {
    let is_code = |path: &PathBuf| path.components().any(|part| part.as_os_str() == "byte-code-2");
    let is_whole = |path: &PathBuf| !path.to_string_lossy().contains("/.envforge-");
    let folders = ["layers", "records"].map(|folder| files_below(&shared_cache().join(folder)));
    folders.into_iter().flatten().filter(is_code).filter(is_whole).collect()
}

/// Asserts that a state directory still has the records of its image and of all byte code.
#[track_caller]
fn assert_has_its_records(scene: &Scene, state: &str) {
    let target = scene.program.path(format!("{state}.tar")).to_string_lossy().into_owned();
    // Layers of byte code are written from what the cache keeps of each wheel.
    succeed(state, of_state(scene, state, &["export", "oci", TAG, &target]).spawn().expect("it starts"));
    std::fs::remove_file(target).expect("written");
    let (known, image) = (byte_code(), docker(&["inspect", "-f", "{{.Id}}", TAG]));
    succeed(state, of_state(scene, state, &BUILD).spawn().expect("it starts"));
    assert_eq!(byte_code(), known, "`{state}` compiled again");
    assert_eq!(docker(&["inspect", "-f", "{{.Id}}", TAG]), image);
}

#[test]
#[ignore = "nightly: needs docker and makes every layer twice, three minutes"]
fn another_state_builds_with_the_cache_between_a_build_and_its_export() {
    let scene = Scene::locked();
    std::fs::write(scene.program.path(LOCK), scene.lock()).expect("ours");
    for state in ["state", "another"] {
        succeed(state, of_state(&scene, state, &BUILD).spawn().expect("it starts"));
    }
    for state in ["state", "another"] {
        assert_has_its_records(&scene, state);
    }
    scene.assert_only_tags_added();
}

#[test]
#[ignore = "nightly: needs docker and compiles a hundred wheels three times, some minutes"]
fn three_states_build_with_one_cache_at_once_and_each_exports_its_image() {
    let scene = Scene::fresh();
    scene.succeed(&["lock", SPEC, "--lockfile", LOCK]);
    let states = ["one", "two", "three"];
    let start = |state: &&'static str| of_state(&scene, state, &BUILD).spawn().expect("it starts");
    let builds: Vec<Child> = states.iter().map(start).collect();
    states.iter().zip(builds).for_each(|(state, build)| succeed(state, build));
    for state in states {
        assert_has_its_records(&scene, state);
    }
    scene.assert_only_tags_added();
}

/// As `prune --cache` of another state directory does at the worst moment.
#[test]
#[ignore = "needs docker"]
fn build_compiles_again_what_vanishes_from_the_cache() {
    let scene = Scene::fresh();
    scene.succeed(&["lock", SPEC, "--lockfile", LOCK]);
    let before = byte_code();
    let mut build = scene.program.command(&BUILD).spawn().expect("it starts");
    let mut removed = BTreeSet::new();
    while build.try_wait().expect("a child of ours").is_none() {
        for path in byte_code().difference(&before) {
            if removed.insert(path.clone()) {
                std::fs::remove_file(path).expect("the build removes none");
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    succeed("the build", build);
    assert!(!removed.is_empty(), "nothing vanished during the build: {removed:?}");
    scene.assert_only_tags_added();
}

//! Cache and state folders as they happen to be: read-only, each on a file system of its own, with what a killed process
//! left in them.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::program::Run;
use crate::scene::{SPEC, Scene, TAG, assert_message, files_below};

/// Runs the program where `folder` is a file system of its own, mounted with those options for this run only.
fn run_with_mount(scene: &Scene, folder: &str, options: &str, args: &[&str]) -> Run {
    let program = scene.program.command(args);
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "sh",
        "-c",
        r#"mount -t tmpfs -o "$1" tmpfs "$2" && shift 2 && exec "$@""#,
        "sh",
        options,
    ]);
    command.arg(scene.program.path(folder)).arg(program.get_program()).args(program.get_args());
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    for (name, _) in program.get_envs().filter(|(_, value)| value.is_none()) {
        command.env_remove(name);
    }
    let output = command.stdin(Stdio::null()).output().expect("unshare starts");
    Run::of(&output)
}

#[test]
#[ignore = "needs docker"]
fn error_names_a_read_only_directory_and_its_setting() {
    for (folder, setting) in [("cache", "ENVFORGE_CACHE_DIR"), ("state", "ENVFORGE_STATE_DIR")] {
        let scene = Scene::new();
        let path = scene.program.path(folder);
        let scene = scene.set(setting, path.to_string_lossy());
        let run = run_with_mount(&scene, folder, "ro,size=1m", &["lock", SPEC]);
        assert_eq!(run.code, 3, "{}", run.stderr);
        assert_message(&run.stderr, &[&path.to_string_lossy(), setting]);
        scene.assert_nothing_left();
    }
}

#[test]
#[ignore = "nightly: needs docker and makes a base from nothing, two minutes"]
fn build_works_with_the_state_on_another_file_system() {
    let scene = Scene::new();
    let run = run_with_mount(&scene, "state", "size=64m", &["build", SPEC]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(scene.added().tags.contains(TAG));
}

#[test]
#[ignore = "nightly: needs docker and makes a base again, two minutes; `kills` leaves such files too"]
fn lock_rewrites_half_written_files_of_a_killed_process() {
    let scene = Scene::new().with_downloads_only();
    scene.succeed(&["lock", SPEC, "--base-provider", "bootstrap"]);
    let lock = scene.lock();
    for record in files_below(&scene.program.path("state/base")) {
        std::fs::write(&record, "{\"schema\":1,\"co").expect("a record of ours");
    }
    let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let mut blobs = files_below(&scene.program.path("cache/sha256"));
    blobs.retain(|path| lock.contains(&name(path)));
    let size = |path: &&PathBuf| path.metadata().map_or(u64::MAX, |data| data.len());
    let smallest = blobs.iter().min_by_key(size).expect("the base has packages");
    // A copy: the blob may be a hard link, and no download goes on in a file that has another name.
    std::fs::copy(smallest, scene.program.path("cache/partial").join(name(smallest))).expect("same disk");
    std::fs::remove_file(smallest).expect("ours");
    scene.succeed(&["lock", SPEC, "--base-provider", "bootstrap"]);
    assert_eq!(scene.lock(), lock, "the same lock again");
    scene.assert_nothing_left();
}

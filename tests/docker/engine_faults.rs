//! The engine dies or restarts, and disks are full: exit 3 with one clear message, no tag, nothing left, and the next
//! run works.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cut::Cut;
use crate::disk::SmallDisk;
use crate::scene::{SPEC, Scene, TAG, assert_message};

/// Longer than the test: it heals the engine itself.
const AWAY: Duration = Duration::from_hours(1);

#[test]
#[ignore = "needs docker"]
fn build_leaves_nothing_when_the_engine_dies_during_it() {
    let scene = Scene::fresh();
    scene.succeed(&["lock", SPEC]);
    let engine = Cut::new();
    let scene = scene.set("DOCKER_HOST", engine.address());
    // The first load is that of base and system; it dies when it gets the layers of the wheels.
    engine.restart_at("/images/load", 1, AWAY);
    let run = scene.program.run(&["build", SPEC]);
    assert_eq!(engine.deaths(), 1, "nothing was loaded: {}", run.stderr);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert_message(&run.stderr, &["lost connection to the engine during loading an image", "hint:"]);
    scene.fail(&["build", SPEC], 3, &["engine"]);
    engine.heal();
    scene.succeed(&["build", SPEC]);
    assert!(scene.added().tags.contains(TAG));
    scene.assert_only_tags_added();
}

#[test]
#[ignore = "needs docker"]
fn build_leaves_nothing_when_the_engine_restarts_before_the_tag() {
    let engine = Cut::new();
    let scene = Scene::locked().set("DOCKER_HOST", engine.address());
    engine.restart_at("/tag?repo=pytorch-cuda", 0, Duration::from_secs(2));
    let run = scene.program.run(&["build", SPEC]);
    assert_eq!(engine.deaths(), 1, "the engine was never asked for the tag: {}", run.stderr);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert_message(&run.stderr, &["lost connection to the engine during tagging", "hint:"]);
    scene.assert_nothing_left();
    scene.succeed(&["build", SPEC]);
    assert!(scene.added().tags.contains(TAG));
}

/// A small disk, full to the last byte until it is freed.
struct FullDisk(SmallDisk);

impl FullDisk {
    /// Mounts it on a folder, which keeps nothing of what it holds now but the files of `keep`.
    fn on(folder: &Path, size: &str, keep: Option<&Path>) -> Self {
        let disk = SmallDisk::on(folder.to_owned(), size);
        if let Some(keep) = keep {
            let copied = Command::new("cp").arg("-a").arg(keep).arg(folder).status().expect("cp starts");
            assert!(copied.success());
        }
        let mut filler = std::fs::File::create(folder.join("filler")).expect("room for a name");
        while filler.write_all(&[0; 4096]).is_ok() {}
        Self(disk)
    }

    fn free(&self) {
        std::fs::remove_file(self.0.path().join("filler")).expect("the filler is there");
    }
}

#[test]
#[ignore = "needs docker"]
fn full_state_directory_is_reported_and_next_lock_works() {
    let scene = Scene::new();
    let state = scene.program.path("small-state");
    let disk = FullDisk::on(&state, "4m", Some(&scene.program.path("state/base")));
    let scene = scene.set("ENVFORGE_STATE_DIR", state.to_string_lossy());
    scene.fail(&["lock", SPEC], 3, &["No space left on device", "small-state"]);
    let left = crate::scene::files_below(&state);
    let half = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "lock") && path.to_string_lossy().contains("pytorch")
    };
    assert!(
        !left.iter().any(|path| half(path) || path.to_string_lossy().contains("/.envforge-")),
        "{left:?}"
    );
    scene.assert_nothing_left();
    disk.free();
    scene.succeed(&["lock", SPEC]);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "nightly: needs docker and makes a base from nothing, two minutes; a full state directory stays"]
fn full_cache_is_reported_and_next_lock_works() {
    let scene = Scene::new().with_empty_cache_for_locks();
    let cache = scene.program.path("cache");
    let disk = FullDisk::on(&cache, "800m", None);
    scene.fail(&["lock", SPEC, "--base-provider", "bootstrap"], 3, &["No space left on device"]);
    scene.assert_nothing_left();
    disk.free();
    scene.succeed(&["lock", SPEC, "--base-provider", "bootstrap"]);
    scene.assert_nothing_left();
}

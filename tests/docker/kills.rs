//! `kill -9` at moments of chance: the next run works, and nothing of the killed one is left.

use std::time::{Duration, Instant};

use crate::scene::{SPEC, Scene, TAG};

const ROUNDS: u32 = 10;

#[test]
#[cfg_attr(not(feature = "docker-more"), ignore = "needs docker: cargo test --features docker-more")]
fn a_killed_run_leaves_nothing_that_the_next_does_not_clear_away() {
    let scene = Scene::new();
    scene.succeed(&["build", SPEC]);
    let started = Instant::now();
    scene.succeed(&["build", SPEC, "--upgrade"]);
    let whole = started.elapsed();
    for round in 0..ROUNDS {
        let moment = whole.mul_f64(rand::random_range(0.0..1.0));
        // Some really build, so that the build itself is hit too.
        let more: &[&str] = if round % 4 == 0 { &["--no-cache"] } else { &[] };
        let mut child = scene
            .program
            .command(&[&["build", SPEC, "--upgrade"], more].concat())
            .spawn()
            .expect("the program starts");
        std::thread::sleep(moment);
        child.kill().expect("a child of ours");
        child.wait().expect("a child of ours");

        let run = scene.program.run(&["build", SPEC]);
        assert_eq!(run.code, 0, "killed after {moment:?} of {whole:?}: {}", run.stderr);
        assert!(scene.added().tags.contains(TAG), "killed after {moment:?}");
        scene.assert_only_tags_added();
    }
}

#[test]
#[cfg_attr(not(feature = "docker-more"), ignore = "needs docker: cargo test --features docker-more")]
fn a_base_whose_making_was_killed_is_made_by_the_next_run() {
    let scene = Scene::new().with_empty_cache();
    let mut child = scene
        .program
        .command(&["lock", SPEC, "--base-provider", "bootstrap"])
        .spawn()
        .expect("the program starts");
    std::thread::sleep(Duration::from_secs(6));
    child.kill().expect("a child of ours");
    child.wait().expect("a child of ours");
    scene.succeed(&["lock", SPEC, "--base-provider", "bootstrap"]);
    scene.assert_nothing_left();
    let temp = crate::scene::files_below(&scene.program.path("cache/temp"));
    assert!(temp.is_empty(), "left in the cache: {temp:?}");
}

//! Several specs in one build: two at a time, one failing does not stop the other, a table at the end.

use crate::scene::{SPEC, Scene, TAG};

#[test]
#[cfg_attr(not(feature = "docker"), ignore = "needs docker: cargo test --features docker")]
fn failing_build_does_not_stop_the_other() {
    let scene = Scene::new();
    let run = scene.program.run(&["build", "pytorch-cuda:2.9-cu118", SPEC, "pytorch-cuda:2.6-cu118"]);
    // The index of the tests has no 2.6: that one fails at its lock, outside of the program.
    assert_eq!(run.code, 3, "{}", run.stderr);
    let words: Vec<_> = run.stdout.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(words, ["refused", "built", "failed"], "{}", run.stdout);
    assert!(scene.added().tags.contains(TAG));
    scene.assert_only_tags_added();
}

#[test]
#[cfg_attr(not(feature = "docker"), ignore = "needs docker: cargo test --features docker")]
fn filter_builds_the_variants_it_matches() {
    let scene = Scene::new();
    let run = scene.succeed(&["build", "--all-supported", SPEC, "--dry-run"]);
    assert!(run.stdout.contains("checks before the tag"), "{}", run.stdout);
    scene.assert_nothing_left();
}

//! `kill -9` at moments of chance: the next run works, and nothing of the killed one is left.

use crate::scene::{SPEC, Scene, TAG, files_below, kill_when};

const ROUNDS: usize = 10;

#[test]
#[cfg_attr(not(feature = "docker"), ignore = "needs docker: cargo test --features docker")]
fn next_run_removes_what_a_killed_run_left() {
    let scene = Scene::new();
    scene.succeed(&["build", SPEC]);
    let build = ["build", SPEC, "--upgrade", "--progress", "json"];
    let events = scene.succeed(&build).stderr.lines().count();
    for round in 0..ROUNDS {
        // One really makes every layer, so that this is hit too.
        let more: &[&str] = if round == 1 { &["--no-cache"] } else { &[] };
        let child = scene.program.command(&[&build, more].concat()).spawn().expect("the program starts");
        let moment = rand::random_range(0..events);
        if round == 0 {
            // The image that is checked has a private tag: this kill leaves it for certain.
            assert!(kill_when(child, |line| line.contains("\"id\":\"checks")), "nothing was checked");
            let left = scene.added().tags;
            assert!(
                left.iter().any(|tag| tag.starts_with("envforge-scratch:")),
                "the kill left only {left:?}"
            );
        } else {
            let mut left = moment;
            kill_when(child, |_| {
                left.checked_sub(1).is_none_or(|next| std::mem::replace(&mut left, next) == 0)
            });
        }

        let run = scene.program.run(&["build", SPEC]);
        assert_eq!(run.code, 0, "killed at event {moment} of {events}: {}", run.stderr);
        assert!(scene.added().tags.contains(TAG), "killed at event {moment} of {events}");
        scene.assert_only_tags_added();
    }
}

#[test]
#[cfg_attr(not(feature = "docker"), ignore = "needs docker: cargo test --features docker")]
fn next_run_makes_the_base_that_a_killed_run_began() {
    let scene = Scene::new().with_downloads_only();
    let lock = ["lock", SPEC, "--base-provider", "bootstrap"];
    let child = scene.program.command(&[&lock[..], &["--progress", "json"]].concat()).spawn();
    assert!(kill_when(child.expect("it starts"), |line| line.contains("\"import:")), "no base was made");
    let temp = || files_below(&scene.program.path("cache/temp"));
    assert!(
        !scene.added().is_empty() || !temp().is_empty(),
        "the kill left nothing, so this test proves nothing"
    );
    scene.succeed(&lock);
    scene.assert_nothing_left();
    assert!(temp().is_empty(), "left in the cache: {:?}", temp());
}

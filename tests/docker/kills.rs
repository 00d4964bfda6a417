//! `kill -9` at moments of chance: the next run works, and nothing of the killed one is left.

use std::collections::BTreeMap;

use crate::scene::{SPEC, Scene, TAG, files_below, kill_when};

const BUILD: [&str; 5] = ["build", SPEC, "--upgrade", "--progress", "json"];
/// Kills of the long loop.
const ROUNDS: u32 = 30;

/// A number that chooses the moments: a new one each time, or that of a failed run.
struct Seed(u64);

impl Seed {
    const VARIABLE: &str = "ENVFORGE_TEST_SEED";

    #[expect(clippy::print_stderr, reason = "shown with the output of a test that fails")]
    fn new() -> Self {
        let given = std::env::var(Self::VARIABLE).ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(rand::random);
        eprintln!("{}={seed}", Self::VARIABLE);
        Self(seed)
    }

    /// A number below `end`, another one each round.
    fn below(&self, end: usize, round: u32) -> usize {
        let mixed = self.0.rotate_left(round * 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        usize::try_from(mixed).expect("32 bits") % end
    }
}

/// What a line of `--progress json` reports: `step-started`.
fn kind(line: &str) -> Option<String> {
    let event: serde_json::Value = serde_json::from_str(line).ok()?;
    event["event"].as_str().map(str::to_owned)
}

/// Kills a build at the moment, and asserts that the next one works and removes what is left.
#[track_caller]
fn kill_and_build(scene: &Scene, more: &[&str], moment: &str, is_moment: impl FnMut(&str) -> bool) {
    let child = scene.program.command(&[&BUILD, more].concat()).spawn().expect("the program starts");
    kill_when(child, is_moment);
    let run = scene.program.run(&["build", SPEC]);
    assert_eq!(run.code, 0, "killed at {moment}: {}", run.stderr);
    assert!(scene.added().tags.contains(TAG), "killed at {moment}");
    scene.assert_only_tags_added();
}

#[test]
#[ignore = "needs docker"]
fn next_run_removes_what_a_run_killed_at_each_kind_of_event_left() {
    let (scene, seed) = (Scene::locked(), Seed::new());
    let first = scene.succeed(&BUILD).stderr;
    let mut kinds = BTreeMap::<String, usize>::new();
    for kind in first.lines().filter_map(kind) {
        *kinds.entry(kind).or_default() += 1;
    }
    for needed in ["step-started", "step-progress", "step-finished"] {
        assert!(kinds.contains_key(needed), "no `{needed}` in: {first}");
    }
    for (round, (wanted, count)) in (0..).zip(&kinds) {
        let at = seed.below(*count, round);
        // One really makes every layer, so that this is hit too.
        let more: &[&str] = if wanted == "step-progress" { &["--no-cache"] } else { &[] };
        let mut left = at;
        let is_moment = |line: &str| {
            let is_wanted = kind(line).is_some_and(|found| found == *wanted);
            is_wanted && left.checked_sub(1).is_none_or(|next| std::mem::replace(&mut left, next) == 0)
        };
        let moment = format!("`{wanted}` {at} of {count}, {}={}", Seed::VARIABLE, seed.0);
        kill_and_build(&scene, more, &moment, is_moment);
    }
}

#[test]
#[ignore = "needs docker"]
fn next_run_removes_the_private_tag_of_a_run_killed_while_it_checked() {
    let scene = Scene::locked();
    // The image that is checked has a private tag: this kill leaves it for certain.
    let child = scene.program.command(&BUILD).spawn().expect("the program starts");
    assert!(kill_when(child, |line| line.contains("\"id\":\"checks")), "nothing was checked");
    let left = scene.added().tags;
    assert!(left.iter().any(|tag| tag.starts_with("envforge-scratch:")), "the kill left only {left:?}");
    scene.succeed(&["build", SPEC]);
    assert!(scene.added().tags.contains(TAG));
    scene.assert_only_tags_added();
}

#[test]
#[ignore = "nightly: needs docker and kills thirty builds, many minutes"]
fn next_run_removes_what_a_run_killed_at_random_left() {
    let (scene, seed) = (Scene::locked(), Seed::new());
    let events = scene.succeed(&BUILD).stderr.lines().count();
    for round in 0..ROUNDS {
        let more: &[&str] = if round % 10 == 1 { &["--no-cache"] } else { &[] };
        let at = seed.below(events, round);
        let mut left = at;
        let is_moment =
            |_: &str| left.checked_sub(1).is_none_or(|next| std::mem::replace(&mut left, next) == 0);
        let moment = format!("event {at} of {events}, {}={}", Seed::VARIABLE, seed.0);
        kill_and_build(&scene, more, &moment, is_moment);
    }
}

#[test]
#[ignore = "nightly: needs docker and makes a base twice; `interrupts` ends one too"]
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

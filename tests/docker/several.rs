//! Several builds: of one call, with a table at the end, of two processes that need the same large layer, and of one image twice.

use std::io::{BufRead as _, BufReader, Read as _};

use crate::engine::{bridge_address, docker};
use crate::framework::TORCH_2_7_0_CU118;
use crate::index::Index;
use crate::scene::{SPEC, Scene, TAG, kill_when};
use crate::wheels::WheelSpec;

#[test]
#[ignore = "needs docker"]
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
#[ignore = "needs docker"]
fn filter_builds_the_variants_it_matches() {
    let scene = Scene::new();
    let run = scene.succeed(&["build", "--all-supported", SPEC, "--dry-run"]);
    assert!(run.stdout.contains("checks before the tag"), "{}", run.stdout);
    scene.assert_nothing_left();
}

/// `--all-supported` builds the specs of its filter in the same way.
#[test]
#[ignore = "nightly: needs docker and builds several images; `kills` ends a build of one"]
fn run_after_a_kill_keeps_the_finished_image_and_builds_the_other() {
    const OTHER: &str = "pytorch-cuda:2.7.0-cu118";
    const OTHER_TAG: &str = "pytorch-cuda:2.7.0-cu118-py3.11-unverified";
    let scene = Scene::new();
    scene.index.publish(TORCH_2_7_0_CU118.wheels("cp311", ""));
    let build = ["build", SPEC, OTHER, "--jobs", "1", "--progress", "json"];
    let child = scene.program.command(&build).spawn().expect("the program starts");
    // With one job the second begins when the first is complete.
    let of_other = format!("\"id\":\"{OTHER}:");
    assert!(kill_when(child, |line| line.contains(&of_other)), "the second build did not begin");
    let tags = scene.added().tags;
    assert!(tags.contains(TAG) && !tags.contains(OTHER_TAG), "{tags:?}");
    // The engine writes down when a tag was given last.
    let record = || docker(&["inspect", "-f", "{{.Id}} {{.Created}} {{.Metadata.LastTagTime}}", TAG]);
    let first = record();

    let run = scene.succeed(&build);
    assert_eq!(record(), first, "the first image is not tagged again");
    let of_first = format!("\"id\":\"{SPEC}:");
    let steps: Vec<_> = run.stderr.lines().filter(|line| line.contains(&of_first)).collect();
    assert!(steps.is_empty(), "nothing is fetched, made, sent or checked: {steps:?}");
    let words: Vec<_> = run.stdout.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(words, ["present", "built"], "{}", run.stdout);
    assert!(scene.added().tags.contains(OTHER_TAG));
    scene.assert_only_tags_added();
}

#[test]
#[ignore = "needs docker"]
fn image_is_checked_once_until_something_that_counts_changes() {
    let scene = Scene::new();
    let checks = |scene: &Scene, more: &[&str]| {
        let words = [&["build", SPEC, "--progress", "json"], more].concat();
        let run = scene.succeed(&words);
        let ran = run.stderr.contains("\"text\":\"check ");
        let stood = run.stderr.contains("checked before under the same conditions: level static, ");
        assert_ne!(ran, stood, "{}", run.stderr);
        ran
    };
    assert!(checks(&scene, &[]), "the first time");
    assert!(!checks(&scene, &[]), "nothing changed");
    // The content digest is computed once, too.
    assert!(!checks(&scene, &["--locked"]), "a lock that fits");
    let locked = scene.succeed(&["build", SPEC, "--locked", "--progress", "json"]);
    assert!(!locked.stderr.contains("compute the content digest"), "{}", locked.stderr);
    assert!(checks(&scene, &["--recheck"]), "as requested");
    assert!(!checks(&scene, &["--tag", "checked-before:1"]), "another tag");
    docker(&["rmi", "checked-before:1-unverified"]);
    let json = scene.succeed(&["build", SPEC, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((&report["present"], &report["stands"]), (&true.into(), &true.into()), "{report}");
    // A secret that this machine has now must be in no file.
    let scene = scene.set("ENVFORGE_INDEX_INTERNAL", "https://user:a-new-password@127.0.0.1:9/simple");
    assert!(checks(&scene, &[]), "a credential more");
    assert!(!checks(&scene, &[]), "the same credentials");
    scene.assert_only_tags_added();
}

/// Text that does not become smaller than six bits a character.
fn incompressible(characters: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(ALPHABET[(state >> 58) as usize])
    };
    (0..characters).map(|_| next()).collect()
}

#[test]
#[ignore = "nightly: needs docker and makes a large layer; `assembled` builds one spec four times at once"]
fn build_waits_for_a_large_layer_that_another_process_makes() {
    let scene = Scene::new();
    let large = WheelSpec::new("large-package", "1.0").file("large_package.txt", &incompressible(48 << 20));
    let index = Index::on(bridge_address(), vec![large.build()]);
    let scene = scene.set("ENVFORGE_INDEX_INTERNAL", format!("{}/simple", index.url()));
    let project = format!(
        "schema = 1\nname = 'small'\nspec = '{SPEC}'\n[packages]\nindexes = ['internal']\npython = ['large-package']\n"
    );
    std::fs::write(scene.program.path("envforge.toml"), project).expect("a file of ours");
    let tag = scene.succeed(&["build"]).stdout.lines().next().expect("a tag").to_owned();

    // Another process makes the large layer, which the engine lacks.
    docker(&["rmi", &tag]);
    let locks = std::fs::read_dir(scene.program.path("state/locks")).expect("locks");
    let of_wheels = locks
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("wheels-")));
    let of_wheels: Vec<_> = of_wheels.collect();
    assert!(!of_wheels.is_empty(), "one layer is large");
    let hold = || -> Vec<std::fs::File> {
        let held = |path: &std::path::PathBuf| {
            let file = std::fs::File::open(path).expect("the lock");
            file.lock().expect("nobody holds it");
            file
        };
        of_wheels.iter().map(held).collect()
    };
    let held = hold();
    let mut child = scene.program.command(&["build"]).spawn().expect("it starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("standard error is caught"));
    let mut said = String::new();
    while !said.contains("which makes a layer of this image") {
        assert_ne!(stderr.read_line(&mut said).expect("text"), 0, "it did not wait: {said}");
    }
    drop(held);
    stderr.read_to_string(&mut said).expect("text");
    assert!(child.wait().expect("a child of ours").success(), "{said}");

    // The engine has it: nothing to wait for, though it is held.
    docker(&["tag", &tag, "large-kept:1"]);
    docker(&["rmi", &tag]);
    let held = hold();
    scene.succeed(&["build"]);
    drop(held);
    docker(&["rmi", &tag, "large-kept:1"]);
    scene.assert_nothing_left();
}

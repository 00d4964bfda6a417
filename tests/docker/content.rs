//! The content digest of a built image: the same from a second build, and a difference is named by its path.

use std::io::BufReader;
use std::process::{Command, Stdio};

use envforge::archive::content_digest::content_digest_of_tar;

use crate::engine::docker;
use crate::scene::{SPEC, Scene, TAG};

/// The other tag of the small build, by its spec.
const SHORT_TAG: &str = "pytorch-cuda:2.7-cu118-unverified";

/// The content digest of an image by way of the engine's export.
fn exported(image: &str) -> String {
    let container = docker(&["create", "--label", "io.envforge.test=content", image]);
    let mut export = Command::new("docker").args(["export", &container]).stdout(Stdio::piped()).spawn();
    let stdout = export.as_mut().expect("docker starts").stdout.take().expect("a pipe");
    let digest = content_digest_of_tar(BufReader::with_capacity(1 << 20, stdout));
    drop(export.expect("docker started").wait());
    docker(&["rm", &container]);
    digest.expect("an export is a tar")
}

/// Puts a file more into the image of the small build, under the same tag and labels.
fn plant_a_file() {
    let container = docker(&["create", TAG]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("planted");
    std::fs::write(&file, "planted").expect("a file of ours");
    docker(&["cp", &file.to_string_lossy(), &format!("{container}:/etc/planted")]);
    docker(&["commit", &container, TAG]);
    docker(&["rm", &container]);
}

#[test]
#[ignore = "needs docker"]
fn content_is_recorded_once_and_not_by_a_locked_build_and_a_planted_file_is_reported() {
    let scene = Scene::locked();
    scene.fail(&["lock", SPEC, "--digest"], 1, &["no image found for this lock file", "envforge build"]);

    let before = scene.lock();
    let run = scene.succeed(&["build", SPEC, "--locked", "--json"]);
    assert!(run.stderr.contains("`envforge lock --digest` records it"), "{}", run.stderr);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    let digest = report["content"].as_str().expect("a digest").to_owned();
    for args in [&["lock", SPEC, "--check"][..], &["lock", SPEC, "--locked", "--digest"]] {
        scene.succeed(args);
        assert_eq!(scene.lock(), before, "{args:?} after a locked build: not a byte was written");
    }
    let run = scene.succeed(&["lock", SPEC, "--digest"]);
    assert!(run.stderr.contains("recorded content digest"), "{}", run.stderr);
    assert!(!run.stderr.contains("compute the content digest"), "the image is known: {}", run.stderr);
    let lock: toml::Table = scene.lock().parse().expect("TOML");
    assert_eq!(lock["records"]["content"].as_str(), Some(digest.as_str()));
    assert_eq!(exported(TAG), digest, "the walk inside and the engine's export see the same");
    assert_eq!(scene.succeed(&["lock", SPEC, "--digest"]).stdout.trim(), digest);

    let honest = docker(&["inspect", "-f", "{{.Id}}", TAG]);
    plant_a_file();
    // The image that was built here has its other tag still, and a name proves nothing.
    assert_eq!(scene.succeed(&["lock", SPEC, "--digest"]).stdout.trim(), digest);
    docker(&["rmi", SHORT_TAG]);
    scene.fail(&["lock", SPEC, "--digest"], 1, &["/etc/planted: added", "content digest mismatch"]);
    // The other way round: the planted image is the recorded one, and the build differs from it.
    let path = scene.lock_path();
    let without = scene.lock().replace(&format!("content = \"{digest}\"\n"), "");
    std::fs::write(&path, without).expect("the lock is writable");
    scene.succeed(&["lock", SPEC, "--digest"]);
    scene.fail(&["build", SPEC, "--locked"], 1, &["/etc/planted: removed", "inspect it"]);
    std::fs::remove_dir_all(scene.program.path("state/content")).expect("the lists are there");
    scene.fail(
        &["build", SPEC, "--locked"],
        1,
        &["the file list of the recorded image is not on this machine", "state directory"],
    );
    // The refused build is the assembled image again, kept for inspection.
    for image in [TAG, &honest] {
        // The second goes with the first where that was made from it.
        drop(Command::new("docker").args(["rmi", "-f", image]).output());
    }
    scene.assert_nothing_left();
}

//! A credential in the index' address reaches the index and nothing else.

use std::process::Command;

use crate::engine::docker;
use crate::scene::{SPEC, Scene, TAG, files_below};

const TOKEN: &str = "planted-token-7f3a9c";

fn with_token(scene: Scene, token: &str) -> Scene {
    let url = format!("{}/{{cuda}}", scene.index.url_with("someone", token));
    scene.set("ENVFORGE_FRAMEWORK_INDEX", url)
}

#[test]
#[ignore = "needs docker"]
fn index_token_is_stored_nowhere_and_changes_no_layer() {
    let scene = with_token(Scene::fresh(), TOKEN);
    let run = scene.succeed(&["build", SPEC, "-v"]);
    assert!(
        scene.index.seen().iter().any(|request| request.authorization.is_some()),
        "the token never reached the index, so this test proves nothing"
    );
    for (place, text) in [("stdout", &run.stdout), ("stderr", &run.stderr), ("lock", &scene.lock())] {
        assert!(!text.contains(TOKEN), "the token is in {place}: {text}");
    }
    for text in [docker(&["inspect", TAG]), docker(&["history", "--no-trunc", TAG])] {
        assert!(!text.contains(TOKEN) && !text.contains(&scene.index.url()), "in the image's data: {text}");
    }
    assert_not_in_any_layer(&[TOKEN, scene.index.url().trim_start_matches("http://")]);
    assert_not_in_files(&scene);

    let layers = docker(&["inspect", "-f", "{{.RootFS.Layers}}", TAG]);
    scene.index.take_downloads();
    let scene = with_token(scene, "another-token-51d0");
    scene.succeed(&["build", SPEC]);
    assert_eq!(docker(&["inspect", "-f", "{{.RootFS.Layers}}", TAG]), layers, "another token, other layers");
    assert_eq!(scene.index.take_downloads(), Vec::<String>::new(), "another token, new downloads");
}

/// Reads the whole image, file names and contents, uncompressed.
#[track_caller]
fn assert_not_in_any_layer(needles: &[&str]) {
    for needle in needles {
        let script = format!("set -o pipefail; docker save {TAG} | grep -c -a -F -- '{needle}'");
        let output = Command::new("bash").args(["-c", &script]).output().expect("bash starts");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0", "`{needle}` is in the image");
    }
}

/// Names and contents of everything the program keeps for itself.
#[track_caller]
fn assert_not_in_files(scene: &Scene) {
    for folder in ["state", "cache", "home", "tmp"] {
        for file in files_below(&scene.program.path(folder)) {
            let content = std::fs::read(&file).unwrap_or_default();
            let found = content.windows(TOKEN.len()).any(|window| window == TOKEN.as_bytes());
            assert!(!found && !file.to_string_lossy().contains(TOKEN), "the token is in {}", file.display());
        }
    }
}

#[test]
#[ignore = "needs docker"]
fn error_message_hides_the_index_token() {
    let scene = with_token(Scene::fresh(), TOKEN);
    scene.index.fail("/cu118/", crate::index::Fault::Status(401));
    let run = scene.program.run(&["lock", SPEC, "-vv"]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(!run.stderr.contains(TOKEN) && !run.stdout.contains(TOKEN), "{}", run.stderr);
    scene.assert_nothing_left();
}

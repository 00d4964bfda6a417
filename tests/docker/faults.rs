//! What goes wrong outside: each gives one clear message and the right exit code, leaves nothing, and the next run works.

use crate::engine::docker;
use crate::framework::TORCH_2_7_CU118;
use crate::index::Fault;
use crate::scene::{SPEC, Scene, TAG};

const TORCH_WHEEL: &str = "torch-2.7.1%2Bcu118-cp311-cp311-manylinux_2_28_x86_64.whl";

#[test]
#[ignore = "needs docker"]
fn build_rejects_a_tampered_wheel_and_the_next_one_works() {
    let scene = Scene::fresh();
    scene.succeed(&["lock", SPEC]);
    scene.index.tamper(TORCH_2_7_CU118.wheels("cp311", "tampered"));
    scene.fail(&["build", SPEC], 3, &["torch", "SHA-256 mismatch"]);
    scene.assert_nothing_left();
    scene.index.heal();
    scene.succeed(&["build", SPEC]);
    assert!(scene.added().tags.contains(TAG));
}

#[test]
#[ignore = "needs docker"]
fn build_fails_when_a_download_is_always_cut_and_resumes_one_that_is_cut_once() {
    let scene = Scene::fresh();
    scene.succeed(&["lock", SPEC]);
    scene.index.fail(TORCH_WHEEL, Fault::CutAlways);
    scene.fail(&["build", SPEC], 3, &["torch"]);
    scene.assert_nothing_left();
    scene.index.heal();
    scene.index.take_downloads();
    scene.index.fail(TORCH_WHEEL, Fault::CutOnce);
    scene.succeed(&["build", SPEC]);
    let tries = scene.index.take_downloads().iter().filter(|path| path.contains(TORCH_WHEEL)).count();
    assert!(tries >= 2, "the wheel was requested {tries} times");
    assert!(scene.added().tags.contains(TAG));
}

#[test]
#[ignore = "needs docker"]
fn error_names_the_setting_when_an_index_is_down() {
    let scene = Scene::new();
    scene.index.fail("/cu118/", Fault::Status(503));
    scene.fail(&["lock", SPEC], 3, &["index"]);
    scene.assert_nothing_left();
    scene.index.heal();
    scene.succeed(&["lock", SPEC]);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs docker"]
fn error_names_the_setting_when_an_index_refuses_connections() {
    let scene = Scene::new().set("ENVFORGE_INDEX", "http://127.0.0.1:9/simple");
    scene.fail(&["build", SPEC], 3, &["ENVFORGE_INDEX"]);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs docker"]
fn release_missing_from_the_index_is_reported() {
    let scene = Scene::new();
    scene.index.fail("/cu118/torch/", Fault::Status(404));
    scene.fail(&["lock", SPEC], 3, &["torch"]);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs docker"]
fn lock_fails_without_mirror_and_base_image() {
    let scene =
        Scene::new().with_empty_cache_for_locks().set("ENVFORGE_DEBIAN_MIRROR", "http://127.0.0.1:9/debian");
    scene.fail(
        &["build", SPEC, "--base-provider", "bootstrap"],
        3,
        &["127.0.0.1:9/debian", "ENVFORGE_DEBIAN_MIRROR"],
    );
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs docker"]
fn error_names_the_mirror_when_only_the_base_is_cached() {
    let scene = Scene::locked();
    let scene = scene.set("ENVFORGE_DEBIAN_MIRROR", "http://127.0.0.1:9/debian");
    scene.fail(&["lock", SPEC, "--upgrade"], 3, &["ENVFORGE_DEBIAN_MIRROR"]);
    scene.succeed(&["build", SPEC]);
}

#[test]
#[ignore = "needs docker"]
fn second_build_reuses_the_base() {
    let scene = Scene::locked();
    let bases = || docker(&["images", "--format", "{{.Repository}}:{{.Tag}} {{.ID}}", "envforge-base"]);
    let first = bases();
    scene.succeed(&["lock", SPEC, "--upgrade"]);
    assert_eq!(bases(), first);
    scene.assert_nothing_left();
}

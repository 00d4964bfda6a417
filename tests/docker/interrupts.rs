//! Ctrl-C in each phase: exit 130, nothing left, and the next run works.

use std::time::Duration;

use crate::index::{Fault, Index};
use crate::scene::{SPEC, Scene, TAG, interrupt, interrupt_when};

const LIMIT: Duration = Duration::from_mins(10);

#[test]
#[ignore = "needs docker"]
fn ctrl_c_while_the_base_is_made_leaves_nothing() {
    let mirror = Index::local(Vec::new());
    mirror.fail("/dists/", Fault::Stall);
    let scene = Scene::new()
        .with_empty_cache_for_locks()
        .set("ENVFORGE_DEBIAN_MIRROR", format!("{}/debian", mirror.url()));
    let child =
        scene.program.command(&["build", SPEC, "--base-provider", "bootstrap"]).spawn().expect("it starts");
    assert!(mirror.wait_for("/dists/", LIMIT), "nobody asked the mirror");
    let run = interrupt(child);
    assert_eq!(run.code, 130, "{}", run.stderr);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "nightly: needs docker and makes a base again; `ctrl_c_while_the_base_is_made` stays"]
fn ctrl_c_while_the_base_is_installed_leaves_no_half_made_base() {
    let scene = Scene::new().with_downloads_only();
    let child =
        scene.program.command(&["lock", SPEC, "--base-provider", "bootstrap", "--progress", "json"]).spawn();
    let run = interrupt_when(child.expect("it starts"), "\"import:");
    assert_eq!(run.code, 130, "{}", run.stderr);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs docker"]
fn ctrl_c_while_the_image_is_checked_leaves_no_image() {
    let scene = Scene::locked();
    let child = scene.program.command(&["build", SPEC, "--progress", "json"]).spawn();
    let run = interrupt_when(child.expect("it starts"), "\"id\":\"checks");
    assert_eq!(run.code, 130, "{}", run.stderr);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs docker"]
fn ctrl_c_while_packages_are_resolved_leaves_nothing() {
    let scene = Scene::new();
    scene.index.fail("/torch/", Fault::Stall);
    let child = scene.program.command(&["lock", SPEC]).spawn().expect("it starts");
    assert!(scene.index.wait_for("/torch/", LIMIT), "nobody asked the index");
    let run = interrupt(child);
    assert_eq!(run.code, 130, "{}", run.stderr);
    scene.assert_nothing_left();
    scene.index.heal();
    scene.succeed(&["lock", SPEC]);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs docker"]
fn ctrl_c_while_the_image_is_built_leaves_nothing() {
    let scene = Scene::fresh();
    scene.succeed(&["lock", SPEC]);
    scene.index.take_downloads();
    scene.index.fail("torch-2.7.1", Fault::Stall);
    let child = scene.program.command(&["build", SPEC]).spawn().expect("it starts");
    assert!(scene.index.wait_for("torch-2.7.1", LIMIT), "nobody asked for the wheel");
    let run = interrupt(child);
    assert_eq!(run.code, 130, "{}", run.stderr);
    scene.assert_nothing_left();
    scene.index.heal();
    scene.succeed(&["build", SPEC]);
    assert!(scene.added().tags.contains(TAG));
}

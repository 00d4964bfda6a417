//! Mirrors that are not as they should be, and clocks.

use std::process::{Command, Stdio};

use crate::index::{Fault, Index};
use crate::program::Run;
use crate::scene::{SPEC, Scene, assert_message};

const BOOTSTRAP: [&str; 4] = ["lock", SPEC, "--base-provider", "bootstrap"];

/// Runs the program with its clock moved, as `faketime` writes it: `+1y`.
pub(crate) fn run_at(scene: &Scene, clock: &str, args: &[&str]) -> Run {
    let program = scene.program.command(args);
    let mut command = Command::new("faketime");
    command.args(["-f", clock]).arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    // Only the wall clock is wrong: a machine's other one always goes on evenly.
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let output = command.stdin(Stdio::null()).output().expect("faketime is installed: apt install faketime");
    Run::of(&output)
}

#[test]
#[ignore = "needs docker"]
fn error_names_the_clock_when_it_is_a_year_ahead() {
    let scene = Scene::new().with_empty_cache_for_locks();
    let run = run_at(&scene, "+1y", &BOOTSTRAP);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert_message(&run.stderr, &["expired", "clock", "accept-expired"]);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs docker"]
fn error_names_the_clock_when_it_is_a_year_behind() {
    let scene = Scene::new().with_empty_cache_for_locks();
    let run = run_at(&scene, "-1y", &BOOTSTRAP);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert_message(&run.stderr, &["clock"]);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs docker"]
fn build_from_a_lock_ignores_a_clock_that_is_a_year_behind() {
    let scene = Scene::locked();
    // A year ahead: `assembled` builds so.
    let run = run_at(&scene, "-1y", &["build", SPEC, "--locked"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
#[ignore = "needs docker"]
fn lock_rejects_an_unsigned_index() {
    let mirror = Index::local(Vec::new());
    mirror.serve("/debian/dists/bookworm/InRelease", b"Origin: Debian\nCodename: bookworm\n".to_vec());
    let scene = Scene::new()
        .with_empty_cache_for_locks()
        .set("ENVFORGE_DEBIAN_MIRROR", format!("{}/debian", mirror.url()));
    scene.fail(&BOOTSTRAP, 3, &["cannot verify package index", "use another mirror"]);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs docker"]
fn package_lost_by_the_mirror_comes_from_the_cache() {
    let scene = Scene::locked();
    scene.succeed(&["build", SPEC]);
    let mirror = Index::local(Vec::new());
    mirror.fail("/pool/", Fault::Status(404));
    let scene = scene.set("ENVFORGE_DEBIAN_MIRROR", format!("{}/debian", mirror.url()));
    let scene = scene.set("ENVFORGE_DEBIAN_SECURITY_MIRROR", format!("{}/debian-security", mirror.url()));
    scene.succeed(&["build", SPEC, "--locked"]);
    let empty = scene.program.path("other-cache");
    let scene = scene.set("ENVFORGE_CACHE_DIR", empty.to_string_lossy());
    scene.fail(&["build", SPEC, "--locked"], 3, &["lock --upgrade"]);
}

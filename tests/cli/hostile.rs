//! The hostile set: what strangers hand to envforge, and what must happen. Each folder of `tests/hostile/KIND/` is one case;
//! a new case is a new folder.
//!
//! Every kind has a case `harmless` that is accepted: it shows that the others are refused for what they contain.

mod answers;
mod caches;
mod case;
mod images;
mod project;
mod server;
mod table;
mod vendor;
mod wheel;

use case::run_kind;

#[test]
fn hostile_wheels_are_refused() {
    run_kind("wheels", 20, wheel::attempt);
}

#[test]
fn hostile_locks_decide_nothing_but_pins() {
    run_kind("locks", 15, project::attempt_lock);
}

#[test]
fn hostile_projects_are_refused() {
    run_kind("projects", 8, project::attempt);
}

#[test]
fn hostile_answers_are_refused_without_a_leak() {
    run_kind("answers", 10, answers::attempt);
}

#[test]
fn hostile_caches_are_not_believed() {
    run_kind("caches", 12, caches::attempt);
}

#[test]
fn hostile_images_earn_nothing_and_run_in_the_sandbox() {
    run_kind("images", 10, images::attempt);
}

#[test]
fn hostile_vendor_folders_are_refused() {
    run_kind("vendor", 8, vendor::attempt);
}

//! Proves that the loader finds every library the environment's binaries need.

use super::super::linker::{Loader, objects};
use super::super::report::Report;
use super::Options;

const ID: &str = "linker-closure";

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let objects = objects(&options.environment());
    let missing = Loader::of(&options.root).missing(&objects);
    let mut problems = missing;
    if objects.is_empty() {
        problems.push("no library was found at all".to_owned());
    }
    let report =
        Report::of_problems(ID, format!("{} binaries find what they need", objects.len()), &problems);
    vec![report.hint("a package of the distribution or a wheel is missing from the image")]
}

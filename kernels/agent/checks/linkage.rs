//! Proves that the loader finds every library the environment's binaries need.

use std::collections::BTreeSet;

use super::super::linker::{Loader, objects};
use super::super::report::Report;
use super::{Options, errored};

const ID: &str = "linker-closure";

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let expected = match options.promises() {
        Ok(expected) => expected,
        Err(problem) => return errored(&[ID], &problem),
    };
    let objects = objects(&options.environment());
    let missing = Loader::of(&options.root).missing(&objects);
    let (done_without, mut problems) = divided(missing, &expected.may_lack);
    if objects.is_empty() {
        problems.push("no library was found at all".to_owned());
    }
    let mut good = format!("{} binaries find what they need", objects.len());
    if !done_without.is_empty() {
        let done_without: Vec<_> = done_without.into_iter().collect();
        good =
            format!("{good}, except for what the project says may be missing: {}", done_without.join(", "));
    }
    let hint = "a package of the distribution or a wheel is missing from the image; a library that a package of yours works without \
                is named in `[verify] may-lack` of envforge.toml";
    vec![Report::of_problems(ID, good, &problems).hint(hint)]
}

/// The libraries that are missing and may be, and what else is missing, as `FILE needs SONAME`.
fn divided(missing: Vec<String>, may_lack: &BTreeSet<String>) -> (BTreeSet<String>, Vec<String>) {
    let (mut done_without, mut problems) = (BTreeSet::new(), Vec::new());
    for need in missing {
        match need.rsplit_once(" needs ").filter(|(_, soname)| may_lack.contains(*soname)) {
            Some((_, soname)) => drop(done_without.insert(soname.to_owned())),
            None => problems.push(need),
        }
    }
    (done_without, problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_project_does_without_is_told_apart_by_its_whole_name() {
        let may_lack = BTreeSet::from(["libtbb.so.12".to_owned()]);
        let needs = |soname: &str| format!("/opt/env/a needs b/x.so needs {soname}");
        let (done_without, problems) = divided(vec![needs("libtbb.so.12"), needs("libtbb.so.1")], &may_lack);
        assert_eq!(done_without, may_lack);
        assert_eq!(problems, [needs("libtbb.so.1")]);
    }
}

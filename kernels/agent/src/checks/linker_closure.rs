//! Proves that the loader finds every library the environment's binaries need.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use envforge_protocol::abi::is_for_another_cuda;
use envforge_protocol::elf::Dynamic;
use envforge_protocol::{CheckId, Key};

use super::{Options, errored};
use crate::linker::{Loader, objects};
use crate::report::Report;

const ID: CheckId = CheckId::LinkerClosure;

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let expected = match options.expectation_if_given() {
        Ok(expected) => expected,
        Err(problem) => return errored(&[ID], &problem),
    };
    let mut objects = objects(&options.environment());
    let others =
        expected.value(Key::Cuda).map(|cuda| without_other_cuda(&mut objects, cuda)).unwrap_or_default();
    let missing = Loader::of(&options.root).missing(&objects);
    let (done_without, mut problems) = divided(missing, &expected.may_lack);
    if objects.is_empty() {
        problems.push("no library found".to_owned());
    }
    let mut good = format!("{} binaries: all dependencies found", objects.len());
    if !done_without.is_empty() {
        let done_without: Vec<_> = done_without.into_iter().collect();
        good = format!(
            "{good}, except those that may be missing (`[verify] may-lack`): {}",
            done_without.join(", ")
        );
    }
    if !others.is_empty() {
        good = format!("{good}; never loaded with this CUDA: {}", others.join(", "));
    }
    let hint = "add the missing system package or wheel, or list a library that your packages do not need in `[verify] may-lack` of \
                envforge.toml";
    vec![Report::of_problems(ID, good, &problems).hint(hint)]
}

/// Removes the libraries that their package loads with another CUDA only, and returns their names.
fn without_other_cuda(objects: &mut BTreeMap<PathBuf, Dynamic>, cuda: &str) -> Vec<String> {
    // One that another library is linked to is loaded with that.
    let needed: BTreeSet<String> = objects.values().flat_map(|object| object.needed.clone()).collect();
    let is_other = |path: &PathBuf| {
        let text = |name: Option<&std::ffi::OsStr>| {
            name.and_then(|name| name.to_str()).unwrap_or_default().to_owned()
        };
        let (folder, file) = (text(path.parent().and_then(Path::file_name)), text(path.file_name()));
        !needed.contains(&file)
            && is_for_another_cuda((&folder, &file), cuda, |name| {
                objects.contains_key(&path.with_file_name(name))
            })
    };
    let others: Vec<PathBuf> = objects.keys().filter(|path| is_other(path)).cloned().collect();
    let removed = others.iter().filter(|path| objects.remove(*path).is_some());
    removed.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect()
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
    fn libraries_that_may_be_missing_match_by_full_name() {
        let may_lack = BTreeSet::from(["libtbb.so.12".to_owned()]);
        let needs = |soname: &str| format!("/opt/env/a needs b/x.so needs {soname}");
        let (done_without, problems) = divided(vec![needs("libtbb.so.12"), needs("libtbb.so.1")], &may_lack);
        assert_eq!(done_without, may_lack);
        assert_eq!(problems, [needs("libtbb.so.1")]);
    }
}

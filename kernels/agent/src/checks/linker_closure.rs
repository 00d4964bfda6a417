//! Proves that the loader finds every library the environment's binaries need.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use envforge_protocol::abi::{is_plug_in_of_qt, of_another_cuda};
use envforge_protocol::elf::Dynamic;
use envforge_protocol::{CheckId, Key};

use super::{Options, errored, module_closure};
use crate::linker::{Loader, objects};
use crate::report::Report;

const ID: CheckId = CheckId::LinkerClosure;

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let expected = match options.expectation_if_given() {
        Ok(expected) => expected,
        Err(problem) => return errored(&[ID], &problem),
    };
    if expected.distributions.is_empty() {
        return vec![module_closure::run(options)];
    }
    let mut objects = objects(&options.environment());
    let others =
        expected.value(Key::Cuda).map(|cuda| without_other_cuda(&mut objects, cuda)).unwrap_or_default();
    let missing = Loader::of(&options.root).missing(&objects);
    let (done_without, mut problems) = divided(missing, &expected.may_lack);
    if objects.is_empty() {
        problems.push("no library found".to_owned());
    }
    let plug_ins = objects.keys().filter(|path| is_plug_in_of_qt(path)).count();
    let mut good = format!("{} binaries: all dependencies found", objects.len() - plug_ins);
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
    if plug_ins > 0 {
        good = format!("{good}; {plug_ins} plug-ins of Qt may lack some: it goes on without those");
    }
    let hint = hint(&problems, &expected.may_lack);
    vec![Report::of_problems(ID, good, &problems).hint(&hint)]
}

/// What to do, with the line to paste for libraries that may be missing: those that are listed already and those that are missing.
fn hint(problems: &[String], may_lack: &BTreeSet<String>) -> String {
    // A hint has room for 4,000 characters.
    const ROOM: usize = 3_000;
    let missing = problems.iter().filter_map(|problem| problem.rsplit_once(" needs "));
    // A wheel chose the name, and the line is pasted.
    let is_plain =
        |soname: &&str| soname.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte));
    let missing: BTreeSet<&str> = missing.map(|(_, soname)| soname).filter(is_plain).collect();
    let all: BTreeSet<&str> = may_lack.iter().map(String::as_str).chain(missing).collect();
    let list: Vec<_> = all.into_iter().map(|soname| format!("\"{soname}\"")).collect();
    let list = list.join(", ");
    let add = "add the missing system package or wheel, or declare libraries that your packages do not need";
    if list.is_empty() || list.len() > ROOM {
        return format!("{add} in `[verify] may-lack` of envforge.toml");
    }
    format!("{add}: `may-lack = [{list}]` in `[verify]` of envforge.toml")
}

/// Removes the libraries that their package loads with another CUDA only, and returns their names.
fn without_other_cuda(objects: &mut BTreeMap<PathBuf, Dynamic>, cuda: &str) -> Vec<String> {
    let others = of_another_cuda(objects, cuda);
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

    #[test]
    fn hint_has_the_line_to_paste_with_what_is_listed_already() {
        let problems = ["/a.so needs libb.so.1", "/b.so needs liba.so.1", "/c.so needs libb.so.1"];
        let listed = BTreeSet::from(["libtbb.so.12".to_owned()]);
        let hint = hint(&problems.map(str::to_owned), &listed);
        let line =
            "`may-lack = [\"liba.so.1\", \"libb.so.1\", \"libtbb.so.12\"]` in `[verify]` of envforge.toml";
        assert!(hint.ends_with(line), "{hint}");
        let many: Vec<_> = (0..500).map(|n| format!("/a.so needs libnumber{n}.so.1")).collect();
        let hint = super::hint(&many, &BTreeSet::new());
        assert!(!super::hint(&["/a.so needs \"]; x.so".to_owned()], &listed).contains("x.so"));
        assert!(hint.ends_with("in `[verify] may-lack` of envforge.toml") && hint.len() < 300, "{hint}");
    }
}

//! Proves that the image holds one copy of CUDA: two cuDNN or NCCL on one loader path is how images die at run time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::super::report::Report;
use super::super::tree;
use super::{Options, shown};

const ID: &str = "one-cuda";
/// Beginnings of the sonames that must be there once.
const LIBRARIES: [&str; 8] = [
    "libcudart.so.",
    "libcublas.so.",
    "libcublasLt.so.",
    "libcudnn.so.",
    "libnccl.so.",
    "libcufft.so.",
    "libcusolver.so.",
    "libnvrtc.so.",
];
/// Folders that may hold libraries.
const FOLDERS: [&str; 4] = ["opt", "usr", "lib", "home"];
/// Those that are ours, where the base brings a CUDA of its own: it was named by the user, who was warned.
const OWN: [&str; 2] = ["opt/env", "home"];

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let mut found: BTreeMap<&str, Vec<PathBuf>> = BTreeMap::new();
    let base_has_cuda = options.expectation().is_ok_and(|all| all.value("base-cuda").is_some());
    let folders = if base_has_cuda { OWN.as_slice() } else { &FOLDERS };
    for folder in folders {
        tree::visit(&options.root.join(folder), &mut |path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some(library) = LIBRARIES.iter().find(|library| name.starts_with(**library)) {
                found.entry(library).or_default().push(path.to_owned());
            }
        });
    }
    let twice = found.values().filter(|paths| paths.len() > 1);
    let problems: Vec<_> = twice
        .map(|paths| paths.iter().map(|path| shown(&options.root, path)).collect::<Vec<_>>().join(" and "))
        .collect();
    let beside = if base_has_cuda { ", beside those of the base" } else { "" };
    let good = format!("{} CUDA libraries, each once{beside}", found.len());
    let report = Report::of_problems(ID, good, &problems);
    vec![report.hint("a package brought its own CUDA libraries beside the framework's")]
}

#[cfg(test)]
mod tests {
    use super::super::super::report::Outcome;
    use super::*;

    #[test]
    fn a_second_copy_is_named_with_both_paths() {
        let root = tempfile::tempdir().expect("folder");
        let write = |path: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, "").expect("written");
        };
        write("opt/env/nvidia/libcudnn.so.9");
        let options = Options { root: root.path().into(), ..Options::default() };
        assert_eq!(run(&options)[0].outcome, Outcome::Passed);
        write("usr/lib/libcudnn.so.8");
        let report = &run(&options)[0];
        assert_eq!(report.outcome, Outcome::Failed);
        assert!(
            report.detail.contains("/opt/env/nvidia/libcudnn.so.9 and /usr/lib/libcudnn.so.8"),
            "{}",
            report.detail
        );
        let expect = root.path().join("expect");
        std::fs::write(&expect, "base-cuda=yes\n").expect("written");
        let report = &run(&Options { expect: Some(expect), ..options })[0];
        assert_eq!(report.outcome, Outcome::Passed);
        assert!(report.detail.contains("beside those of the base"), "{}", report.detail);
    }
}

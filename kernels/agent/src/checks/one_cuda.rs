//! Proves that the image holds one copy of CUDA: two copies of cuDNN or NCCL on one loader path crash programs at run time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use envforge_protocol::{CheckId, Key};

use super::{Options, display_path};
use crate::report::Report;
use crate::walk;

const ID: CheckId = CheckId::OneCuda;
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
/// Directories that envforge fills, for a base with a CUDA of its own: the user chose it and was warned.
const OWN: [&str; 2] = ["opt/env", "home"];

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let mut found: BTreeMap<&str, Vec<PathBuf>> = BTreeMap::new();
    let base_has_cuda = options.expectation().is_ok_and(|all| all.value(Key::BaseCuda).is_some());
    let folders = if base_has_cuda { OWN.as_slice() } else { &FOLDERS };
    for folder in folders {
        walk::visit(&options.root.join(folder), &mut |path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some(library) = LIBRARIES.iter().find(|library| name.starts_with(**library)) {
                found.entry(library).or_default().push(path.to_owned());
            }
        });
    }
    let twice = found.values().filter(|paths| paths.len() > 1);
    let problems: Vec<_> = twice
        .map(|paths| {
            paths.iter().map(|path| display_path(&options.root, path)).collect::<Vec<_>>().join(" and ")
        })
        .collect();
    let note = if base_has_cuda { ", in addition to those of the base" } else { "" };
    let good = format!("{} CUDA libraries, each once{note}", found.len());
    let report = Report::of_problems(ID, good, &problems);
    vec![report.hint("remove the package that ships its own CUDA libraries")]
}

#[cfg(test)]
mod tests {
    use envforge_protocol::Outcome;

    use super::*;

    #[test]
    fn second_copy_is_reported_with_both_paths() {
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
        assert!(report.detail.contains("in addition to those of the base"), "{}", report.detail);
    }
}

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

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let mut found: BTreeMap<&str, Vec<PathBuf>> = BTreeMap::new();
    for folder in FOLDERS {
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
    let report = Report::of_problems(ID, format!("{} CUDA libraries, each once", found.len()), &problems);
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
    }
}

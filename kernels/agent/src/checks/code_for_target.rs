//! Proves that the framework's and NCCL's own machine code runs on the GPUs the image is meant for, by a walk through the
//! files. `framework-architectures` checks the framework's own list.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use envforge_protocol::{CheckId, Key, Outcome, SkipReason};

use super::{Options, display_path, errored};
use crate::fatbin::{self, Code, Coverage};
use crate::kernels::Capability;
use crate::libraries::{self, SearchPaths};
use crate::nvrtc::Target;
use crate::report::Report;
use crate::walk;

const ID: CheckId = CheckId::CodeForTarget;

/// Files of frameworks that hold the bulk of their kernels.
const FRAMEWORKS: [&str; 5] = [
    "libtorch_cuda.so",
    "libtensorflow_cc.so.2",
    "_pywrap_tensorflow_internal.so",
    "xla_cuda_plugin.so",
    "libonnxruntime_providers_cuda.so",
];

/// Beginnings of the names of Python modules that hold kernels: CuPy's and vLLM's.
const MODULES: [&str; 4] = ["cub.cpython", "thrust.cpython", "_C.", "_C_stable_libtorch."];

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let expected = match options.expectation_if_given() {
        Ok(expected) => expected,
        Err(problem) => return errored(&[ID], &problem),
    };
    let targets = expected.chips(Key::Target);
    let chips = if targets.is_empty() { expected.chips(Key::Arch) } else { targets };
    let files = files(options);
    let nccl = libraries::first(&SearchPaths::of(&options.root).search(), "nccl")
        .map(|library| library.path.clone());
    if files.is_empty() && nccl.is_none() {
        return vec![Report::skipped(
            ID,
            SkipReason::NotInImage,
            "no file with a framework's kernels was found",
        )];
    }
    let all = files
        .iter()
        .map(|path| (path, fatbin::code as Walk))
        .chain(nccl.iter().map(|path| (path, fatbin::linked_code as Walk)));
    let walked: Vec<_> =
        all.map(|(path, walk)| (display_path(&options.root, path), read(path, walk))).collect();
    vec![judge(&walked, &chips)]
}

/// The framework's files.
fn files(options: &Options) -> Vec<PathBuf> {
    let places = SearchPaths::of(&options.root);
    let mut files = Vec::new();
    for packages in places.packages() {
        for package in ["torch", "tensorflow", "jax_plugins", "onnxruntime", "cupy", "vllm"] {
            walk::visit(&packages.join(package), &mut |path| {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let module = MODULES.iter().any(|start| name.starts_with(start))
                    && ["cupy", "vllm"].contains(&package)
                    && path.extension().is_some_and(|extension| extension == "so");
                if FRAMEWORKS.contains(&name) || module {
                    files.push(path.to_owned());
                }
            });
        }
    }
    files
}

/// How the code of a file is found.
type Walk = fn(&File) -> Result<Option<Code>, String>;

fn read(path: &Path, walk: Walk) -> Result<Option<Code>, String> {
    walk(&File::open(path).map_err(|error| error.to_string())?)
}

/// Missing code fails; an unknown layout never passes.
fn judge(walked: &[(String, Result<Option<Code>, String>)], chips: &BTreeSet<Capability>) -> Report {
    let (mut lacking, mut unknown, mut known) = (Vec::new(), Vec::new(), Vec::new());
    for (path, result) in walked {
        let file = path.rsplit('/').next().unwrap_or(path);
        match result {
            Ok(Some(code)) => {
                known.push((file, code));
                let lacks = |chip: &&Capability| code.coverage(**chip) == Coverage::Nothing;
                let names: Vec<_> = chips.iter().filter(lacks).map(|chip| sm(*chip)).collect();
                if !names.is_empty() {
                    lacking.push(format!(
                        "{path} has no code for {} (it has {})",
                        names.join(" "),
                        list(code)
                    ));
                }
            }
            // Some builds have their kernels in another file: this one is unknown.
            Ok(None) => unknown.push(format!("{path} has no section .nv_fatbin")),
            Err(surprise) => unknown.push(format!("{path}: {surprise}")),
        }
    }
    let report = if !lacking.is_empty() {
        Report::of_problems(ID, "", &lacking)
    } else if !unknown.is_empty() {
        Report::skipped(ID, SkipReason::UnknownFormat, format!("unknown: {}", unknown.join("; ")))
    } else if chips.is_empty() {
        Report::skipped(
            ID,
            SkipReason::NoExpectation,
            "no target GPU; see `code` for available architectures",
        )
    } else {
        let by_driver = |chip: &&Capability| {
            known.iter().any(|(_, code)| matches!(code.coverage(**chip), Coverage::ByDriver(_)))
        };
        let late: Vec<_> = chips.iter().filter(by_driver).map(|chip| sm(*chip)).collect();
        let names: Vec<_> = known.iter().map(|(file, _)| *file).collect();
        let chips: Vec<_> = chips.iter().map(|chip| sm(*chip)).collect();
        let mut good = format!("{} for {}", names.join(" and "), chips.join(" "));
        if !late.is_empty() {
            good.push_str(&format!("; the driver must first compile PTX for {}", late.join(" ")));
        }
        Report::new(ID, Outcome::Passed, good)
    };
    let report = known.iter().fold(report, |report, (file, code)| report.measure(file, &list(code)));
    report.hint("use a stack whose wheel has code for the GPU: see `envforge list` and `--gpu`")
}

fn sm(chip: Capability) -> String {
    Target::Cubin(chip).name()
}

/// `sm_70 sm_90 compute_90`.
fn list(code: &Code) -> String {
    let cubin = code.cubin.keys().map(|chip| Target::Cubin(*chip).name());
    let ptx = code.ptx.keys().map(|chip| Target::Ptx(*chip).name());
    cubin.chain(ptx).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fatbin::tests::library;

    fn image(images: &[(u16, u32)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("folder");
        let folder = root.path().join("opt/env/lib/python3.11/site-packages/torch/lib");
        std::fs::create_dir_all(&folder).expect("made");
        std::fs::write(folder.join("libtorch_cuda.so"), library(images)).expect("written");
        root
    }

    fn report(root: &Path, lines: &str) -> Report {
        let expect = root.join("expect");
        std::fs::write(&expect, lines).expect("written");
        let root = root.canonicalize().expect("there");
        run(&Options { root, expect: Some(expect), ..Options::default() }).remove(0)
    }

    #[test]
    fn wheel_without_code_for_the_target_fails() {
        let root = image(&[(2, 70), (2, 80), (2, 90)]);
        let good = report(root.path(), "target=8.6\n");
        assert_eq!((good.outcome, good.detail.as_str()), (Outcome::Passed, "libtorch_cuda.so for sm_86"));
        let bad = report(root.path(), "target=12.0\narch=9.0\n");
        assert_eq!(bad.outcome, Outcome::Failed);
        assert!(bad.detail.ends_with("has no code for sm_120 (it has sm_70 sm_80 sm_90)"), "{}", bad.detail);
        assert!(bad.hint.is_some());
    }

    #[test]
    fn ptx_counts_and_is_reported() {
        let root = image(&[(2, 80), (1, 90)]);
        let report = report(root.path(), "target=12.0\n");
        assert_eq!(report.outcome, Outcome::Passed);
        assert!(report.detail.ends_with("the driver must first compile PTX for sm_120"), "{}", report.detail);
    }

    #[test]
    fn unknown_layout_is_skipped() {
        let root = image(&[(9, 80)]);
        let report = report(root.path(), "target=8.0\n");
        assert_eq!(report.outcome, Outcome::Skipped);
        assert!(report.detail.starts_with("unknown: "), "{}", report.detail);
    }
}

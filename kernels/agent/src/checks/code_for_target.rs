//! Proves that the framework's and NCCL's own machine code runs on the GPUs the image is meant for, by a walk through the
//! files. `framework-architectures` checks the framework's own list. What the user's packages lack is reported.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use envforge_protocol::{CheckId, Expectation, Key, Outcome, SkipReason, is_integrated};

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
    let chips = chips(&expected);
    let (files, of_users): (Vec<_>, Vec<_>) =
        files(options).into_iter().partition(|(package, _)| is_of_the_stack(package, &expected));
    let nccl = libraries::first(&SearchPaths::of(&options.root).search(), "nccl")
        .map(|library| library.path.clone());
    if files.is_empty() && of_users.is_empty() && nccl.is_none() {
        return vec![Report::skipped(
            ID,
            SkipReason::NotInImage,
            "no file with a framework's kernels was found",
        )];
    }
    let walked = |path: &PathBuf, walk: Walk| (display_path(&options.root, path), read(path, walk));
    let mut own: Vec<Walked> = files.iter().map(|(_, path)| walked(path, fatbin::code as Walk)).collect();
    let mut of_users: Vec<Walked> =
        of_users.iter().map(|(_, path)| walked(path, fatbin::code as Walk)).collect();
    let has_own_nccl = expected.value(Key::Framework).is_none() || expected.value(Key::Nccl).is_some();
    let with_nccl = if has_own_nccl { &mut own } else { &mut of_users };
    with_nccl.extend(nccl.iter().map(|path| walked(path, fatbin::linked_code as Walk)));
    if own.is_empty() {
        let report =
            Report::skipped(ID, SkipReason::NotInImage, "no file with the stack's own kernels was found");
        return vec![with_narrower(report, &of_users, &chips)];
    }
    vec![with_narrower(judge(&own, &chips), &of_users, &chips)]
}

/// The GPUs that the image is meant for: those that are named, else those of the stack that its processor can be next to.
fn chips(expected: &Expectation) -> BTreeSet<Capability> {
    let targets = expected.chips(Key::Target);
    if !targets.is_empty() {
        return targets;
    }
    let mut all = expected.chips(Key::Arch);
    if cfg!(not(target_arch = "aarch64")) {
        all.retain(|chip| !is_integrated(*chip));
    }
    all
}

/// Whether the stack promises GPUs for a package; a package of a user is as good as it is. Without a lock every one counts.
fn is_of_the_stack(package: &str, expected: &Expectation) -> bool {
    match expected.value(Key::Framework) {
        None => true,
        Some("jax") => package == "jax_plugins",
        Some("vllm" | "sglang") => ["vllm", "torch"].contains(&package),
        Some(framework) => package == framework,
    }
}

/// Adds a warning where packages of the user have no code for a GPU of the image.
fn with_narrower(mut report: Report, of_users: &[Walked], chips: &BTreeSet<Capability>) -> Report {
    let known = of_users.iter().filter_map(|(path, code)| Some((path, code.as_ref().ok()?.as_ref()?)));
    let narrower: Vec<_> = known.filter_map(|(path, code)| lack(path, code, chips)).collect();
    if narrower.is_empty() || !report.is_good() {
        return report;
    }
    report.detail.push_str(&format!("; a package of the user is narrower: {}", narrower.join("; ")));
    report.with_warning("a package of the user has no code for a GPU of the image")
}

/// How a file lacks code for some of the GPUs.
fn lack(path: &str, code: &Code, chips: &BTreeSet<Capability>) -> Option<String> {
    let lacks = |chip: &&Capability| code.coverage(**chip) == Coverage::Nothing;
    let names: Vec<_> = chips.iter().filter(lacks).map(|chip| sm(*chip)).collect();
    (!names.is_empty()).then(|| format!("{path} has no code for {} (it has {})", names.join(" "), list(code)))
}

/// The files that hold the kernels of frameworks, each with its package.
fn files(options: &Options) -> Vec<(&'static str, PathBuf)> {
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
                    files.push((package, path.to_owned()));
                }
            });
        }
    }
    files
}

/// How the code of a file is found.
type Walk = fn(&File) -> Result<Option<Code>, String>;

/// A file, and its code.
type Walked = (String, Result<Option<Code>, String>);

fn read(path: &Path, walk: Walk) -> Result<Option<Code>, String> {
    walk(&File::open(path).map_err(|error| error.to_string())?)
}

/// Missing code fails; an unknown layout never passes.
fn judge(walked: &[Walked], chips: &BTreeSet<Capability>) -> Report {
    let (mut lacking, mut unknown, mut known) = (Vec::new(), Vec::new(), Vec::new());
    for (path, result) in walked {
        let file = path.rsplit('/').next().unwrap_or(path);
        match result {
            Ok(Some(code)) => {
                known.push((file, code));
                lacking.extend(lack(path, code, chips));
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

    /// `any` asks for no GPU of a Jetson board in a machine with another processor.
    #[test]
    fn gpus_of_the_stack_are_bounded_by_the_processor() {
        let all = |text: &str| chips(&Expectation::parse(text).expect("reads"));
        let expected =
            if cfg!(target_arch = "aarch64") { vec![(8, 7), (9, 0), (11, 0)] } else { vec![(9, 0)] };
        assert_eq!(all("arch=8.7\narch=9.0\narch=11.0\n"), expected.into_iter().collect());
        assert_eq!(all("arch=9.0\ntarget=8.7\n"), BTreeSet::from([(8, 7)]), "it is named");
    }

    #[test]
    fn package_of_a_user_that_is_narrower_is_a_warning() {
        let root = image(&[(2, 80), (2, 90)]);
        let folder = root.path().join("opt/env/lib/python3.11/site-packages/onnxruntime");
        std::fs::create_dir_all(&folder).expect("made");
        let narrow = library(&[(2, 80)]);
        std::fs::write(folder.join("libonnxruntime_providers_cuda.so"), &narrow).expect("written");
        let good = report(root.path(), "framework=torch\ntarget=9.0\n");
        assert_eq!(good.outcome, Outcome::Passed, "{}", good.detail);
        assert!(
            good.detail.contains("narrower: ") && good.detail.contains("has no code for sm_90"),
            "{}",
            good.detail
        );
        assert!(good.measured.iter().any(|(name, _)| name == "warning"));
        let own = report(root.path(), "framework=onnxruntime\ntarget=9.0\n");
        assert_eq!(own.outcome, Outcome::Failed, "{}", own.detail);
        let unlocked = report(root.path(), "target=9.0\n");
        assert_eq!(unlocked.outcome, Outcome::Failed, "an image from elsewhere is asked as a whole");
    }

    #[test]
    fn unknown_layout_is_skipped() {
        let root = image(&[(9, 80)]);
        let report = report(root.path(), "target=8.0\n");
        assert_eq!(report.outcome, Outcome::Skipped);
        assert!(report.detail.starts_with("unknown: "), "{}", report.detail);
    }
}

//! Proves that the framework imports and is the locked build: its version, its CUDA, cuDNN, NCCL and Triton, and
//! the GPUs its binary has code for.

use std::collections::{BTreeMap, BTreeSet};

use envforge_protocol::{CheckGroup, CheckId, Expectation, Key, Outcome, SkipReason};

use super::{Options, errored};
use crate::probe;
use crate::report::Report;

const IDS: &[CheckId] = CheckGroup::Framework.checks();
/// The frameworks that are asked where no lock names one, the first that is installed.
const ASKED: [&str; 4] = ["torch", "tensorflow", "jax", "cupy"];

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let expected = match options.expectation_if_given() {
        Ok(expected) => expected,
        Err(problem) => return errored(IDS, &problem),
    };
    let skipped = |reason, text: &str| IDS.iter().map(|id| Report::skipped(*id, reason, text)).collect();
    let name = expected.value(Key::Framework).unwrap_or_else(|| installed(options)).to_owned();
    if !probe::knows(&name) {
        return skipped(SkipReason::NotOffered, "the agent cannot query this framework");
    }
    let alone = expected.value(Key::Framework).is_none();
    let python = if alone { options.any_python() } else { Some(options.python()) };
    let Some(python) = python else {
        return skipped(SkipReason::NotInImage, "Python is not in the image");
    };
    match probe::framework(&python, &name) {
        Ok(answers) => judge(&answers, &expected),
        Err(problem) if alone && problem.contains("No module named 'torch'") => {
            skipped(SkipReason::NotInImage, "PyTorch is not in the image")
        }
        Err(problem) => IDS
            .iter()
            .map(|id| Report::new(*id, Outcome::Failed, problem.clone()))
            .map(|report| report.hint("build again, or report the missing library with the lock"))
            .collect(),
    }
}

/// The framework to ask where no lock names one.
fn installed(options: &Options) -> &'static str {
    let folders = options.packages();
    let is_there = |name: &&str| folders.iter().any(|packages| packages.join(name).is_dir());
    ASKED.into_iter().find(is_there).unwrap_or(ASKED[0])
}

fn judge(answers: &BTreeMap<String, String>, expected: &Expectation) -> Vec<Report> {
    let answer = |key: &str| answers.get(key).map_or("no value", String::as_str);
    let compared = |id: CheckId, key: &str, found: String, wanted: Option<String>| match wanted {
        Some(wanted) => Report::of_value(id, &found, &wanted)
            .hint("check wheels, indexes and constraints: another build of the framework is installed"),
        // The agent runs without an expectation.
        None if expected.value(Key::Framework).is_none() => {
            let has_no_cuda =
                id == CheckId::FrameworkCuda && !found.starts_with(|c: char| c.is_ascii_digit());
            let detail = if has_no_cuda {
                format!(
                    "{found}: the framework runs on no NVIDIA GPU, as it was built without CUDA or lacks its CUDA part"
                )
            } else {
                format!("{found} (not compared: no expected version)")
            };
            let report = Report::skipped(id, SkipReason::NoExpectation, detail).measure("value", &found);
            if has_no_cuda { report.with_warning("no CUDA") } else { report }
        }
        None => Report::skipped(id, SkipReason::NotInStack, format!("{key} is not in the stack")),
    };
    let wanted = |key: Key| expected.value(key).map(str::to_owned);
    let cudnn = probe::cudnn_version(answer("cudnn")).unwrap_or_else(|| answer("cudnn").to_owned());
    vec![
        compared(CheckId::FrameworkVersion, "framework", answer("version").to_owned(), wanted(Key::Version)),
        compared(CheckId::FrameworkCuda, "CUDA", answer("cuda").to_owned(), wanted(Key::Cuda)),
        // The number has three parts; the lock's version has the build as a fourth.
        compared(
            CheckId::CudnnVersion,
            "cuDNN",
            cudnn,
            wanted(Key::Cudnn).map(|version| first_three(&version)),
        ),
        compared(
            CheckId::NcclVersion,
            "NCCL",
            answer("nccl").to_owned(),
            wanted(Key::Nccl).map(|version| first_three(&version)),
        ),
        compared(CheckId::TritonVersion, "Triton", answer("triton").to_owned(), wanted(Key::Triton)),
        match answers.get("flags") {
            Some(flags) => architectures(flags, expected),
            None => Report::skipped(
                CheckId::FrameworkArchitectures,
                SkipReason::NotReported,
                "the framework does not report them; see `code-for-target`",
            ),
        },
    ]
}

fn first_three(version: &str) -> String {
    version.split('.').take(3).collect::<Vec<_>>().join(".")
}

/// `sm_70 sm_90a compute_120` against the lock's targets.
fn architectures(flags: &str, expected: &Expectation) -> Report {
    const ID: CheckId = CheckId::FrameworkArchitectures;
    if expected.arch.is_empty() {
        return Report::skipped(ID, SkipReason::NoExpectation, "the expected architectures are not known");
    }
    let found = |prefix: &str| -> BTreeSet<String> {
        flags.split_whitespace().filter_map(|flag| flag.strip_prefix(prefix)).filter_map(dotted).collect()
    };
    let list = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(" ");
    let both = |sass: &BTreeSet<String>, ptx: &BTreeSet<String>| {
        if ptx.is_empty() { list(sass) } else { format!("{} +PTX {}", list(sass), list(ptx)) }
    };
    Report::of_value(ID, &both(&found("sm_"), &found("compute_")), &both(&expected.arch, &expected.ptx))
        .hint("report this: the binary has code for other GPUs than the matrix lists")
}

/// `90a` as `9.0`.
fn dotted(digits: &str) -> Option<String> {
    let digits = digits.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let (major, minor) = digits.split_at_checked(digits.len().checked_sub(1)?)?;
    (!major.is_empty()).then(|| format!("{major}.{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected() -> Expectation {
        Expectation::parse(
            "framework=torch\nversion=2.8.0+cu128\ncuda=12.8\ncudnn=9.10.2.21\nnccl=2.27.3\narch=7.0\narch=12.0\n",
        )
        .expect("reads")
    }

    fn answers(changes: &[(&str, &str)]) -> BTreeMap<String, String> {
        let good = [
            ("version", "2.8.0+cu128"),
            ("cuda", "12.8"),
            ("cudnn", "91002"),
            ("nccl", "2.27.3"),
            ("flags", "sm_70 sm_120"),
        ];
        good.iter().chain(changes).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn outcomes(changes: &[(&str, &str)]) -> Vec<Outcome> {
        judge(&answers(changes), &expected()).iter().map(|report| report.outcome).collect()
    }

    #[test]
    fn matching_versions_pass_and_missing_components_are_skipped() {
        use Outcome::{Passed, Skipped};
        assert_eq!(outcomes(&[]), [Passed, Passed, Passed, Passed, Skipped, Passed]);
    }

    #[test]
    fn each_difference_fails_its_own_check() {
        for (position, change) in [
            (0, ("version", "2.8.0+cpu")),
            (1, ("cuda", "None")),
            (2, ("cudnn", "90900")),
            (3, ("nccl", "2.27.5")),
            (5, ("flags", "sm_70")),
        ] {
            let outcomes = outcomes(&[change]);
            assert_eq!(outcomes[position], Outcome::Failed, "{change:?}");
            assert_eq!(
                outcomes.iter().filter(|outcome| **outcome == Outcome::Failed).count(),
                1,
                "{change:?}"
            );
        }
    }

    #[test]
    fn versions_are_reported_without_an_expectation() {
        let reports = judge(&answers(&[]), &Expectation::default());
        assert!(reports.iter().all(|report| report.outcome == Outcome::Skipped), "{reports:?}");
        assert_eq!(reports[0].detail, "2.8.0+cu128 (not compared: no expected version)");
        assert_eq!(reports[0].measured, [("value".to_owned(), "2.8.0+cu128".to_owned())]);
    }

    /// The build of another accelerator, or of the processor alone.
    #[test]
    fn framework_without_cuda_is_a_warning_where_nothing_is_expected() {
        let cuda = |value: &str| judge(&answers(&[("cuda", value)]), &Expectation::default()).remove(1);
        let has_warning = |report: &Report| report.measured.iter().any(|(name, _)| name == "warning");
        assert!(!has_warning(&cuda("12.8")));
        let none = cuda("None");
        assert!(has_warning(&none) && none.detail.starts_with("None: "), "{}", none.detail);
        assert_eq!(none.outcome, Outcome::Skipped);
    }

    #[test]
    fn framework_to_ask_is_the_one_that_is_installed() {
        let root = tempfile::tempdir().expect("folder");
        let options = Options { root: root.path().into(), ..Options::default() };
        assert_eq!(installed(&options), "torch");
        std::fs::create_dir_all(root.path().join("usr/local/lib/python3.11/site-packages/jax"))
            .expect("made");
        assert_eq!(installed(&options), "jax");
    }

    #[test]
    fn architecture_suffixes_belong_to_their_target() {
        assert_eq!(dotted("90a").as_deref(), Some("9.0"));
        assert_eq!(dotted("120").as_deref(), Some("12.0"));
        assert_eq!(dotted(""), None);
    }
}

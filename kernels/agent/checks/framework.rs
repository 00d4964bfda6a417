//! Proves that the framework imports and is what the lock promises: its version, its CUDA, cuDNN, NCCL and Triton, and
//! the GPUs its binary has code for.

use std::collections::{BTreeMap, BTreeSet};

use super::super::expect::Expectation;
use super::super::probe;
use super::super::report::{Outcome, Report};
use super::{Options, errored};

pub(crate) const IDS: &[&str] = &[
    "framework-version",
    "framework-cuda",
    "cudnn-version",
    "nccl-version",
    "triton-version",
    "framework-architectures",
];

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let expected = match options.promises() {
        Ok(expected) => expected,
        Err(problem) => return errored(IDS, &problem),
    };
    let skipped = |why: &str| IDS.iter().map(|id| Report::new(id, Outcome::Skipped, why)).collect();
    let name = expected.value("framework").unwrap_or("torch").to_owned();
    if !probe::NAMES.contains(&name.as_str()) {
        return skipped("this framework has no probe");
    }
    let alone = expected.value("framework").is_none();
    let python = if alone { options.any_python() } else { Some(options.python()) };
    let Some(python) = python else {
        return skipped("Python is not in the image");
    };
    match probe::framework(&python, &name) {
        Ok(answers) => judge(&answers, &expected),
        Err(problem) if alone && problem.contains("No module named 'torch'") => {
            skipped("PyTorch is not in the image")
        }
        Err(problem) => IDS
            .iter()
            .map(|id| Report::new(id, Outcome::Failed, problem.clone()))
            .map(|report| {
                report.hint("a missing library is named above; build again, or report it with the lock")
            })
            .collect(),
    }
}

fn judge(answers: &BTreeMap<String, String>, expected: &Expectation) -> Vec<Report> {
    let answer = |key: &str| answers.get(key).map_or("nothing", String::as_str);
    let compared = |id: &str, key: &str, found: String, wanted: Option<String>| match wanted {
        Some(wanted) => Report::of_value(id, &found, &wanted).hint(
            "another build of the framework took its place: a wheel, an index or a constraint is wrong",
        ),
        // The agent alone: nothing was promised.
        None if expected.value("framework").is_none() => {
            let mut report = Report::new(id, Outcome::Skipped, format!("{found}: told, not compared"));
            report.measured.push(("value".to_owned(), found));
            report
        }
        None => Report::new(id, Outcome::Skipped, format!("{key} is not in the stack")),
    };
    let wanted = |key: &str| expected.value(key).map(str::to_owned);
    let cudnn = probe::cudnn_version(answer("cudnn")).unwrap_or_else(|| answer("cudnn").to_owned());
    vec![
        compared("framework-version", "framework", answer("version").to_owned(), wanted("version")),
        compared("framework-cuda", "CUDA", answer("cuda").to_owned(), wanted("cuda")),
        // The number has three parts; the lock's version has the build as a fourth.
        compared("cudnn-version", "cuDNN", cudnn, wanted("cudnn").map(|version| first_three(&version))),
        compared(
            "nccl-version",
            "NCCL",
            answer("nccl").to_owned(),
            wanted("nccl").map(|version| first_three(&version)),
        ),
        compared("triton-version", "Triton", answer("triton").to_owned(), wanted("triton")),
        match answers.get("flags") {
            Some(flags) => architectures(flags, expected),
            None => Report::new(
                "framework-architectures",
                Outcome::Skipped,
                "this framework does not say; `code-for-target` looks",
            ),
        },
    ]
}

fn first_three(version: &str) -> String {
    version.split('.').take(3).collect::<Vec<_>>().join(".")
}

/// `sm_70 sm_90a compute_120` against the targets the lock promises.
fn architectures(flags: &str, expected: &Expectation) -> Report {
    const ID: &str = "framework-architectures";
    if expected.arch.is_empty() {
        return Report::new(ID, Outcome::Skipped, "the targets of this binary are not established");
    }
    let found = |prefix: &str| -> BTreeSet<String> {
        flags.split_whitespace().filter_map(|flag| flag.strip_prefix(prefix)).filter_map(dotted).collect()
    };
    let list = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(" ");
    let both = |sass: &BTreeSet<String>, ptx: &BTreeSet<String>| {
        if ptx.is_empty() { list(sass) } else { format!("{} +PTX {}", list(sass), list(ptx)) }
    };
    Report::of_value(ID, &both(&found("sm_"), &found("compute_")), &both(&expected.arch, &expected.ptx))
        .hint("the binary has code for other GPUs than the matrix says: its row is wrong, please report it")
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
    fn what_is_promised_passes_and_what_is_not_in_the_stack_is_skipped() {
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
    fn without_a_promise_versions_are_told_and_not_compared() {
        let reports = judge(&answers(&[]), &Expectation::default());
        assert!(reports.iter().all(|report| report.outcome == Outcome::Skipped), "{reports:?}");
        assert_eq!(reports[0].detail, "2.8.0+cu128: told, not compared");
        assert_eq!(reports[0].measured, [("value".to_owned(), "2.8.0+cu128".to_owned())]);
    }

    #[test]
    fn architecture_suffixes_belong_to_their_target() {
        assert_eq!(dotted("90a").as_deref(), Some("9.0"));
        assert_eq!(dotted("120").as_deref(), Some("12.0"));
        assert_eq!(dotted(""), None);
    }
}

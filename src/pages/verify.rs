//! The verification report: verdict, machine, image and lock, each check with its finding and cure.

use std::collections::BTreeSet;

use envforge_protocol::CheckId;
use serde::Serialize;

use super::document::Document;
use crate::model::verdict::{Check, Verdict, VerdictStatus, outcome_word, summary};

/// An image that could not be checked.
#[derive(Debug, Serialize)]
pub struct Unchecked {
    /// The image as given on the command line.
    pub image: String,
    /// The error.
    pub error: String,
    /// Its hints.
    pub hints: Vec<String>,
}

#[derive(Serialize)]
struct Reports<'a> {
    reports: Vec<Report<'a>>,
    errors: &'a [Unchecked],
}

/// One report, in the order of the page.
#[derive(Serialize)]
struct Report<'a> {
    name: &'a str,
    colour: &'static str,
    summary: String,
    proven: &'a str,
    /// Whose key proves it for the machine of the report.
    by_key: Option<&'a str>,
    checked: &'a str,
    level: &'a str,
    seconds: f64,
    gpus: &'a [String],
    driver: Option<String>,
    not_proven: Vec<String>,
    engine: Option<&'a str>,
    image: &'a str,
    digests: &'a [String],
    lock: Option<&'a str>,
    versions: Vec<Pair<'a>>,
    /// The outcomes that occur, for the filter.
    words: BTreeSet<&'static str>,
    checks: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Pair<'a> {
    name: &'a str,
    value: &'a str,
}

/// One check.
#[derive(Serialize)]
struct Row<'a> {
    word: &'static str,
    colour: &'static str,
    bad: bool,
    id: &'a str,
    stage: &'a str,
    required: bool,
    detail: &'a str,
    hint: Option<&'a str>,
    skip: Option<&'static str>,
    values: Vec<Figure<'a>>,
}

#[derive(Serialize)]
struct Figure<'a> {
    name: &'a str,
    measured: &'a str,
    expected: Option<&'a str>,
}

/// A report, and what all reports of its image prove together.
#[derive(Debug)]
pub struct ReportedImage<'a> {
    /// The report.
    pub report: &'a Verdict,
    /// What is proven of the image, which a later failure may have withdrawn.
    pub proven: &'a str,
    /// Whose key proves it for this machine, which did not.
    pub by_key: Option<&'a str>,
}

/// Returns the page of these reports.
pub fn verify_page(images: &[ReportedImage<'_>], errors: &[Unchecked]) -> String {
    let reports: Vec<_> = images.iter().map(report).collect();
    let title = match (reports.as_slice(), errors) {
        ([one], []) => format!("{}: verification report", one.name),
        _ => "Verification reports".to_owned(),
    };
    let document = Document { template: "verify.html.j2", title: &title, source: "envforge verify --json" };
    document.write(&Reports { reports, errors })
}

fn report<'a>(image: &ReportedImage<'a>) -> Report<'a> {
    let ReportedImage { report: verdict, proven, by_key } = *image;
    let mut checks: Vec<_> = verdict.checks.iter().map(row).collect();
    // What bars a tag first, then warnings; within them the order in which the checks ran.
    checks.sort_by_key(|check| (!check.bad, check.word != "warning"));
    Report {
        name: if verdict.name.is_empty() { &verdict.image } else { &verdict.name },
        colour: match verdict.verdict {
            VerdictStatus::Passed => "good",
            VerdictStatus::Failed => "bad",
            VerdictStatus::Undecided => "warn",
            VerdictStatus::StaticOnly => "even",
        },
        summary: summary(verdict),
        proven,
        by_key,
        checked: &verdict.checked,
        level: &verdict.level,
        seconds: verdict.seconds,
        gpus: &verdict.gpus,
        driver: driver(verdict),
        not_proven: verdict.not_proven.iter().map(|capability| capability.dotted()).collect(),
        engine: verdict.engine.as_deref(),
        image: &verdict.image,
        digests: &verdict.digests,
        lock: verdict.lock.as_deref(),
        versions: verdict.versions.iter().map(|(name, value)| Pair { name, value }).collect(),
        words: checks.iter().map(|check| check.word).collect(),
        checks,
    }
}

/// Returns the driver's version and its CUDA, as the checks of them measured it.
fn driver(verdict: &Verdict) -> Option<String> {
    let measured = |id: CheckId, name: &str| {
        verdict.checks.iter().find(|check| check.id == id.as_str())?.measured.get(name)
    };
    let (version, cuda) = (measured(CheckId::Device, "driver"), measured(CheckId::Driver, "cuda"));
    match (version, cuda) {
        (Some(version), Some(cuda)) => Some(format!("{version}, supports CUDA {cuda}")),
        (Some(version), None) => Some(version.clone()),
        (None, Some(cuda)) => Some(format!("supports CUDA {cuda}")),
        (None, None) => None,
    }
}

fn row(check: &Check) -> Row<'_> {
    let word = outcome_word(check);
    let names: BTreeSet<_> = check.measured.keys().chain(check.expected.keys()).collect();
    let values = names.into_iter().map(|name| Figure {
        name,
        measured: check.measured.get(name).map_or("-", String::as_str),
        expected: check.expected.get(name).map(String::as_str),
    });
    Row {
        word,
        colour: match (word, check.is_bad()) {
            (_, true) => "bad",
            ("warning", _) => "warn",
            ("ok", _) => "good",
            _ => "even",
        },
        bad: check.is_bad(),
        id: &check.id,
        stage: &check.stage,
        required: check.required,
        detail: &check.detail,
        hint: check.hint.as_deref(),
        skip: check.skip.map(envforge_protocol::SkipReason::as_str),
        values: values.collect(),
    }
}

//! What `verify` prints.

use std::fmt::Write as _;

use serde::Serialize;

use crate::failure::Exit;
use crate::model::lock::Lock;
use crate::model::request;
use crate::model::verdict::standing::ImageReports;
use crate::model::verdict::{Detail, Verdict, VerdictStatus, check_lines, junit, summary, unseen_line};
use crate::model::visible::visible_line;
use crate::pages::{ReportedImage, Unchecked, verify_page};
use crate::report::Printer;
use crate::settings::Settings;
use crate::store::{StoreError, write_atomically};
use crate::workflow::error::CommandError;
use crate::workflow::image_error::ImageError;
use crate::workflow::push::Pushed;

/// What came of one image.
pub(super) struct VerifyOutcome {
    pub(super) name: String,
    pub(super) result: Result<Verdict, CommandError>,
    pub(super) reward: VerifiedTags,
    /// What is proven of the image by all its reports.
    pub(super) proven: String,
    /// Whose key proves it for this machine, which did not.
    pub(super) by_key: Option<String>,
    /// Why not all of the reward could be given.
    pub(super) undone: Option<CommandError>,
}

/// What a verified image gets.
#[derive(Default)]
pub(super) struct VerifiedTags {
    /// Tags put on it now.
    pub(super) tags: Vec<String>,
    /// Tags that a registry has now.
    pub(super) pushed: Vec<Pushed>,
    /// Images that have new evidence, each with the key.
    pub(super) attested: Vec<String>,
}

impl VerifyOutcome {
    /// A report alone, or why there is none.
    pub(super) fn of(name: &str, result: Result<Verdict, CommandError>) -> Self {
        let (reward, proven) = (VerifiedTags::default(), String::new());
        Self { name: name.to_owned(), result, reward, proven, by_key: None, undone: None }
    }
}

/// What `verify --json` prints for several images.
#[derive(Serialize)]
struct Several<'a> {
    schema: u32,
    verdict: VerdictStatus,
    reports: Vec<&'a Verdict>,
    errors: Vec<Unchecked>,
}

/// The reports, each with what is proven of its image.
fn reported(answers: &[VerifyOutcome]) -> Vec<ReportedImage<'_>> {
    let checked = answers.iter().filter_map(|answer| Some((answer.result.as_ref().ok()?, answer)));
    checked
        .map(|(report, VerifyOutcome { proven, by_key, .. })| ReportedImage {
            report,
            proven,
            by_key: by_key.as_deref(),
        })
        .collect()
}

/// The images that could not be checked.
fn unchecked(answers: &[VerifyOutcome]) -> Vec<Unchecked> {
    let error = |answer: &VerifyOutcome| {
        let error = answer.result.as_ref().err()?;
        Some(Unchecked { image: answer.name.clone(), error: error.to_string(), hints: error.hints() })
    };
    answers.iter().filter_map(error).collect()
}

/// Writes the files that were requested, and shows the answers.
pub(super) fn finish(
    answers: Vec<VerifyOutcome>,
    args: &request::Verify,
    settings: &Settings,
) -> Result<Exit, CommandError> {
    let verdicts: Vec<_> = answers.iter().filter_map(|answer| answer.result.as_ref().ok()).collect();
    if let Some(file) = &args.html {
        let page = verify_page(&reported(&answers), &unchecked(&answers));
        write_atomically(&settings.paths.current_dir.join(file), page.as_bytes())?;
    }
    if let Some(file) = &args.junit {
        write_atomically(&settings.paths.current_dir.join(file), junit(&verdicts).as_bytes())?;
    }
    show(answers, settings)
}

/// Prints the answers and gives the gravest exit code.
fn show(mut answers: Vec<VerifyOutcome>, settings: &Settings) -> Result<Exit, CommandError> {
    let alone = answers.len() == 1;
    if alone && answers.iter().any(|answer| answer.result.is_err()) {
        let answer = answers.remove(0);
        return answer.result.map(|_| Exit::Done);
    }
    if settings.output.json {
        print_json(&answers, alone);
    } else {
        print_text(&answers, Detail::of(settings.output.verbose));
    }
    for answer in &answers {
        if let Some(error) = answer.result.as_ref().err().or(answer.undone.as_ref()) {
            Printer.say(&visible_line(&answer.name));
            Printer.say_painted(&error.report(settings.output.color));
        }
    }
    let exits = answers.iter().map(|answer| match (&answer.result, &answer.undone) {
        (Ok(verdict), _) if verdict.verdict == VerdictStatus::Failed => Exit::No,
        (Ok(verdict), None) if verdict.verdict == VerdictStatus::Undecided => Exit::Outside,
        (Err(error), _) | (Ok(_), Some(error)) => error.exit(),
        (Ok(_), None) => Exit::Done,
    });
    Ok(exits.max_by_key(|exit| *exit as u8).unwrap_or(Exit::Done))
}

fn print_json(answers: &[VerifyOutcome], alone: bool) {
    let reports: Vec<_> = answers.iter().filter_map(|answer| answer.result.as_ref().ok()).collect();
    if let (true, [report]) = (alone, reports.as_slice()) {
        Printer.json(report);
        return;
    }
    let errors = unchecked(answers);
    let any = |word: VerdictStatus| reports.iter().any(|report| report.verdict == word);
    let all = |word: VerdictStatus| reports.iter().all(|report| report.verdict == word);
    let verdict = if !errors.is_empty() || any(VerdictStatus::Failed) {
        VerdictStatus::Failed
    } else if any(VerdictStatus::Undecided) {
        VerdictStatus::Undecided
    } else if all(VerdictStatus::Passed) {
        VerdictStatus::Passed
    } else {
        VerdictStatus::StaticOnly
    };
    Printer.json(&Several { schema: 1, verdict, reports, errors });
}

fn print_text(answers: &[VerifyOutcome], detail: Detail) {
    let alone = answers.len() == 1;
    for answer in answers {
        let Ok(verdict) = &answer.result else { continue };
        let mut text = String::new();
        if !alone {
            let _ = writeln!(text, "{}", answer.name);
        }
        text += &check_lines(verdict, detail);
        text += &unseen_line(verdict);
        for tag in &answer.reward.tags {
            let _ = writeln!(text, "verified: {tag}");
        }
        for pushed in &answer.reward.pushed {
            let _ = writeln!(text, "pushed: {}", pushed.pinned());
        }
        for attested in &answer.reward.attested {
            let _ = writeln!(text, "attested: {attested}");
        }
        if let Some(by_key) = &answer.by_key {
            let _ = writeln!(text, "{by_key}");
        }
        let _ = writeln!(text, "{}", summary(verdict));
        if !alone {
            text.push('\n');
        }
        Printer.text(&text);
    }
}

/// Returns the report to show of an image, or why there is none.
pub(super) fn shown(
    reports: &ImageReports,
    lock: Option<&Lock>,
    name: &str,
) -> Result<Verdict, CommandError> {
    if let Some(report) = reports.shown(lock) {
        return Ok(report.clone());
    }
    match reports.damaged.first() {
        Some((file, why)) => Err(StoreError::Report { file: file.clone(), why: why.clone() }.into()),
        None => Err(no_report(name)),
    }
}

/// Returns the error for an image without a report.
pub(super) fn no_report(name: &str) -> CommandError {
    ImageError::NoReport { image: name.to_owned() }.into()
}

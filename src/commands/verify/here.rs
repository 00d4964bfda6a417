//! `verify FILE` on this machine: a container runtime starts the file, as on a node of `--on`; its report is kept by the file's SHA-256.
#![expect(clippy::disallowed_methods, reason = "times the checks")]

use std::time::Instant;

use super::nodes::{expectations, limits, lock_of};
use super::report::{VerifyOutcome, finish, no_report, shown};
use crate::failure::Exit;
use crate::fleet::{Heard, Outcome, Stage, merge};
use crate::model::request::{self, Level};
use crate::model::verdict::{Verdict, expectation_file};
use crate::model::visible::visible_line;
use crate::report::{Event, reporter};
use crate::settings::Settings;
use crate::store::Store;
use crate::workflow::error::CommandError;
use crate::workflow::fleet::{
    Asked, FleetError, HERE, Launcher, NodeFile, STEP, Screen, Subject, ask_here, judged,
};
use crate::workflow::gpus::none_here;
use crate::workflow::proven::{reports_of, save_report};

/// Verifies a file, or shows its latest report.
pub(super) async fn verify_file(
    args: &request::Verify,
    name: &str,
    settings: &Settings,
) -> Result<Exit, CommandError> {
    refuse(args, name)?;
    let reporter = reporter(settings.output);
    let subject = Subject::of(&args.images, &settings.paths.current_dir, &*reporter).await?;
    let Subject::File(NodeFile { sha256, .. }) = &subject else { return Err(no_report(name)) };
    let image = format!("sha256:{sha256}");
    let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
    let fresh = if args.last {
        None
    } else {
        let verdict = checked(args, (name, &subject), settings).await?;
        let verdict = Verdict { image: image.clone(), name: name.to_owned(), ..verdict };
        save_report(&store, &*reporter, &verdict).await?;
        Some(verdict)
    };
    let reports = reports_of(&store, &*reporter, &image)?;
    let proven = reports.proven(None).to_string();
    let result = fresh.map_or_else(|| shown(&reports, None, name), Ok);
    finish(vec![VerifyOutcome { proven, ..VerifyOutcome::of(name, result) }], args, settings)
}

/// Refuses what is about images of an engine or of a registry.
fn refuse(args: &request::Verify, name: &str) -> Result<(), FleetError> {
    let file = || name.to_owned();
    if args.images.len() > 1 {
        return Err(FleetError::FileAndImages { file: file() });
    }
    if args.attest {
        return Err(FleetError::NoRegistry { file: file() });
    }
    let options = [
        ("--push", args.push),
        ("--record", args.record),
        ("--gpus", args.gpus.is_some()),
        ("--gpu", !args.gpu.is_empty()),
    ];
    match options.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(FleetError::FileOption { file: file(), option }),
        None => Ok(()),
    }
}

/// Runs the checks in the file.
async fn checked(
    args: &request::Verify,
    (name, subject): (&str, &Subject),
    settings: &Settings,
) -> Result<Verdict, CommandError> {
    let reporter = reporter(settings.output);
    let level = if none_here(settings) { Level::Static } else { args.level };
    if level != args.level {
        let text = "no GPU on this machine: the static checks run".to_owned();
        reporter.report(Event::Note { text });
    }
    let lock = lock_of(args, settings)?;
    let expected = expectations(lock.as_ref(), level);
    let limits = limits(args, level);
    let facts = lock.as_ref().map(expectation_file);
    let launcher = Launcher::new(subject, level, facts.as_deref(), limits);
    let (words, screen) = (&[][..], Screen::default());
    let asked = Asked { launcher: &launcher, limits, words, parallel: None, reporter: &reporter, screen };
    let started = Instant::now();
    reporter.report(Event::StepStarted { id: STEP.to_owned(), text: format!("verify {name}") });
    let answer = asked.shown(ask_here(&asked)).await?;
    let seconds = started.elapsed().as_secs_f64();
    let (id, has_report) = (STEP.to_owned(), answer.as_ref().is_ok_and(|report| report.stage == Stage::End));
    reporter.report(if has_report {
        Event::StepFinished { id, cached: false, seconds }
    } else {
        Event::StepFailed { id, text: "no report".to_owned() }
    });
    let file = name.to_owned();
    if let Ok(report) = &answer
        && report.stage == Stage::Runtime
    {
        let last = report.why.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        let why = visible_line(last.trim_start_matches("error: "));
        return Err(FleetError::NoRuntime { file, why }.into());
    }
    let outcome: Outcome = answer.map_or_else(|outcome| outcome, |report| judged(report, &expected));
    let heard = Heard { asked: None, source: HERE.to_owned(), gpus: None, outcome };
    let row = merge(vec![heard], true).rows.into_iter().next();
    let (verdict, runtime, why) =
        row.map(|row| (row.verdict, row.facts.runtime, row.why)).unwrap_or_default();
    let verdict = verdict.ok_or_else(|| FleetError::FileHere { file, why: why.join("; ") })?;
    Ok(Verdict { engine: runtime, lock: lock.map(|lock| lock.hash()), ..verdict })
}

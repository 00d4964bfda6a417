//! `verify --on` and `verify --merge`: one answer about many nodes.
#![expect(clippy::disallowed_methods, reason = "times the call")]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use envforge_protocol::{CheckId, Scope};

use crate::failure::Exit;
use crate::fleet::{
    Drain, Fleet, FleetReport, Heard, answer, confirm, fold, merge, most_drained, suspects, verdicts,
};
use crate::model::counted::counted;
use crate::model::image::render::shell_word;
use crate::model::image_ref::ImageRef;
use crate::model::lock::Lock;
use crate::model::request::{self, Level, Nodes};
use crate::model::verdict::required_checks::{gpu_checks, static_checks};
use crate::model::verdict::{ImageExpectations, Verdict, expectation_file, junit};
use crate::pages::fleet_page;
use crate::report::{Event, Printer, reporter};
use crate::settings::Settings;
use crate::store::write_atomically;
use crate::workflow::error::CommandError;
use crate::workflow::fleet::{
    Answer, Asked, FleetError, Launcher, Limits, STEP, ask_slurm, ask_ssh, drain_node, hosts_of, judged,
    read_reports,
};
use crate::workflow::lock_file::lock_bytes;

/// Seconds in which a node fetches the image, where nothing else is given.
const PULL: u64 = 1_800;

/// Asks nodes and shows their answer.
pub(super) async fn ask(
    args: &request::Verify,
    nodes: &Nodes,
    settings: &Settings,
) -> Result<Exit, CommandError> {
    let image = image_of(args)?;
    if args.fleet.drain && !matches!(nodes, Nodes::Slurm(_)) {
        return Err(FleetError::NothingToDrain.into());
    }
    let program = if matches!(nodes, Nodes::Slurm(_)) { "srun" } else { "ssh" };
    if let Some(word) = args.fleet.words.first().filter(|word| !word.starts_with('-')) {
        return Err(FleetError::Word { word: word.clone(), program }.into());
    }
    let lock = lock_of(args, settings)?;
    let expected = expectations(lock.as_ref(), args.level);
    let limits = limits(args);
    let facts = lock.as_ref().map(expectation_file);
    let launcher = Launcher::new(&image, args.level, facts.as_deref(), limits);
    let reporter = reporter(settings.output);
    let fleet = &args.fleet;
    let asked = Asked {
        launcher: &launcher,
        limits,
        words: &fleet.words,
        parallel: fleet.parallel,
        reporter: &reporter,
    };
    let started = Instant::now();
    reporter.report(Event::StepStarted { id: STEP.to_owned(), text: format!("verify {image} on nodes") });
    let (answers, others, is_named) = match nodes {
        Nodes::Slurm(wanted) => ask_slurm(wanted.as_deref(), args.level != Level::Static, &asked).await?,
        Nodes::Ssh(hosts) => {
            let hosts = hosts_of(hosts, &settings.paths.current_dir).await?;
            (ask_ssh(&hosts, &asked).await?, Vec::new(), true)
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    reporter.report(Event::StepFinished { id: STEP.to_owned(), cached: false, seconds });
    let mut heard = others;
    heard.extend(answers.into_iter().map(|answer| heard_of(answer, &expected)));
    let drains = args.fleet.drain.then(|| heard.clone());
    let mut fleet = merge(heard, is_named);
    let drains = match drains {
        Some(heard) => to_drain(&mut fleet, heard, args, &expected, &asked).await?,
        None => Vec::new(),
    };
    let image = image.to_string();
    let exit = show(&fleet, (Some(&image), &drains), args, settings)?;
    let mut undrained = false;
    if args.fleet.yes {
        for drain in &drains {
            match drain_node(drain).await {
                Ok(()) => reporter.report(Event::Note { text: format!("drained {}", drain.node) }),
                Err(why) => {
                    let text = format!("{} is not drained: {why}", drain.node);
                    reporter.report(Event::Warning { text });
                    undrained = true;
                }
            }
        }
    }
    Ok(if undrained && exit == Exit::Done { Exit::Outside } else { exit })
}

fn heard_of(answer: Answer, expected: &ImageExpectations) -> Heard {
    let outcome = answer.report.map_or_else(|outcome| outcome, |report| judged(report, expected));
    Heard { asked: Some(answer.node), source: String::new(), gpus: answer.gpus, outcome }
}

/// The nodes to drain: each one that seems at fault is asked again, among all others as they were.
async fn to_drain(
    fleet: &mut Fleet,
    mut heard: Vec<Heard>,
    args: &request::Verify,
    expected: &ImageExpectations,
    asked: &Asked<'_>,
) -> Result<Vec<Drain>, CommandError> {
    let suspects = suspects(fleet);
    if suspects.is_empty() {
        return Ok(Vec::new());
    }
    let list = fold(suspects.iter().map(String::as_str));
    let (again, others, _) = ask_slurm(Some(&list), args.level != Level::Static, asked).await?;
    heard.retain(|one| one.asked.as_ref().is_none_or(|node| !suspects.contains(node)));
    heard.extend(others);
    heard.extend(again.into_iter().map(|answer| heard_of(answer, expected)));
    let drains = confirm(fleet, &merge(heard, fleet.is_named));
    let most = most_drained(fleet.rows.iter().filter(|row| row.verdict.is_some()).count());
    if drains.len() > most {
        let text = format!(
            "{} have a fault that was found twice, more than {most} of {}: none is drained; look for a common cause first",
            counted(drains.len(), "node"),
            fleet.rows.len()
        );
        asked.reporter.report(Event::Warning { text });
        return Ok(Vec::new());
    }
    Ok(drains)
}

/// Reads reports and shows their answer.
pub(super) fn merge_files(args: &request::Verify, settings: &Settings) -> Result<Exit, CommandError> {
    let lock = lock_of(args, settings)?;
    let expected = expectations(lock.as_ref(), Level::Static);
    let reporter = reporter(settings.output);
    let heard = read_reports(&args.fleet.merge, &settings.paths.current_dir, &expected, &*reporter)?;
    let fleet = merge(heard, false);
    let older: usize = fleet.rows.iter().map(|row| row.older).sum();
    if older > 0 {
        let text = format!("{} replaced by newer ones of the same node", counted(older, "report"));
        reporter.report(Event::Note { text });
    }
    show(&fleet, (None, &[]), args, settings)
}

/// The one image, by its digest: a tag may mean another one on each node.
fn image_of(args: &request::Verify) -> Result<ImageRef, CommandError> {
    let got = || match args.images.len() {
        0 => "none".to_owned(),
        1 => format!("`{}`", args.images[0]),
        count => counted(count, "image"),
    };
    let [image] = args.images.as_slice() else { return Err(FleetError::NoDigest { got: got() }.into()) };
    let image: ImageRef = image.parse()?;
    match image.digest().cloned() {
        Some(digest) => Ok(image.pinned(&digest)),
        None => Err(FleetError::NoDigest { got: got() }.into()),
    }
}

fn lock_of(args: &request::Verify, settings: &Settings) -> Result<Option<Lock>, CommandError> {
    let Some(file) = &args.lock else { return Ok(None) };
    let bytes = lock_bytes(&settings.paths.current_dir.join(file))?;
    Ok(Some(Lock::from_bytes(file.as_str(), &bytes)?))
}

/// What a report is held to: nodes run our agent in a sandbox, whoever built the image.
fn expectations(lock: Option<&Lock>, level: Level) -> ImageExpectations {
    let required = lock.map(|lock| {
        let mut all = static_checks(lock);
        if level != Level::Static {
            all.extend(gpu_checks(lock, level != Level::Quick));
        }
        let runs = |id: CheckId| id.scope() == Scope::Any && !id.group().looks_at_files_only();
        all.retain(|id| CheckId::parse(id).is_some_and(runs));
        all
    });
    ImageExpectations {
        required: required.unwrap_or_default(),
        foreign: true,
        ..ImageExpectations::default()
    }
}

fn limits(args: &request::Verify) -> Limits {
    let checks = args.fleet.deadline.map_or(
        match args.level {
            Level::Static | Level::Quick => 1_200,
            Level::Full => 3_600,
            Level::Perf => 7_200,
        },
        u64::from,
    );
    let pull = args.fleet.pull_deadline.map_or(PULL, u64::from);
    Limits { pull: Duration::from_secs(pull), checks: Duration::from_secs(checks) }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    if word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"=_-.".contains(&byte)) {
        return word.to_owned();
    }
    shell_word(word)
}

fn show(
    fleet: &Fleet,
    (image, drains): (Option<&str>, &[Drain]),
    args: &request::Verify,
    settings: &Settings,
) -> Result<Exit, CommandError> {
    let place = |file: &camino::Utf8PathBuf| settings.paths.current_dir.join(file);
    if let Some(file) = &args.html {
        write_atomically(&place(file), fleet_page(fleet, image).as_bytes())?;
    }
    if let Some(file) = &args.junit {
        let verdicts = verdicts(fleet);
        let verdicts: Vec<&Verdict> = verdicts.iter().collect();
        write_atomically(&place(file), junit(&verdicts).as_bytes())?;
    }
    if settings.output.json {
        Printer.json(&FleetReport::new(fleet, image, drains));
    } else {
        let mut text = answer(fleet);
        for drain in drains {
            let words: Vec<String> = drain.command().iter().map(|word| quoted(word)).collect();
            let _ = writeln!(text, "{}", words.join(" "));
        }
        Printer.text(&text);
    }
    Ok(fleet.exit())
}

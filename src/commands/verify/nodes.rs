//! `verify --on` and `verify --merge`: one answer about many nodes.
#![expect(clippy::disallowed_methods, reason = "times the call")]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use envforge_protocol::{CheckId, Scope};

use super::submitted::{Submission, quoted};
use crate::failure::Exit;
use crate::fleet::{
    Drain, Fleet, FleetReport, Heard, answer, confirm, fold, merge, most_drained, suspects, verdicts,
};
use crate::model::counted::counted;
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
use crate::workflow::evidence::signing_key;
use crate::workflow::fleet::{
    Answer, Asked, FleetError, Launcher, Limits, NodeFile, STEP, Screen, Signed, Subject, ask_slurm, ask_ssh,
    drain_node, hosts_of, judged, read_reports, submit_jobs,
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
    let reporter = reporter(settings.output);
    let program = match nodes {
        Nodes::Slurm(_) if args.fleet.as_they_free.is_some() => "sbatch",
        Nodes::Slurm(_) => "srun",
        Nodes::Ssh(_) if args.fleet.drain => return Err(FleetError::NoScheduler { option: "--drain" }.into()),
        Nodes::Ssh(_) if args.fleet.as_they_free.is_some() => {
            return Err(FleetError::NoScheduler { option: "--as-they-free" }.into());
        }
        Nodes::Ssh(_) => "ssh",
    };
    if let Some(word) = args.fleet.words.first().filter(|word| !word.starts_with('-')) {
        return Err(FleetError::Word { word: word.clone(), program }.into());
    }
    let (subject, of_project) = match args.images.as_slice() {
        [] => Subject::of_project(&args.project, settings, &*reporter).await?,
        images => (Subject::of(images, &settings.paths.current_dir, &*reporter).await?, None),
    };
    let lock = lock_of(args, settings)?.or(of_project);
    if let (Nodes::Slurm(wanted), Some(folder)) = (nodes, &args.fleet.as_they_free) {
        return submit(args, (&subject, lock.as_ref(), wanted.as_deref()), folder, settings).await;
    }
    // What cannot be signed is said before any node is asked.
    let signed = if args.attest {
        let image = registry_image(&subject)?;
        let key = signing_key(args.key.as_deref(), settings)?;
        Some(Signed::of(image, key, settings, &reporter).await?)
    } else {
        None
    };
    let lock = lock.or_else(|| signed.as_ref().map(|signed| signed.lock.clone()));
    let expected = expectations(lock.as_ref(), args.level);
    let limits = limits(args, args.level);
    let facts = lock.as_ref().map(expectation_file);
    let launcher = Launcher::new(&subject, args.level, facts.as_deref(), limits);
    let fleet = &args.fleet;
    let asked = Asked {
        launcher: &launcher,
        limits,
        words: &fleet.words,
        parallel: fleet.parallel,
        reporter: &reporter,
        screen: Screen::default(),
    };
    let started = Instant::now();
    reporter.report(Event::StepStarted { id: STEP.to_owned(), text: format!("verify {subject} on nodes") });
    let (answers, others, is_named) = match nodes {
        Nodes::Slurm(wanted) => {
            asked.shown(ask_slurm(wanted.as_deref(), args.level != Level::Static, &asked)).await?
        }
        Nodes::Ssh(hosts) => {
            let hosts = hosts_of(hosts, &settings.paths.current_dir).await?;
            (asked.shown(ask_ssh(&hosts, &asked)).await?, Vec::new(), true)
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
    let why: Vec<String> = fleet.refusals().into_iter().map(str::to_owned).collect();
    if !why.is_empty() {
        show(&fleet, (Some(&subject.to_string()), &[], None), args, settings)?;
        return Err(FleetError::NoneAsked { program, why }.into());
    }
    let (attested, unsigned) = match &signed {
        Some(signed) => match signed.attach((&fleet, args.attest_nodes), &reporter).await {
            Ok(line) => (Some(line), None),
            Err(error) => (None, Some(error)),
        },
        None => (None, None),
    };
    let name = subject.to_string();
    let exit = show(&fleet, (Some(&name), &drains, attested.as_deref()), args, settings)?;
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
    match unsigned {
        // The answer is printed; a bad node is graver than a missing signature.
        Some(error) if exit != Exit::No => Err(error),
        Some(error) => {
            reporter.report(Event::Warning { text: format!("nothing is signed: {error}") });
            Ok(exit)
        }
        None => Ok(if undrained && exit == Exit::Done { Exit::Outside } else { exit }),
    }
}

/// Leaves a job for each node to the scheduler, and says how their answer is read.
async fn submit(
    args: &request::Verify,
    (subject, lock, wanted): (&Subject, Option<&Lock>, Option<&str>),
    folder: &Utf8Path,
    settings: &Settings,
) -> Result<Exit, CommandError> {
    let facts = lock.map(expectation_file);
    let limits = limits(args, args.level);
    let script = Launcher::script(subject, args.level, facts.as_deref(), limits);
    let folder = settings.paths.current_dir.join(folder);
    let needs_gpu = args.level != Level::Static;
    let (jobs, others, is_named) =
        submit_jobs(wanted, needs_gpu, (script, limits), (&folder, &args.fleet.words)).await?;
    let submission = Submission::new((subject.to_string(), folder.to_string()), (jobs, others), is_named);
    if settings.output.json {
        Printer.json(&submission);
    } else {
        Printer.text(&submission.text());
    }
    Ok(submission.exit())
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
    let reported = fleet.rows.iter().filter(|row| row.verdict.is_some()).count();
    let most = most_drained(reported);
    if drains.len() > most {
        let text = format!(
            "{} have a fault that was found twice, more than {most} of the {} with a report: none is drained; look for a common cause first",
            counted(drains.len(), "node"),
            reported
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
    show(&fleet, (None, &[], None), args, settings)
}

/// The image that evidence is attached to.
fn registry_image(subject: &Subject) -> Result<&ImageRef, FleetError> {
    match subject {
        Subject::Image(image) => Ok(image),
        Subject::File(NodeFile { path, .. }) => Err(FleetError::NoRegistry { file: path.to_string() }),
    }
}

pub(super) fn lock_of(args: &request::Verify, settings: &Settings) -> Result<Option<Lock>, CommandError> {
    let Some(file) = &args.lock else { return Ok(None) };
    let bytes = lock_bytes(&settings.paths.current_dir.join(file))?;
    Ok(Some(Lock::from_bytes(file.as_str(), &bytes)?))
}

/// What a report is held to: nodes run our agent in a sandbox, whoever built the image.
pub(super) fn expectations(lock: Option<&Lock>, level: Level) -> ImageExpectations {
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

pub(super) fn limits(args: &request::Verify, level: Level) -> Limits {
    let checks = args.fleet.deadline.map_or(
        match level {
            Level::Static | Level::Quick => 1_200,
            Level::Full => 3_600,
            Level::Perf => 7_200,
        },
        u64::from,
    );
    let pull = args.fleet.pull_deadline.map_or(PULL, u64::from);
    Limits { pull: Duration::from_secs(pull), checks: Duration::from_secs(checks) }
}

fn show(
    fleet: &Fleet,
    (image, drains, attested): (Option<&str>, &[Drain], Option<&str>),
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
        Printer.json(&FleetReport::new(fleet, image, (drains, attested)));
    } else {
        let mut text = answer(fleet);
        for drain in drains {
            let words: Vec<String> = drain.command().iter().map(|word| quoted(word)).collect();
            let _ = writeln!(text, "{}", words.join(" "));
        }
        if let Some(line) = attested {
            let _ = writeln!(text, "attested: {line}");
        }
        Printer.text(&text);
    }
    Ok(fleet.exit())
}

//! Several specs: some at a time, one failing does not stop the rest, a table at the end.

use std::fmt::Write as _;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use serde::Serialize;

use crate::failure::Exit;
use crate::model::request::{self, SpecArgument};
use crate::model::verdict::{Detail, verdict_text};
use crate::report::{Prefixed, Printer};
use crate::settings::Settings;
use crate::workflow::build::{Done, build_one};
use crate::workflow::build_request::typed;
use crate::workflow::built::Built;
use crate::workflow::custom_base::named_base;
use crate::workflow::error::CommandError;
use crate::workflow::listed_names::with_listed;
use crate::workflow::request_error::RequestError;
use crate::workflow::session::{LazySession, SessionOptions};
use crate::workflow::stack::stack;

/// What `build --json` prints for several specs.
#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    builds: Vec<Entry<'a>>,
}

/// What came of one of them.
#[derive(Serialize)]
struct Entry<'a> {
    spec: &'a str,
    exit: u8,
    error: Option<String>,
    hints: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    build: Option<&'a Built>,
}

/// A spec with what came of it.
struct Outcome {
    spec: String,
    result: Result<Done, CommandError>,
}

impl Outcome {
    fn built(&self) -> Option<&Built> {
        match &self.result {
            Ok(Done::Built(built)) => Some(built),
            _ => None,
        }
    }

    fn planned(&self) -> Option<&str> {
        match &self.result {
            Ok(Done::Planned(text)) => Some(text),
            _ => None,
        }
    }
}

/// Builds all of them. The exit code is the gravest of theirs.
pub(crate) async fn build(
    specs: &[SpecArgument],
    args: &request::Build,
    settings: &Settings,
) -> Result<Exit, CommandError> {
    let options = [
        ("--tag", !args.tags.is_empty()),
        ("--push", args.push),
        ("--offline", args.offline.is_some()),
        ("--wheel", !args.source.wheel.is_empty()),
        ("--lockfile", args.source.lockfile.is_some()),
        ("--environment", args.project.environment.is_some()),
        ("--project", args.project.project.is_some()),
    ];
    if let Some((option, _)) = options.into_iter().find(|(_, given)| *given) {
        return Err(RequestError::OneSpecOnly { option, count: specs.len() }.into());
    }
    let lazy = LazySession::new(settings, SessionOptions::of(&args.source));
    let named = named_base(&lazy, &args.source, &args.target).await?;
    let named = named.as_ref();
    // What cannot run is refused before the engine is asked for anything.
    let mut outcomes = Vec::new();
    let mut work = Vec::new();
    for (place, spec) in specs.iter().enumerate() {
        let found = typed(spec, &args.source, &args.target, settings).and_then(|wanted| {
            Ok((stack(settings, &wanted.spec, &args.source, &args.target, named)?, wanted))
        });
        match found {
            Ok((stack, wanted)) => {
                work.push((place, wanted, stack));
            }
            Err(error) => {
                outcomes.push((place, Outcome { spec: spec.written().to_owned(), result: Err(error) }));
            }
        }
    }
    if !work.is_empty() {
        let session = &lazy.session().await?.on_base(named);
        let builds = stream::iter(work).map(|(place, wanted, stack)| async move {
            let label = Arc::new(Prefixed::new(wanted.spec.written(), Arc::clone(&session.reporter)));
            let session = session.with_reporter(label);
            let spec = wanted.spec.written().to_owned();
            let result = match with_listed(&wanted, &stack, settings).await {
                Ok(wanted) => Box::pin(build_one(&session, &wanted, stack, named, args)).await,
                Err(error) => Err(error),
            };
            (place, Outcome { spec, result })
        });
        outcomes.extend(builds.buffer_unordered(args.jobs.get()).collect::<Vec<_>>().await);
    }
    outcomes.sort_by_key(|(place, _)| *place);
    let outcomes: Vec<_> = outcomes.into_iter().map(|(_, outcome)| outcome).collect();
    Ok(print(&outcomes, settings))
}

/// Prints errors, then the table or one JSON object; gives the gravest exit code.
fn print(outcomes: &[Outcome], settings: &Settings) -> Exit {
    let mut entries = Vec::new();
    for outcome in outcomes {
        let failed = outcome.built().and_then(Built::failure);
        let undone = outcome.built().and_then(|built| built.undone.as_ref());
        let error = outcome.result.as_ref().err().or(failed.as_ref()).or(undone);
        if let Some(error) = error {
            Printer.say(&outcome.spec);
            if let Some(built) = outcome.built() {
                Printer.say(&verdict_text(&built.verdict, Detail::Problems));
            }
            Printer.say_painted(&error.report(settings.output.color).text("\n"));
        }
        entries.push(Entry {
            spec: &outcome.spec,
            exit: error.map_or(Exit::Done, CommandError::exit) as u8,
            error: error.map(ToString::to_string),
            hints: error.map(CommandError::hints).unwrap_or_default(),
            plan: outcome.planned(),
            build: outcome.built(),
        });
    }
    let exit = entries.iter().map(|entry| entry.exit).max().unwrap_or(0);
    if settings.output.json {
        Printer.json(&Report { schema: 1, builds: entries });
    } else {
        for text in outcomes.iter().filter_map(Outcome::planned) {
            Printer.text(text);
        }
        Printer.text(&table(&entries));
        let because = entries.iter().find_map(|entry| entry.build?.unverified_because.as_deref());
        if let (Some(because), false) = (because, settings.output.quiet) {
            Printer.say(&format!("tagged as -unverified: {because}"));
        }
    }
    match exit {
        0 => Exit::Done,
        1 => Exit::No,
        2 => Exit::Usage,
        _ => Exit::Outside,
    }
}

/// One line for each spec: what became of it (`present`: an earlier run had finished it), its size and time, its first tag or
/// the first line of its error.
fn table(entries: &[Entry<'_>]) -> String {
    let width = entries.iter().map(|entry| entry.spec.len()).max().unwrap_or(0);
    let mut text = String::new();
    for entry in entries {
        let word = match (entry.exit, entry.plan) {
            (0, None) if entry.build.is_some_and(|built| built.present) => "present",
            (0, None) => "built",
            (0, Some(_)) => "planned",
            (1, _) if entry.build.is_none() => "refused",
            _ => "failed",
        };
        let _ = write!(text, "{word:<8} {:<width$}", entry.spec);
        if let Some(built) = entry.build {
            #[expect(clippy::cast_precision_loss, reason = "shown with two decimals")]
            let size = built.size as f64 / 1e9;
            let _ = write!(text, "  {size:>6.2} GB  {:>4.0} s", built.seconds.total());
        }
        let last = match &entry.error {
            Some(error) => error.lines().next().map(str::to_owned),
            None => entry.build.and_then(|built| built.tags.first().cloned()),
        };
        if let Some(last) = last {
            text.extend(["  ", &last]);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Entry, Report, table};
    use crate::model::markdown::{documented_fields, printed_fields};
    use crate::workflow::built::{Built, tests::built};

    #[test]
    fn every_field_is_documented() {
        let report = Report { schema: 1, builds: Vec::new() };
        let documented = documented_fields("envforge build pytorch-cuda:2.8-cu128 jax-cuda:0.7");
        assert_eq!(printed_fields(&report), documented);
        let entry = Entry {
            spec: "cuda:12",
            exit: 0,
            error: None,
            hints: Vec::new(),
            plan: Some("layers"),
            build: None,
        };
        let fields = ["error", "exit", "hints", "plan", "spec"].map(str::to_owned);
        assert_eq!(printed_fields(&entry), fields.into());
    }

    #[test]
    fn the_table_has_a_line_for_each_spec() {
        let entry = |spec, exit, error: Option<&str>, plan| Entry {
            spec,
            exit,
            error: error.map(str::to_owned),
            hints: Vec::new(),
            plan,
            build: None,
        };
        let built = |present| Built { present, ..built(r#""outcome":"passed""#, None) };
        let (present, new) = (built(true), built(false));
        let of = |spec, built| Entry { build: Some(built), ..entry(spec, 0, None, None) };
        let entries = [
            of("jax-cuda:0.7", &present),
            of("jax-cuda:0.8", &new),
            entry("pytorch-cuda:2.8-cu128", 0, None, Some("layers")),
            entry("pytorch-cuda:9", 1, Some("no such version\nmore"), None),
            entry("cuda:12", 3, Some("the engine is gone"), None),
        ];
        assert_eq!(
            table(&entries),
            "present  jax-cuda:0.7              0.00 GB     0 s  pytorch:1-unverified\n\
             built    jax-cuda:0.8              0.00 GB     0 s  pytorch:1-unverified\n\
             planned  pytorch-cuda:2.8-cu128\n\
             refused  pytorch-cuda:9          no such version\n\
             failed   cuda:12                 the engine is gone\n"
        );
    }
}

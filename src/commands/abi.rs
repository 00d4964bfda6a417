//! `compat abi`: whether the libraries of a wheel fit a lock.

use std::collections::{BTreeMap, BTreeSet};

use envforge_protocol::abi::Finding;
use serde::Serialize;

use crate::assemble::{AssembleError, library_tables};
use crate::failure::Exit;
use crate::model::abi::{AuditedLibrary, audit};
use crate::model::counted::counted;
use crate::model::request::{self, LockOptions, ProjectOptions, TargetOptions};
use crate::model::stack::Stack;
use crate::model::visible::visible_line;
use crate::packages::{PackagesError, WheelName};
use crate::report::{Event, Printer, reporter};
use crate::settings::Settings;
use crate::workflow::build_request::wanted;
use crate::workflow::custom_base::{matrix_on, named_base};
use crate::workflow::error::CommandError;
use crate::workflow::given_wheel::{GivenWheel, WheelFile};
use crate::workflow::lock_error::LockingError;
use crate::workflow::lock_file::{lock_path, read_lock};
use crate::workflow::session::LazySession;
use crate::workflow::stack::stack;
use crate::workflow::symbol_tables::tables_of_lock;

/// What `compat abi --json` prints.
#[derive(Serialize)]
struct AbiReport<'a> {
    schema: u32,
    wheel: &'a str,
    name: &'a str,
    lock: &'a str,
    fits: bool,
    libraries: Vec<LibraryReport<'a>>,
}

/// One library of the wheel.
#[derive(Serialize)]
struct LibraryReport<'a> {
    library: &'a str,
    findings: Vec<FindingReport>,
    optional: Vec<&'a str>,
}

/// One reason.
#[derive(Serialize)]
struct FindingReport {
    kind: &'static str,
    text: String,
    #[serde(skip)]
    is_fatal: bool,
}

pub(super) async fn abi(args: &request::CompatAbi, settings: &Settings) -> Result<Exit, CommandError> {
    let given = GivenWheel::parse(&args.wheel, settings)?;
    let source = LockOptions { lockfile: args.lockfile.clone(), ..LockOptions::default() };
    let target = TargetOptions::default();
    let wanted = wanted(args.spec.as_ref(), &ProjectOptions::default(), &source, &target, settings)?;
    let named = named_base(&LazySession::of(settings), &wanted.source, &wanted.target).await?;
    let stack = stack(settings, &wanted.spec, &wanted.source, &wanted.target, named.as_ref())?;
    let lock_file = lock_path(settings, &stack, &wanted.source);
    let Some(lock) = read_lock(&lock_file)? else {
        return Err(LockingError::Missing { file: lock_file.to_string() }.into());
    };
    // Of a base without a row only the least that its framework needs is known.
    let of_base = matrix_on(named.as_ref(), settings).base(&lock.stack.base).map(|base| &base.glibc);
    let glibc = of_base.unwrap_or(&lock.stack.glibc);
    let reporter = reporter(settings.output);
    let wheel = given.find((&lock, glibc), settings, &reporter).await?;
    let own = library_tables(&wheel.path).map_err(|error| unreadable(error, &wheel))?;
    let text = format!("using the lock file of {}: {lock_file}", lock.records.created);
    reporter.report(Event::Note { text });
    let locked = tables_of_lock(&lock, &wheel.name.package, settings, &reporter).await?;
    let torch = lock.wheels.iter().find(|wheel| wheel.name == "torch").map(|wheel| wheel.version.as_str());
    let audited = audit(&lock.stack, glibc, torch, locked, &own.tables);
    let other_tags = other_tags(&wheel.name, &lock.stack);
    let is_bad = |one: &AuditedLibrary| one.findings.iter().any(Finding::is_fatal);
    let fits = other_tags.is_none() && own.unreadable.is_empty() && !audited.iter().any(is_bad);
    let libraries = libraries(&wheel.file, other_tags, &audited, &own.unreadable);
    if settings.output.json {
        let (name, lock) = (lock.stack.name.as_str(), lock_file.as_str());
        Printer.json(&AbiReport { schema: 1, wheel: &wheel.file, name, lock, fits, libraries });
    } else {
        print(&libraries, settings);
        let verdict = if fits { "is compatible with" } else { "is not compatible with" };
        Printer.text(&format!("{} {verdict} {}", wheel.file, lock.stack.name));
    }
    Ok(if fits { Exit::Done } else { Exit::No })
}

/// What keeps the image's Python from installing the wheel.
fn other_tags(name: &WheelName, stack: &Stack) -> Option<String> {
    let lock = format!("Python {} on {}", stack.python, stack.machine);
    let (python, platform) = (name.python_tag(), name.platform_tag());
    let text = format!("its tags are `{python}` on `{platform}`, and the lock has {lock}");
    (!name.fits(stack.python, stack.machine)).then_some(text)
}

/// The error of a wheel that is only read: its reasons are not those of an installation.
fn unreadable(error: AssembleError, wheel: &WheelFile) -> CommandError {
    match error {
        AssembleError::Refused { reasons, .. } => {
            PackagesError::NotAWheel { file: wheel.file.clone(), detail: reasons.join("; ") }.into()
        }
        other => other.into(),
    }
}

/// The report of each library, after that of the wheel's own tags.
fn libraries<'a>(
    wheel: &'a str,
    other_tags: Option<String>,
    audited: &'a [AuditedLibrary],
    unreadable: &'a BTreeMap<String, String>,
) -> Vec<LibraryReport<'a>> {
    let of_tags = other_tags.map(|text| LibraryReport {
        library: wheel,
        findings: vec![FindingReport {
            kind: "other-tags",
            text: format!("{wheel}: {text}"),
            is_fatal: true,
        }],
        optional: Vec::new(),
    });
    let read = audited.iter().map(|one| LibraryReport {
        library: &one.library,
        findings: one
            .findings
            .iter()
            .map(|finding| FindingReport {
                kind: finding.kind(),
                text: finding.to_string(),
                is_fatal: finding.is_fatal(),
            })
            .collect(),
        optional: one.optional.iter().map(String::as_str).collect(),
    });
    let unread = unreadable.iter().map(|(library, reason)| LibraryReport {
        library,
        findings: vec![FindingReport {
            kind: "unreadable",
            text: format!("{library}: {reason}"),
            is_fatal: true,
        }],
        optional: Vec::new(),
    });
    of_tags.into_iter().chain(read).chain(unread).collect()
}

/// The findings, each once: a wheel often has one function in many libraries.
fn print(libraries: &[LibraryReport<'_>], settings: &Settings) {
    let fatal = |one: &&FindingReport| one.is_fatal;
    let findings = libraries.iter().flat_map(|one| one.findings.iter().filter(fatal));
    let lines: BTreeSet<_> = findings.map(|one| visible_line(&one.text)).collect();
    for line in lines {
        Printer.text(&line);
    }
    if settings.output.quiet {
        return;
    }
    for one in libraries {
        for finding in one.findings.iter().filter(|one| !one.is_fatal) {
            Printer.say(&visible_line(&finding.text));
        }
        if !one.optional.is_empty() {
            Printer.say(&format!("{}: not judged without {}", one.library, one.optional.join(", ")));
        }
    }
    let bad = libraries.iter().filter(|one| one.findings.iter().any(|one| one.is_fatal)).count();
    Printer.say(&format!("{}, {bad} of them cannot load", counted(libraries.len(), "library")));
}

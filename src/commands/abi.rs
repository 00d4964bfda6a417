//! `compat abi`: whether the libraries of a wheel fit a lock.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use camino::Utf8Path;
use serde::Serialize;

use crate::assemble::{AssembleError, library_tables};
use crate::failure::Exit;
use crate::model::abi::{AuditedLibrary, audit};
use crate::model::compat::Matrix;
use crate::model::request::{self, LockOptions, ProjectOptions, TargetOptions};
use crate::packages::{PackagesError, wheel_name};
use crate::report::{Event, Printer, reporter};
use crate::settings::Settings;
use crate::workflow::build_request::wanted;
use crate::workflow::custom_base::named_base;
use crate::workflow::error::CommandError;
use crate::workflow::lock_error::LockingError;
use crate::workflow::lock_file::{lock_path, read_lock};
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
}

pub(super) async fn abi(args: &request::CompatAbi, settings: &Settings) -> Result<Exit, CommandError> {
    let path = settings.paths.current_dir.join(&args.wheel);
    let file = path.file_name().unwrap_or_default();
    let package = wheel_name(&path)?.package;
    let source = LockOptions { lockfile: args.lockfile.clone(), ..LockOptions::default() };
    let target = TargetOptions::default();
    let wanted = wanted(args.spec.as_deref(), &ProjectOptions::default(), &source, &target, settings)?;
    let named = named_base(settings, &wanted.source, &wanted.target).await?;
    let stack = stack(settings, &wanted.spec, &wanted.source, &wanted.target, named.as_ref())?;
    let lock_file = lock_path(settings, &stack, &wanted.source);
    let Some(lock) = read_lock(&lock_file)? else {
        return Err(LockingError::Stale { file: lock_file.to_string(), differences: Vec::new() }.into());
    };
    let own = library_tables(&path).map_err(|error| unreadable(error, &path))?;
    let reporter = reporter(settings.output);
    let text = format!("using the lock file of {}: {lock_file}", lock.records.created);
    reporter.report(Event::Note { text });
    let locked = tables_of_lock(&lock, &package, settings, &reporter).await?;
    let bases = named.iter().map(|named| &named.row).chain(&Matrix::current().bases);
    // Of a base without a row only the least that its framework needs is known.
    let of_base = bases.into_iter().find(|base| base.name == lock.stack.base).map(|base| &base.glibc);
    let glibc = of_base.unwrap_or(&lock.stack.glibc);
    let audited = audit(&lock.stack, glibc, locked, &own.tables);
    let fits = own.unreadable.is_empty() && audited.iter().all(|one| one.findings.is_empty());
    if settings.output.json {
        let libraries = libraries(&audited, &own.unreadable);
        let (name, lock) = (lock.stack.name.as_str(), lock_file.as_str());
        Printer.json(&AbiReport { schema: 1, wheel: file, name, lock, fits, libraries });
    } else {
        print(&audited, &own.unreadable, settings);
        let verdict = if fits { "fits" } else { "does not fit" };
        Printer.text(&format!("{file} {verdict} {}", lock.stack.name));
    }
    Ok(if fits { Exit::Done } else { Exit::No })
}

/// The error of a wheel that is only read: its reasons are not those of an installation.
fn unreadable(error: AssembleError, path: &Utf8Path) -> CommandError {
    match error {
        AssembleError::Refused { reasons, .. } => {
            PackagesError::NotAWheel { file: path.to_string(), detail: reasons.join("; ") }.into()
        }
        other => other.into(),
    }
}

fn libraries<'a>(
    audited: &'a [AuditedLibrary],
    unreadable: &'a BTreeMap<String, String>,
) -> Vec<LibraryReport<'a>> {
    let read = audited.iter().map(|one| LibraryReport {
        library: &one.library,
        findings: one
            .findings
            .iter()
            .map(|finding| FindingReport { kind: finding.kind(), text: finding.to_string() })
            .collect(),
        optional: one.optional.iter().map(String::as_str).collect(),
    });
    let unread = unreadable.iter().map(|(library, reason)| LibraryReport {
        library,
        findings: vec![FindingReport { kind: "unreadable", text: format!("{library}: {reason}") }],
        optional: Vec::new(),
    });
    read.chain(unread).collect()
}

/// The findings, each once: a wheel often has one function in many libraries.
fn print(audited: &[AuditedLibrary], unreadable: &BTreeMap<String, String>, settings: &Settings) {
    let mut text = String::new();
    for one in libraries(audited, unreadable) {
        for finding in &one.findings {
            let _ = writeln!(text, "{}", finding.text);
        }
    }
    if !text.is_empty() {
        Printer.text(text.trim_end());
    }
    if settings.output.quiet {
        return;
    }
    let waiting = audited.iter().filter(|one| !one.optional.is_empty());
    for one in waiting {
        let optional: Vec<_> = one.optional.iter().map(String::as_str).collect();
        Printer.say(&format!("{}: not judged without {}", one.library, optional.join(", ")));
    }
    let bad = audited.iter().filter(|one| !one.findings.is_empty()).count() + unreadable.len();
    Printer.say(&format!("{} libraries, {bad} do not load", audited.len() + unreadable.len()));
}

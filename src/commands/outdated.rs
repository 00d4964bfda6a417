//! What a new lock would change: `lock --diff`, `outdated`; and whether the lock there fits: `lock --check`. Nothing is
//! written.

use serde::Serialize;

use super::base::base_of;
use super::local_wheels::Supplied;
use super::lock::{lock_path, next_lock, read_lock, stack};
use super::named_base::named_base;
use super::session::Session;
use super::wanted::{Wanted, wanted};
use super::{CommandError, Exit};
use crate::cli::{LockArgs, OutdatedArgs};
use crate::lock::{Change, Difference};
use crate::report::Printer;
use crate::settings::Settings;
use crate::store::Store;

/// What `lock --diff --json` and `outdated --json` print.
#[derive(Serialize)]
struct ChangesReport<'a> {
    schema: u32,
    file: &'a str,
    /// When the lock was made.
    created: &'a str,
    /// What is wanted and the lock does not have.
    because: Vec<String>,
    changes: &'a [Change],
}

/// What `lock --check --json` prints.
#[derive(Serialize)]
struct CheckReport<'a> {
    schema: u32,
    file: &'a str,
    fits: bool,
    differences: &'a [Difference],
}

/// `lock --check`: whether the lock there is what is wanted. Asks neither engine nor network.
pub(super) fn check(wanted: &Wanted, settings: &Settings) -> Result<Exit, CommandError> {
    let stack = stack(settings, &wanted.spec, &wanted.source, &wanted.target, None)?;
    let store = Store::open(&settings.cache_dir, &settings.state_dir)?;
    let path = lock_path(settings, &stack, &wanted.source);
    let old = read_lock(&path)?;
    let supplied = Supplied::new(stack, wanted, old.as_ref(), settings, &store)?;
    let differences = match &old {
        Some(lock) => supplied.differences(lock, &wanted.added),
        None => return Err(CommandError::Stale { file: path.to_string(), differences: Vec::new() }),
    };
    if settings.output.json {
        let fits = differences.is_empty();
        Printer.json(&CheckReport { schema: 1, file: path.as_str(), fits, differences: &differences });
    }
    if differences.is_empty() {
        if !settings.output.json {
            Printer.text(path.as_str());
        }
        return Ok(Exit::Done);
    }
    let differences = differences.iter().map(ToString::to_string).collect();
    Err(CommandError::Stale { file: path.to_string(), differences })
}

/// `lock --diff`: what `lock` with the same options would change, and why.
pub(super) async fn diff(
    args: &LockArgs,
    wanted: &Wanted,
    settings: &Settings,
) -> Result<Exit, CommandError> {
    let found = proposed(wanted, settings).await?;
    print(&found, settings, args.source.upgrade);
    Ok(Exit::Done)
}

/// `outdated`: what choosing everything anew would change.
pub(super) async fn outdated(args: &OutdatedArgs, settings: &Settings) -> Result<Exit, CommandError> {
    let mut wanted = wanted(args.spec.as_deref(), &args.project, &args.source, &args.target, settings)?;
    wanted.source.upgrade = true;
    let found = proposed(&wanted, settings).await?;
    print(&found, settings, true);
    Ok(Exit::Done)
}

/// The lock there, and how a new one would differ.
struct Proposed {
    file: String,
    created: String,
    because: Vec<String>,
    changes: Vec<Change>,
}

async fn proposed(wanted: &Wanted, settings: &Settings) -> Result<Proposed, CommandError> {
    let named = named_base(settings, &wanted.source, &wanted.target).await?;
    let stack = stack(settings, &wanted.spec, &wanted.source, &wanted.target, named.as_ref())?;
    let session = Session::open(settings, wanted.source.network.as_deref()).await?;
    let path = lock_path(settings, &stack, &wanted.source);
    let Some(old) = read_lock(&path)? else {
        return Err(CommandError::Stale { file: path.to_string(), differences: Vec::new() });
    };
    let supplied = Supplied::new(stack, wanted, Some(&old), settings, &session.store)?;
    let stack = &supplied.stack;
    let because = supplied.differences(&old, &wanted.added).iter().map(ToString::to_string).collect();
    let kept = (!wanted.source.upgrade).then_some(&old);
    let same_base = kept.filter(|old| old.stack.base == stack.base);
    let base = base_of(&session, stack, named.as_ref(), &wanted.source, same_base).await?;
    let new = next_lock(&session, supplied, wanted, &base, kept.cloned()).await?;
    Ok(Proposed {
        file: path.to_string(),
        created: old.records.created.clone(),
        because,
        changes: old.changes(&new),
    })
}

fn print(found: &Proposed, settings: &Settings, upgrade: bool) {
    let Proposed { file, created, because, changes } = found;
    if settings.output.json {
        let because = because.clone();
        Printer.json(&ChangesReport { schema: 1, file, created, because, changes });
        return;
    }
    for line in changes {
        Printer.text(&line.to_string());
    }
    if settings.output.quiet {
        return;
    }
    for reason in because {
        Printer.say(&format!("because {reason}"));
    }
    if upgrade && !changes.is_empty() {
        Printer.say("because the indexes and mirrors have others now");
    }
    let count = match changes.len() {
        0 => "nothing would change".to_owned(),
        1 => "1 change".to_owned(),
        count => format!("{count} changes"),
    };
    Printer.say(&format!("{count}; the lock is of {created}: {file}"));
}

//! `outdated`, and what `lock --diff` prints: how a new lock would differ. Nothing is written.

use serde::Serialize;

use crate::failure::Exit;
use crate::model::counted::counted;
use crate::model::lock::Change;
use crate::model::request;
use crate::report::Printer;
use crate::settings::Settings;
use crate::workflow::build_request::wanted;
use crate::workflow::error::CommandError;
use crate::workflow::lock_changes::{Proposed, proposed};
use crate::workflow::tool_lock::ToolLockReport;

/// What `lock --diff --json` and `outdated --json` print.
#[derive(Serialize)]
struct ChangesReport<'a> {
    schema: u32,
    file: &'a str,
    /// When the lock was made; null: there is none yet.
    created: Option<&'a str>,
    /// What is wanted and the lock does not have.
    because: Vec<String>,
    changes: &'a [Change],
    /// With `--from`, what would become of its versions.
    from: Option<&'a ToolLockReport>,
}

/// `outdated`: what choosing everything anew would change.
pub(super) async fn outdated(args: &request::Outdated, settings: &Settings) -> Result<Exit, CommandError> {
    let mut wanted = wanted(args.spec.as_ref(), &args.project, &args.source, &args.target, settings)?
        .with_parts(&args.parts)?;
    wanted.source.upgrade = true;
    let found = Box::pin(proposed(&wanted, None, settings)).await?;
    print(&found, settings, true);
    Ok(Exit::Done)
}

pub(super) fn print(found: &Proposed, settings: &Settings, upgrade: bool) {
    let Proposed { file, created, because, changes, from } = found;
    if settings.output.json {
        let (because, created, from) = (because.clone(), created.as_deref(), from.as_ref());
        Printer.json(&ChangesReport { schema: 1, file, created, because, changes, from });
        return;
    }
    for line in changes {
        Printer.text(&line.to_string());
    }
    if settings.output.quiet {
        return;
    }
    for line in from.as_ref().map(ToolLockReport::lines).unwrap_or_default() {
        Printer.say(&line);
    }
    for reason in because {
        Printer.say(&format!("because {reason}"));
    }
    if upgrade && !changes.is_empty() {
        Printer.say("because newer versions are available");
    }
    let count = match changes.len() {
        0 => "no changes".to_owned(),
        count => counted(count, "change"),
    };
    Printer.say(&match created {
        Some(created) => format!("{count} since {created}: {file}"),
        None => format!("no lock file yet: {file}"),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::markdown::{documented_fields, printed_fields};

    #[test]
    fn every_field_is_documented() {
        let change = Change { part: "system", name: "git".to_owned(), from: None, to: Some("1".to_owned()) };
        let changes = std::slice::from_ref(&change);
        let report = ChangesReport {
            schema: 1,
            file: "a",
            created: Some("b"),
            because: Vec::new(),
            changes,
            from: None,
        };
        assert_eq!(printed_fields(&report), documented_fields("envforge outdated"));
        assert_eq!(printed_fields(&change), ["from", "name", "part", "to"].map(str::to_owned).into());
    }
}

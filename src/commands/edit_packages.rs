//! `add` and `remove`: packages of envforge.toml edited, then locked; a file that cannot be locked is put back.

use serde::Serialize;

use super::lock::{LockReport, made};
use crate::failure::Exit;
use crate::model::project::PackageChange;
use crate::model::request::{self, EditPackages, LockOptions, SpecParts};
use crate::report::Printer;
use crate::settings::Settings;
use crate::workflow::build_request::{BuildRequest, wanted};
use crate::workflow::edited_packages::{EditedPackages, edited};
use crate::workflow::error::CommandError;

/// What `add --json` and `remove --json` print.
#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    file: &'a str,
    changes: &'a [PackageChange],
    /// As `lock --json` prints it; null with `--dry-run`.
    lock: Option<LockReport<'a>>,
}

pub(super) async fn edit_packages(args: &EditPackages, settings: &Settings) -> Result<Exit, CommandError> {
    let edited = edited(args, settings)?;
    let talks = !settings.output.quiet && !settings.output.json;
    if args.dry_run {
        if settings.output.json {
            print_json(&edited, None);
        } else {
            edited.lines().iter().for_each(|line| Printer.text(line));
        }
        if talks {
            Printer.say(&format!("dry run: {} is unchanged", edited.shown));
        }
        return Ok(Exit::Done);
    }
    let written = edited.write()?;
    let lock = lock_request(args);
    let locked = async {
        let wanted = wanted(None, &lock.project, &lock.source, &lock.target, settings)?;
        made(&lock, &BuildRequest { renews: true, ..wanted }, settings).await
    };
    let made = match Box::pin(locked).await {
        Ok(made) => made,
        Err(error) => {
            let text = written.undo();
            if talks {
                Printer.say(&text);
            }
            return Err(error);
        }
    };
    written.keep();
    if settings.output.json {
        print_json(&edited, Some(made.report()));
        return Ok(Exit::Done);
    }
    if talks {
        edited.lines().iter().for_each(|line| Printer.say(line));
    }
    made.print(&lock, settings);
    Ok(Exit::Done)
}

fn print_json(edited: &EditedPackages, lock: Option<LockReport<'_>>) {
    Printer.json(&Report { schema: 1, file: edited.file.as_str(), changes: &edited.changes, lock });
}

/// What `envforge lock` alone means for this project.
fn lock_request(args: &EditPackages) -> request::Lock {
    request::Lock {
        spec: None,
        check: false,
        diff: false,
        digest: false,
        refresh: false,
        from: None,
        extra: Vec::new(),
        group: Vec::new(),
        trust: false,
        parts: SpecParts::default(),
        project: args.project.clone(),
        source: LockOptions::default(),
        target: args.target.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::markdown::{documented_fields, printed_fields};

    #[test]
    fn every_field_is_documented() {
        let report = Report { schema: 1, file: "envforge.toml", changes: &[], lock: None };
        assert_eq!(printed_fields(&report), documented_fields("envforge add einops"));
    }
}

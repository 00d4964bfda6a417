//! `init`: a first envforge.toml out of what the folder and the machine say. Asks nothing.

use crate::failure::{Exit, Failure};
use crate::model::project::{FILE, SCHEMA_FILE, json_schema, starter};
use crate::model::request::{self, LockOptions};
use crate::report::Printer;
use crate::settings::Settings;
use crate::store::write_atomically;
use crate::workflow::detect_project::{detect, specs};
use crate::workflow::error::CommandError;
use crate::workflow::stack::stack;

pub(super) fn init(args: &request::Init, settings: &Settings) -> Result<Exit, CommandError> {
    let folder = &settings.paths.current_dir;
    let file = folder.join(FILE);
    if file.exists() && !args.force {
        return Err(ProjectExists { file: file.to_string() }.into());
    }
    let mut found = detect(folder)?;
    let wishes = args.spec.clone().map_or_else(|| specs(&found, folder), |typed| vec![typed]);
    // What is written is what runs on this machine today, by name: the newest of what is wanted. If none does, the refusal is of the
    // newest.
    let resolved = |typed: &String| stack(settings, typed, &LockOptions::default(), &args.target, None);
    let first = resolved(&wishes[0]);
    let stack = match wishes[1..].iter().find_map(|typed| resolved(typed).ok()).filter(|_| first.is_err()) {
        Some(older) => older,
        None => first?,
    };
    let typed = wishes[0].clone();
    let short = stack.name.trim_end_matches(&format!("-py{}", stack.python)).to_owned();
    found.spec = if args.spec.is_some() { typed } else { short };
    let schema = serde_json::to_string_pretty(&json_schema()).expect("a schema has text keys only");
    write_atomically(&folder.join(SCHEMA_FILE), format!("{schema}\n").as_bytes())?;
    write_atomically(&file, starter(&found).as_bytes())?;
    Printer.text(file.as_str());
    if !settings.output.quiet {
        Printer.say(&format!("next: envforge build    ({})", found.spec));
    }
    Ok(Exit::Done)
}

/// A project file exists already.
#[derive(Debug, thiserror::Error)]
#[error("`{file}` already exists")]
struct ProjectExists {
    file: String,
}

impl Failure for ProjectExists {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec!["edit it, or overwrite it with `--force`".to_owned()]
    }
}

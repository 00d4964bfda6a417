//! envforge-agent: checks an image from the inside. One dependency-free program, baked into every image.
//!
//! Every check runs in a child process of its own, with a time limit: a library that aborts, crashes or hangs becomes a
//! line of the report. The report goes to stdout, one JSON object per line; talk goes to stderr.

mod checks;
mod elf;
mod expect;
mod json;
mod linker;
mod probe;
mod report;
mod supervisor;
mod tree;

use std::process::ExitCode;
use std::time::Instant;

use report::{Report, SCHEMA};

const HELP: &str = "\
envforge-agent: checks an image from the inside

  agent static --expect FILE [--forbidden FILE] [--user UID:GID] [--root DIR] [--json]
                       the checks that need no GPU; exit code 1 if one does not pass
  agent --list         the ids of all checks
  agent --help

FILE of --expect holds `key=value` lines: framework, version, cuda, cudnn, nccl, triton, python, arch (repeated), ptx
(repeated), distribution=name==version (repeated). FILE of --forbidden holds texts that must be found nowhere, one per
line. --user: who runs the checks that are about the image's user, if the agent itself runs as root. Without --json the
report is for people.
";

/// What was typed.
struct Arguments {
    command: String,
    check: Option<String>,
    json: bool,
    options: checks::Options,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("{problem}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match arguments.command.as_str() {
        "--help" | "help" => print!("{HELP}"),
        "--list" => checks::all_ids().for_each(|id| println!("{id}")),
        "static" => return all(&arguments),
        "check" => return one(&arguments),
        other => {
            eprintln!("`{other}` is not a command\n\n{HELP}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let command = words.next().ok_or("no command")?;
    let mut arguments = Arguments { command, check: None, json: false, options: checks::Options::default() };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--json" => arguments.json = true,
            "--expect" => arguments.options.expect = Some(value()?.into()),
            "--forbidden" => arguments.options.forbidden = Some(value()?.into()),
            "--user" => arguments.options.user = Some(user(&value()?)?),
            "--root" => arguments.options.root = value()?.into(),
            name if arguments.command == "check" && arguments.check.is_none() => {
                arguments.check = Some(name.to_owned());
            }
            other => return Err(format!("`{other}` is not understood")),
        }
    }
    Ok(arguments)
}

fn user(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once(':').and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)));
    parts.ok_or(format!("`{text}` is not UID:GID"))
}

/// All static checks, each group in a child of its own.
fn all(arguments: &Arguments) -> ExitCode {
    let started = Instant::now();
    if arguments.json {
        println!("{{\"schema\":{SCHEMA},\"agent\":\"envforge-agent\"}}");
    }
    let mut good = true;
    for group in checks::GROUPS {
        for report in supervisor::run(group, &arguments.options) {
            good &= report.is_good();
            println!("{}", if arguments.json { report.json() } else { report.text() });
        }
    }
    if arguments.json {
        println!("{{\"done\":true,\"seconds\":{:.2}}}", started.elapsed().as_secs_f64());
    }
    ExitCode::from(u8::from(!good))
}

/// One group, in this process: what the supervisor starts.
fn one(arguments: &Arguments) -> ExitCode {
    let name = arguments.check.as_deref().unwrap_or_default();
    let Some(group) = checks::GROUPS.iter().find(|group| group.name == name) else {
        eprintln!("there is no group of checks called `{name}`");
        return ExitCode::from(2);
    };
    for report in (group.run)(&arguments.options) {
        println!("{}", Report::json(&report));
    }
    ExitCode::SUCCESS
}

//! envforge-agent: checks an image from the inside. One dependency-free program, baked into every image.
//!
//! Every check runs in a child process of its own, with a time limit: a library that aborts, crashes or hangs becomes a
//! line of the report. The report goes to stdout, one JSON object per line; talk goes to stderr.

mod checks;
mod content;
mod digest;
mod dl;
mod elf;
mod expect;
mod fatbin;
mod gpu;
mod json;
mod kernels;
mod lanes;
mod libraries;
mod linker;
mod nvrtc;
mod probe;
mod reference;
mod report;
mod sha256;
mod supervisor;
mod tree;
mod versions;
mod xattr;

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use checks::Level;
use report::{Report, SCHEMA};

const HELP: &str = "\
envforge-agent: checks an image from the inside

  agent static [OPTIONS]   the checks that need no GPU
  agent quick [OPTIONS]    and what a GPU computes, in about ten seconds; without a command, this
  agent full [OPTIONS]     and torch.compile and a distributed step
  agent perf [OPTIONS]     and how fast it is
  agent run GROUP...       only those groups of checks
  agent --list             the groups, each with the ids of its checks
  agent digest [OPTIONS]   the content digest of the file system; --list: the records it is the SHA-256 of
  agent --help

  --expect FILE     what the lock promises; without it versions are told, not compared
  --forbidden FILE  texts that must be found nowhere, one per line
  --user UID:GID    who runs the checks that are about the image's user, if the agent itself runs as root
  --stage STAGE     only this stage of the level: static, gpu or perf
  --root DIR        what stands for /
  --json            one object per line, for programs

Exit code 1 if a check failed or could not be run. FILE of --expect holds `key=value` lines: framework, version, cuda,
cudnn, nccl, triton, python, arch (repeated), ptx (repeated), target (repeated: the GPUs it is meant for),
distribution=name==version (repeated), peak.KEY and recorded.KEY (speeds).
";

const NOT_TRIED: &str = "not tried: the check `driver` did not pass";

/// What was typed.
struct Arguments {
    command: String,
    /// Groups by name, for `run` and `check`.
    groups: Vec<String>,
    stage: Option<String>,
    json: bool,
    list: bool,
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
        "--list" => {
            checks::every_group().for_each(|group| println!("{:16} {}", group.name, group.ids.join(" ")));
        }
        "check" => return one(&arguments),
        "digest" => return content(&arguments),
        command => match stages(command, &arguments) {
            Ok(stages) => return all(&arguments, &stages),
            Err(problem) => {
                eprintln!("{problem}\n\n{HELP}");
                return ExitCode::from(2);
            }
        },
    }
    ExitCode::SUCCESS
}

/// A stage's name and its groups.
type Stage = (&'static str, Vec<&'static checks::Group>);

/// The groups that a command asks for.
fn stages(command: &str, arguments: &Arguments) -> Result<Vec<Stage>, String> {
    let named = || Level::named(command).ok_or(format!("`{command}` is not a command"));
    let mut stages = if command == "run" { Level::all_stages() } else { named()?.stages() };
    if command == "run" {
        let known = |name: &String| checks::every_group().any(|group| group.name == name);
        if let Some(name) = arguments.groups.iter().find(|name| !known(name)) {
            return Err(format!("there is no group of checks called `{name}`: see --list"));
        }
        if arguments.groups.is_empty() {
            return Err("`run` needs the name of a group: see --list".to_owned());
        }
        for (_, groups) in &mut stages {
            groups.retain(|group| arguments.groups.iter().any(|name| name == group.name));
        }
    }
    if let Some(stage) = &arguments.stage {
        if !stages.iter().any(|(name, _)| name == stage) {
            return Err(format!("`{stage}` is not a stage"));
        }
        stages.retain(|(name, _)| name == stage);
    }
    Ok(stages)
}

fn parse(words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut words = words.peekable();
    // Options alone ask for what can be had within seconds.
    let is_option = |word: &String| word.starts_with("--") && word != "--help" && word != "--list";
    let command = words.next_if(|word| !is_option(word)).unwrap_or_else(|| "quick".to_owned());
    let (groups, stage, options) = (Vec::new(), None, checks::Options::default());
    let mut arguments = Arguments { command, groups, stage, json: false, list: false, options };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--json" => arguments.json = true,
            "--list" => arguments.list = true,
            "--expect" => arguments.options.expect = Some(value()?.into()),
            "--forbidden" => arguments.options.forbidden = Some(value()?.into()),
            "--user" => arguments.options.user = Some(user(&value()?)?),
            "--root" => arguments.options.root = value()?.into(),
            "--stage" => arguments.stage = Some(value()?),
            name if matches!(arguments.command.as_str(), "check" | "run") && !name.starts_with('-') => {
                arguments.groups.push(name.to_owned());
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

/// All checks of some stages, each group in a child of its own.
fn all(arguments: &Arguments, stages: &[Stage]) -> ExitCode {
    let started = Instant::now();
    if arguments.json {
        println!("{{\"schema\":{SCHEMA},\"agent\":\"envforge-agent\"}}");
    }
    let mut good = true;
    // Without a driver every group would say the same again, or hang again.
    let mut driver = true;
    let mut exclusive = false;
    for (stage, groups) in stages {
        let (first, rest) =
            groups.split_at(usize::from(groups.first().is_some_and(|group| group.name == "driver")));
        for groups in [first, rest] {
            let reports = if driver || *stage == "static" {
                lanes::run(groups, stage, &arguments.options, exclusive)
            } else {
                let ids = groups.iter().flat_map(|group| checks::errored(group.ids, NOT_TRIED));
                ids.map(|report| report.in_stage(stage)).collect()
            };
            for report in reports {
                good &= report.is_good();
                driver &= report.id != "driver" || report.is_good();
                exclusive |= json::text_of(&report.json(), "compute_mode").as_deref() == Some("exclusive");
                println!("{}", if arguments.json { report.json() } else { report.text() });
            }
        }
    }
    if arguments.json {
        println!("{{\"done\":true,\"seconds\":{:.2}}}", started.elapsed().as_secs_f64());
    }
    ExitCode::from(u8::from(!good))
}

/// One group, in this process: what the supervisor starts.
fn one(arguments: &Arguments) -> ExitCode {
    let name = arguments.groups.first().map(String::as_str).unwrap_or_default();
    let Some(group) = checks::every_group().find(|group| group.name == name) else {
        eprintln!("there is no group of checks called `{name}`");
        return ExitCode::from(2);
    };
    for report in (group.run)(&arguments.options) {
        println!("{}", Report::json(&report));
    }
    ExitCode::SUCCESS
}

/// The content digest, or the records it is the SHA-256 of.
fn content(arguments: &Arguments) -> ExitCode {
    let records = match digest::records(&arguments.options.root) {
        Ok(records) => records,
        Err(error) => {
            eprintln!("there is no content digest: {error}");
            return ExitCode::FAILURE;
        }
    };
    let digest = digest::sha256(&records);
    if !arguments.list {
        println!("{digest}");
        return ExitCode::SUCCESS;
    }
    // Told beside the list, so that a cut one is seen to be cut.
    eprintln!("{digest}");
    if let Err(error) = std::io::stdout().write_all(&records) {
        eprintln!("the records could not be written: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

//! envforge-agent: checks an image from the inside. A small program, part of every image.
//!
//! Every check runs in a child process of its own, with a time limit: a library that aborts, crashes or hangs becomes a
//! line of the report. The report goes to stdout, one JSON object per line; messages go to stderr.

#![expect(
    unsafe_code,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::format_push_string,
    clippy::format_collect,
    reason = "a program that inspects the image, calls its libraries and prints a report"
)]

mod bounded;
mod checks;
mod device_code;
mod digest;
mod dlopen;
mod fatbin;
mod gpu;
mod holder;
mod kernels;
mod libraries;
mod linker;
mod nvrtc;
mod parallel;
mod probe;
mod products;
mod reference;
mod report;
mod sha256;
mod supervisor;
mod versions;
mod walk;
mod xattr;

use std::ffi::{c_int, c_ulong};
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use checks::StageGroups;
use envforge_protocol::{CheckGroup, CheckId, Level, Stage, done_line, header_line, json};
use report::Report;

const HELP: &str = "\
envforge-agent: checks an image from the inside

  agent static [OPTIONS]   the checks that need no GPU
  agent quick [OPTIONS]    also the fast checks on a GPU, about ten seconds (the default)
  agent full [OPTIONS]     also all of the memory, further libraries, training and a distributed step
  agent perf [OPTIONS]     also speeds
  agent run GROUP...       only those groups of checks
  agent --list             the groups, each with the ids of its checks
  agent digest [OPTIONS]   the content digest of the file system; --list: the hashed records
  agent code [OPTIONS]     the bytes of device code for each architecture, in every library
  agent --help

  --expect FILE     the facts of the lock; without it versions are reported, not compared
  --forbidden FILE  texts that must not be in the image, separated by NUL
  --user UID:GID    the image's user, for the checks that run as it when the agent runs as root
  --stage STAGE     only this stage of the level: static, gpu or perf
  --skip GROUP      leave a group out (repeated)
  --root DIR        the directory to use as /
  --limit SECONDS   the most that a group of checks may take, if that is less than its own limit
  --json            one object per line, for programs

Exit code 1 if a check failed or errored. FILE of --expect holds `key=value` lines: framework, version, cuda,
cudnn, nccl, triton, python, arch (repeated), ptx (repeated), target (repeated: the GPUs it is meant for),
nvcc, nvcc-target (repeated), ptxas, ptxas-target (repeated), login-path, rdma, distribution=name==version (repeated),
may-lack (repeated), peak.KEY and recorded.KEY (speeds).
";

const NOT_TRIED: &str = "not run: the check `driver` did not pass";

/// The parsed command line.
struct Arguments {
    command: String,
    /// Groups by name, for `run` and `check`.
    groups: Vec<String>,
    /// Groups that are left out.
    skipped: Vec<String>,
    stage: Option<Stage>,
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
            checks::every_group().for_each(|group| {
                let ids: Vec<_> = group.id.checks().iter().map(|id| id.as_str()).collect();
                println!("{:16} {}", group.id, ids.join(" "));
            });
        }
        "check" => return one(&arguments),
        "hold" => holder::hold(&arguments.options),
        "rank" => checks::rank(&arguments.groups, &arguments.options),
        "borrow" => checks::borrow(&arguments.groups, &arguments.options),
        "digest" => return content(&arguments),
        "code" => return code(&arguments),
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

/// The groups that a command asks for.
fn stages(command: &str, arguments: &Arguments) -> Result<Vec<StageGroups>, String> {
    let mut stages = if command == "run" {
        checks::all_stages()
    } else {
        checks::stages(Level::parse(command).ok_or(format!("unknown command `{command}`"))?)
    };
    if command == "run" {
        let known = |name: &String| checks::every_group().any(|group| group.id.as_str() == name);
        if let Some(name) = arguments.groups.iter().find(|name| !known(name)) {
            return Err(format!("unknown group `{name}` (see --list)"));
        }
        if arguments.groups.is_empty() {
            return Err("`run` requires a group (see --list)".to_owned());
        }
        for (_, groups) in &mut stages {
            groups.retain(|group| arguments.groups.iter().any(|name| name == group.id.as_str()));
        }
    }
    if let Some(name) = arguments.skipped.iter().find(|name| CheckGroup::parse(name).is_none()) {
        return Err(format!("unknown group `{name}` (see --list)"));
    }
    for (_, groups) in &mut stages {
        groups.retain(|group| arguments.skipped.iter().all(|name| name != group.id.as_str()));
    }
    if let Some(stage) = &arguments.stage {
        stages.retain(|(name, _)| name == stage);
    }
    Ok(stages)
}

fn parse(words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut words = words.peekable();
    // Options alone ask for what can be had within seconds.
    let is_option = |word: &String| word.starts_with("--") && word != "--help" && word != "--list";
    let command = words.next_if(|word| !is_option(word)).unwrap_or_else(|| "quick".to_owned());
    let (groups, skipped, options) = (Vec::new(), Vec::new(), checks::Options::default());
    let mut arguments =
        Arguments { command, groups, skipped, stage: None, json: false, list: false, options };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} requires a value"));
        match word.as_str() {
            "--json" => arguments.json = true,
            "--skip" => arguments.skipped.push(value()?),
            "--list" => arguments.list = true,
            "--expect" => arguments.options.expect = Some(value()?.into()),
            "--forbidden" => arguments.options.forbidden = Some(value()?.into()),
            "--user" => arguments.options.user = Some(user(&value()?)?),
            "--root" => arguments.options.root = value()?.into(),
            "--limit" => arguments.options.limit = Some(limit(&value()?)?),
            "--stage" => arguments.stage = Some(stage_named(&value()?)?),
            name if matches!(arguments.command.as_str(), "check" | "run" | "rank" | "borrow")
                && !name.starts_with('-') =>
            {
                arguments.groups.push(name.to_owned());
            }
            other => return Err(format!("unknown argument `{other}`")),
        }
    }
    Ok(arguments)
}

fn stage_named(text: &str) -> Result<Stage, String> {
    let stage = Stage::parse(text).filter(|stage| *stage != Stage::Project);
    stage.ok_or(format!("unknown stage `{text}`"))
}

fn limit(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0);
    seconds.map(Duration::from_secs).ok_or(format!("invalid value `{text}` for --limit: expected SECONDS"))
}

fn user(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once(':').and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)));
    parts.ok_or(format!("invalid value `{text}` for --user: expected UID:GID"))
}

/// All checks of some stages, each group in a child of its own.
fn all(arguments: &Arguments, stages: &[StageGroups]) -> ExitCode {
    let started = Instant::now();
    close_to_children();
    if arguments.json {
        println!("{}", header_line());
    }
    let mut good = true;
    // Without a driver every group would fail or hang in the same way.
    let mut driver = true;
    let mut exclusive = false;
    let mut holder = None;
    for (stage, groups) in stages {
        let (first, rest) =
            groups.split_at(usize::from(groups.first().is_some_and(|group| group.id == CheckGroup::Driver)));
        for groups in [first, rest] {
            let reports = if driver || *stage == Stage::Static {
                parallel::run(groups, *stage, &arguments.options, exclusive)
            } else {
                groups.iter().flat_map(|group| checks::errored(group.id.checks(), NOT_TRIED)).collect()
            };
            for report in reports {
                good &= report.is_good();
                driver &= report.id != CheckId::Driver || report.is_good();
                exclusive |= json::text_of(&report.json(), "compute_mode").as_deref() == Some("exclusive");
                println!("{}", if arguments.json { report.json() } else { report.text() });
            }
            // A GPU that serves one process is left to the checks.
            if driver && !exclusive && first.len() == 1 && holder.is_none() {
                holder = Some(holder::Holder::start(&arguments.options));
            }
        }
    }
    drop(holder);
    if arguments.json {
        println!("{}", done_line(started.elapsed().as_secs_f64()));
    }
    ExitCode::from(u8::from(!good))
}

/// Keeps what runs in the children from writing into this process's output or memory: /proc gives them to a process of
/// the same user only while it may be dumped.
fn close_to_children() {
    const PR_SET_DUMPABLE: c_int = 4;
    unsafe extern "C" {
        fn prctl(option: c_int, ...) -> c_int;
    }
    // SAFETY: changes one flag of this process; the second argument is the one that this option reads.
    let done = unsafe { prctl(PR_SET_DUMPABLE, 0 as c_ulong) };
    if done != 0 {
        eprintln!("cannot close this process to its children: {}", std::io::Error::last_os_error());
    }
}

/// One group, in this process: what the supervisor starts.
fn one(arguments: &Arguments) -> ExitCode {
    let name = arguments.groups.first().map(String::as_str).unwrap_or_default();
    let Some(group) = checks::every_group().find(|group| group.id.as_str() == name) else {
        eprintln!("unknown group `{name}`");
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
            eprintln!("cannot compute the content digest: {error}");
            return ExitCode::FAILURE;
        }
    };
    let digest = digest::sha256(&records);
    if !arguments.list {
        println!("{digest}");
        return ExitCode::SUCCESS;
    }
    // Printed next to the list, so that a truncated list is detected.
    eprintln!("{digest}");
    if let Err(error) = std::io::stdout().write_all(&records) {
        eprintln!("cannot write the records: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The device code of every library, a line each.
fn code(arguments: &Arguments) -> ExitCode {
    let started = Instant::now();
    match device_code::libraries(&arguments.options.root) {
        Ok(libraries) => libraries.iter().for_each(|library| println!("{}", library.to_json())),
        Err(error) => {
            eprintln!("cannot read the device code: {error}");
            return ExitCode::FAILURE;
        }
    }
    println!("{}", done_line(started.elapsed().as_secs_f64()));
    ExitCode::SUCCESS
}

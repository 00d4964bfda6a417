//! Runs a group of checks in a child process: abort, signal, exit and hang become lines of the report.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::checks::{Group, Options};
use super::report::{Outcome, Report};

/// How often a child is looked at.
const POLL: Duration = Duration::from_millis(5);

/// The reports of a group: the child's own, and one for each check it said nothing of.
pub(crate) fn run(group: &Group, stage: &'static str, options: &Options) -> Vec<Report> {
    let program = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    let mut command = Command::new(program);
    command.args(["check", group.name]).args(options.words());
    // Loading every kernel of cuBLAS or cuDNN at the start takes seconds; drivers before 12.2 do so unless told.
    command.env("CUDA_MODULE_LOADING", "LAZY");
    if let (true, Some((uid, gid))) = (group.as_user, options.user) {
        command.uid(uid).gid(gid).env("HOME", "/tmp");
    }
    supervise(command, group.ids, group.limit).into_iter().map(|report| report.in_stage(stage)).collect()
}

/// Runs a command to its end or its limit.
pub(crate) fn supervise(mut command: Command, ids: &[&str], limit: Duration) -> Vec<Report> {
    // A group of its own, so that what it started ends with it.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let errored =
        |why: &str| -> Vec<Report> { ids.iter().map(|id| Report::new(id, Outcome::Errored, why)).collect() };
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return errored(&format!("the check could not be started: {error}")),
    };
    let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let end = wait(&mut child, limit);
    let (stdout, stderr) = (collected(stdout), collected(stderr));
    let mut reports: Vec<_> = stdout.lines().filter_map(Report::parse).collect();
    let why = reason(end, limit, &stderr);
    for id in ids {
        if !reports.iter().any(|report| report.id == **id) {
            let report = Report::new(id, Outcome::Errored, why.clone());
            reports.push(advice(end).map_or_else(|| report.clone(), |hint| report.clone().hint(hint)));
        }
    }
    reports
}

fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if started.elapsed() < limit => std::thread::sleep(POLL),
            Ok(None) | Err(_) => {
                kill_group(child.id());
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// Ends everything the child started. std has no call for it; `kill` of the shell has.
fn kill_group(id: u32) {
    let _ = Command::new("/bin/sh").args(["-c", &format!("kill -9 -{id}")]).stderr(Stdio::null()).status();
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> Option<JoinHandle<Vec<u8>>> {
    pipe.map(|mut pipe| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            bytes
        })
    })
}

fn collected(reader: Option<JoinHandle<Vec<u8>>>) -> String {
    let bytes = reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Why a child said nothing of a check.
fn reason(end: Option<ExitStatus>, limit: Duration, stderr: &str) -> String {
    let what = match end {
        None => format!("did not end within {} s", limit.as_secs()),
        Some(status) => match (status.signal(), status.code()) {
            (Some(signal), _) => format!("ended by signal {signal}{}", name(signal)),
            (None, Some(code)) => format!("ended with code {code} and said nothing"),
            (None, None) => "ended without a code".to_owned(),
        },
    };
    let last: Vec<_> = stderr.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
    let last: Vec<_> = last.into_iter().rev().collect();
    if last.is_empty() { what } else { format!("{what}: {}", last.join(" | ")) }
}

/// ` (SIGBUS)`.
fn name(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        _ => "",
    }
}

/// What to do about a child that ended so.
fn advice(end: Option<ExitStatus>) -> Option<&'static str> {
    Some(match end {
        None => {
            "a driver or library that hangs: look at the host's kernel log, and try again on an idle machine"
        }
        Some(status) => match status.signal()? {
            4 => "the processor lacks an instruction that the library was built with",
            6 => {
                "the library gave up: a part of it is missing or of another version; install its package again"
            }
            7 => {
                "a file is shorter than its header says, or the disk or /dev/shm is full: install the package again"
            }
            9 => "the kernel or the engine killed it: give the container more memory",
            11 => {
                "the library crashed: it is damaged, or two versions of it are mixed; install its package again"
            }
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Vec<Report> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        supervise(command, &["one"], Duration::from_secs(1))
    }

    #[test]
    fn an_abort_a_code_and_a_hang_become_lines() {
        for (script, word) in [
            ("kill -ABRT $$", "signal 6 (SIGABRT)"),
            ("echo loading x.so >&2; kill -BUS $$", "signal 7 (SIGBUS): loading x.so"),
            ("echo oh no >&2; exit 7", "code 7 and said nothing: oh no"),
            ("sleep 60", "did not end within 1 s"),
        ] {
            let reports = shell(script);
            assert_eq!((reports.len(), reports[0].outcome), (1, Outcome::Errored), "{script}");
            assert!(reports[0].detail.contains(word), "{}", reports[0].detail);
            assert_eq!(reports[0].hint.is_some(), !script.contains("exit"), "{script}");
        }
    }

    #[test]
    fn what_a_child_said_before_it_crashed_counts() {
        let line = Report::new("one", Outcome::Passed, "fine").json();
        let reports = shell(&format!("echo '{line}'; kill -SEGV $$"));
        assert_eq!(reports[0].outcome, Outcome::Passed);
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_not_a_panic() {
        let reports = supervise(Command::new("/nonexistent"), &["a", "b"], Duration::from_secs(1));
        assert!(reports.iter().all(|report| report.outcome == Outcome::Errored) && reports.len() == 2);
    }
}

//! Runs a group of checks in a child process: abort, signal, exit and hang become lines of the report.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use envforge_protocol::{CheckId, Outcome};

use crate::checks::{self, Group, Options};
use crate::report::Report;

/// How often a child is looked at.
const POLL: Duration = Duration::from_millis(5);

/// Runs a group and returns the child's reports, with an errored one for each missing check.
pub(crate) fn run(group: &Group, options: &Options) -> Vec<Report> {
    let program = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    let mut command = Command::new(program);
    command.args(["check", group.id.as_str()]).args(options.words());
    // Loading every kernel of cuBLAS or cuDNN at the start takes seconds; drivers before 12.2 do so by default.
    command.env("CUDA_MODULE_LOADING", "LAZY");
    if let (true, Some((uid, gid))) = (group.as_user, options.user) {
        command.uid(uid).gid(gid).env("HOME", "/tmp");
    }
    supervise(command, group.id.checks(), group.limit)
}

/// Runs a command to its end or its limit.
pub(crate) fn supervise(mut command: Command, ids: &[CheckId], limit: Duration) -> Vec<Report> {
    // A group of its own, so that what it started ends with it.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let errored = |why: &str| checks::errored(ids, why);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return errored(&format!("cannot start the check: {error}")),
    };
    let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let end = wait(&mut child, limit);
    let (stdout, stderr) = (collected(stdout), collected(stderr));
    let mut reports: Vec<_> = stdout.lines().filter_map(Report::parse).collect();
    let why = reason(end, limit, &stderr);
    for id in ids {
        if !reports.iter().any(|report| report.id == *id) {
            let report = Report::new(*id, Outcome::Errored, why.clone());
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

/// Returns the reason why a child did not report a check.
fn reason(end: Option<ExitStatus>, limit: Duration, stderr: &str) -> String {
    let what = match end {
        None => format!("did not finish within {} s", limit.as_secs()),
        Some(status) => match (status.signal(), status.code()) {
            (Some(signal), _) => format!("terminated by signal {signal}{}", name(signal)),
            (None, Some(code)) => format!("exited with code {code} without a result"),
            (None, None) => "ended without an exit code".to_owned(),
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

/// Returns the fix for a child that ended so.
fn advice(end: Option<ExitStatus>) -> Option<&'static str> {
    Some(match end {
        None => "a driver or library hangs: check the host's kernel log and retry on an idle machine",
        Some(status) => match status.signal()? {
            4 => "the processor lacks an instruction that the library was built with",
            6 => {
                "the library aborted: a part of it is missing or has a different version; reinstall its package"
            }
            7 => "a file is truncated, or the disk or /dev/shm is full: reinstall the package",
            9 => "the kernel or the engine killed it: give the container more memory",
            11 => "the library crashed: it is damaged, or two versions are mixed; reinstall its package",
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use envforge_protocol::CheckGroup;

    use super::*;

    fn shell(script: &str) -> Vec<Report> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        supervise(command, &[CheckId::Nvrtc], Duration::from_secs(1))
    }

    #[test]
    fn abort_exit_code_and_hang_become_lines() {
        for (script, word) in [
            ("kill -ABRT $$", "signal 6 (SIGABRT)"),
            ("echo loading x.so >&2; kill -BUS $$", "signal 7 (SIGBUS): loading x.so"),
            ("echo oh no >&2; exit 7", "code 7 without a result: oh no"),
            ("sleep 60", "did not finish within 1 s"),
        ] {
            let reports = shell(script);
            assert_eq!((reports.len(), reports[0].outcome), (1, Outcome::Errored), "{script}");
            assert!(reports[0].detail.contains(word), "{}", reports[0].detail);
            assert_eq!(reports[0].hint.is_some(), !script.contains("exit"), "{script}");
        }
    }

    #[test]
    fn report_before_a_crash_counts() {
        let line = Report::new(CheckId::Nvrtc, Outcome::Passed, "fine").json();
        let reports = shell(&format!("echo '{line}'; kill -SEGV $$"));
        assert_eq!(reports[0].outcome, Outcome::Passed);
    }

    #[test]
    fn missing_program_is_an_error() {
        let reports =
            supervise(Command::new("/nonexistent"), CheckGroup::Driver.checks(), Duration::from_secs(1));
        assert!(reports.iter().all(|report| report.outcome == Outcome::Errored) && reports.len() == 2);
    }
}

//! Runs a group of checks in a child process: abort, signal, exit and hang become lines of the report.

use std::ffi::c_int;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use envforge_protocol::{CheckId, Outcome};

use crate::checks::{self, Group, Options};
use crate::report::Report;

/// How often a child is looked at.
const POLL: Duration = Duration::from_millis(5);
/// How long a killed child may take to end. One that waits inside the driver (state D) never does.
const GRACE: Duration = Duration::from_secs(5);
const SIGKILL: c_int = 9;
/// Bytes that are kept of a child's output; the rest is read and dropped.
const OUTPUT: usize = 4 << 20;
/// Variables with this prefix are set, without it, for the children only: the image's own settings of the dynamic
/// linker must not reach this process.
const FOR_CHILDREN: &str = "ENVFORGE_CHILD_";

unsafe extern "C" {
    fn kill(process: c_int, signal: c_int) -> c_int;
}

/// Runs a group and returns the child's reports, with an errored one for each missing check.
pub(crate) fn run(group: &Group, options: &Options) -> Vec<Report> {
    let program = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    let mut command = Command::new(program);
    command.args(["check", group.id.as_str()]).args(options.words());
    // Loading every kernel of cuBLAS or cuDNN at the start takes seconds; drivers before 12.2 do so by default.
    command.env("CUDA_MODULE_LOADING", "LAZY");
    command.envs(for_children(std::env::vars()));
    if let (true, Some((uid, gid))) = (group.as_user, options.user) {
        command.uid(uid).gid(gid).env("HOME", "/tmp");
    }
    supervise(command, group.id.checks(), options.limit.map_or(group.limit, |limit| limit.min(group.limit)))
}

/// The variables that a child gets as the image has them.
fn for_children(all: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    all.filter_map(|(name, value)| Some((name.strip_prefix(FOR_CHILDREN)?.to_owned(), value))).collect()
}

/// Runs a command to its end or its limit.
pub(crate) fn supervise(mut command: Command, ids: &[CheckId], limit: Duration) -> Vec<Report> {
    in_own_group(&mut command).stdout(Stdio::piped()).stderr(Stdio::piped());
    let errored = |why: &str| checks::errored(ids, why);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return errored(&format!("cannot start the check: {error}")),
    };
    let (stdout, stderr) = (Output::of(child.stdout.take()), Output::of(child.stderr.take()));
    let end = wait(&mut child, limit);
    // An abandoned child keeps its pipes open: their readers would wait with it.
    let abandoned = matches!(end, End::Killed { abandoned: true });
    let (stdout, stderr) = (stdout.text(!abandoned), stderr.text(!abandoned));
    // What the image's code prints there cannot answer for another check.
    let own = |report: &Report| ids.contains(&report.id);
    let mut reports: Vec<_> = stdout.lines().filter_map(Report::parse).filter(own).collect();
    let why = reason(end, limit, &stderr);
    for id in ids {
        if !reports.iter().any(|report| report.id == *id) {
            let report = Report::new(*id, Outcome::Errored, why.clone());
            reports.push(advice(end).map_or_else(|| report.clone(), |hint| report.clone().hint(hint)));
        }
    }
    reports
}

/// A child with a process group of its own, so that what it started ends with it, and without input and output.
pub(crate) fn in_own_group(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0)
}

/// Kills a child and what it started, and waits for it as long as it can end.
pub(crate) fn end(child: &mut Child) {
    kill_group(child.id());
    ends_within(child, GRACE);
}

/// How a child ended.
#[derive(Debug, Clone, Copy)]
enum End {
    /// By itself.
    Exited(ExitStatus),
    /// Killed at its limit; `abandoned`: it still runs.
    Killed { abandoned: bool },
}

fn wait(child: &mut Child, limit: Duration) -> End {
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return End::Exited(status),
            Ok(None) if started.elapsed() < limit => std::thread::sleep(POLL),
            Ok(None) | Err(_) => {
                kill_group(child.id());
                return End::Killed { abandoned: !ends_within(child, GRACE) };
            }
        }
    }
}

/// Kills the child and everything that it started in its process group.
fn kill_group(id: u32) {
    let group = c_int::try_from(id).unwrap_or_default();
    if group > 0 {
        // SAFETY: `kill` takes plain numbers; a negative one names the group, which `process_group(0)` made.
        unsafe { kill(-group, SIGKILL) };
    }
}

/// Whether the child ends in that time.
fn ends_within(child: &mut Child, limit: Duration) -> bool {
    let started = Instant::now();
    while started.elapsed() < limit {
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        std::thread::sleep(POLL);
    }
    false
}

/// The output of a child, read as it comes.
struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Output {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&bytes);
        let read = |mut pipe: Box<dyn Read + Send>| {
            std::thread::spawn(move || {
                let mut chunk = [0; 4096];
                while let Ok(count @ 1..) = pipe.read(&mut chunk) {
                    let mut bytes = shared.lock().expect("no reader panics");
                    let room = OUTPUT.saturating_sub(bytes.len());
                    bytes.extend_from_slice(&chunk[..count.min(room)]);
                }
            })
        };
        Self { bytes, reader: pipe.map(|pipe| read(Box::new(pipe))) }
    }

    /// The text up to the end of the pipe, or only what was read so far.
    fn text(self, complete: bool) -> String {
        if let Some(reader) = self.reader.filter(|_| complete) {
            let _ = reader.join();
        }
        String::from_utf8_lossy(&self.bytes.lock().expect("no reader panics")).into_owned()
    }
}

/// Returns the reason why a child did not report a check.
fn reason(end: End, limit: Duration, stderr: &str) -> String {
    let what = match end {
        End::Killed { abandoned: false } => format!("did not finish within {} s", limit.as_secs()),
        End::Killed { abandoned: true } => {
            format!("did not finish within {} s and does not end after SIGKILL", limit.as_secs())
        }
        End::Exited(status) => match (status.signal(), status.code()) {
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
fn advice(end: End) -> Option<&'static str> {
    Some(match end {
        End::Killed { abandoned: true } => {
            "the process waits inside the driver: check the host's kernel log and reboot the host"
        }
        End::Killed { abandoned: false } => {
            "a driver or library hangs: check the host's kernel log and retry on an idle machine"
        }
        End::Exited(status) => match status.signal()? {
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

    /// A limit that only a script without an end reaches, on whatever machine.
    const HANGS: Duration = Duration::from_mins(10);

    fn shell(script: &str) -> Vec<Report> {
        limited(script, HANGS)
    }

    fn limited(script: &str, limit: Duration) -> Vec<Report> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        supervise(command, &[CheckId::Nvrtc], limit)
    }

    #[test]
    fn abort_exit_code_and_hang_become_lines() {
        for (script, word) in [
            ("kill -ABRT $$", "signal 6 (SIGABRT)"),
            ("echo loading x.so >&2; kill -BUS $$", "signal 7 (SIGBUS): loading x.so"),
            ("echo oh no >&2; exit 7", "code 7 without a result: oh no"),
            ("sleep 600", "did not finish within 1 s"),
        ] {
            let limit = if script.starts_with("sleep") { Duration::from_secs(1) } else { HANGS };
            let reports = limited(script, limit);
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

    /// A test cannot make a process that survives SIGKILL; this one was not killed yet.
    #[test]
    fn running_child_is_abandoned_with_the_output_it_gave() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo started; sleep 60"]).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().expect("runs");
        let stdout = Output::of(child.stdout.take());
        let given = || !stdout.bytes.lock().expect("no reader panics").is_empty();
        assert!(within(HANGS, given), "it prints");
        assert!(!ends_within(&mut child, Duration::from_millis(300)));
        assert_eq!(stdout.text(false), "started\n");
        let why = reason(End::Killed { abandoned: true }, Duration::from_secs(1), "");
        assert_eq!(why, "did not finish within 1 s and does not end after SIGKILL");
        kill_group(child.id());
        assert!(ends_within(&mut child, HANGS));
    }

    /// Whether something is so in that time.
    fn within(limit: Duration, is_so: impl Fn() -> bool) -> bool {
        let started = Instant::now();
        while !is_so() && started.elapsed() < limit {
            std::thread::sleep(POLL);
        }
        is_so()
    }

    #[test]
    fn killed_child_ends_with_its_own_children() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let script = format!("sleep 600 & echo $! >{}; wait", file.path().display());
        // The limit that ends it comes after its first words, however slow the machine is.
        let id = (0..9).find_map(|doubled| {
            limited(&script, Duration::from_secs(1 << doubled));
            Some(std::fs::read_to_string(file.path()).expect("readable")).filter(|id| id.ends_with('\n'))
        });
        let id = id.expect("a shell that starts");
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
        let ended = || state().is_empty() || state().contains(") Z ");
        assert!(within(Duration::from_mins(5), ended), "{id}: {}", state());
    }

    #[test]
    fn report_of_another_check_is_dropped() {
        let forged = Report::new(CheckId::Secrets, Outcome::Passed, "fine").json();
        let reports = shell(&format!("echo '{forged}'"));
        assert_eq!((reports.len(), reports[0].id), (1, CheckId::Nvrtc));
    }

    #[test]
    fn output_without_end_is_kept_up_to_its_bound() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "head -c 6000000 /dev/zero"]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("runs");
        let stdout = Output::of(child.stdout.take());
        assert!(child.wait().expect("ends").success());
        assert_eq!(stdout.text(true).len(), OUTPUT);
    }

    #[test]
    fn variables_of_the_image_are_given_to_children() {
        let all = [("ENVFORGE_CHILD_LD_PRELOAD", "/x.so"), ("HOME", "/")];
        let all = all.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(for_children(all.into_iter()), [("LD_PRELOAD".to_owned(), "/x.so".to_owned())]);
    }

    #[test]
    fn missing_program_is_an_error() {
        let reports =
            supervise(Command::new("/nonexistent"), CheckGroup::Driver.checks(), Duration::from_secs(1));
        assert!(reports.iter().all(|report| report.outcome == Outcome::Errored) && reports.len() == 2);
    }
}

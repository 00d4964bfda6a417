//! Programs that envforge starts. They inherit its environment without its secrets, and one that is waited for has bounds.
#![expect(clippy::disallowed_methods, reason = "edge: the one place where programs are started")]

use std::ffi::OsStr;
use std::io::{Error, ErrorKind, Read, copy, sink};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// What signs evidence and logs in to a registry. Only envforge itself needs it, while `srun` and `sbatch` would hand it to every node, and
/// an editor to all that runs in it.
const SECRETS: [&str; 5] = [
    "COSIGN_PASSWORD",
    "COSIGN_PRIVATE_KEY",
    "DOCKER_AUTH_CONFIG",
    "ENVFORGE_REGISTRY_PASSWORD",
    "ENVFORGE_SIGNING_KEY",
];

/// Bytes of a program's errors that are kept.
const MOST_ERRORS: u64 = 64 << 10;

/// A program that is not started yet.
pub(crate) fn child(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for name in SECRETS {
        command.env_remove(name);
    }
    command
}

/// The same, to be waited for without blocking.
pub(crate) fn async_child(program: impl AsRef<OsStr>) -> tokio::process::Command {
    child(program).into()
}

/// Bounds of a program that is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The time until its end.
    pub(crate) time: Duration,
    /// Bytes of its output.
    pub(crate) output: u64,
}

/// Runs a program to its end without input and returns its output, of which all is read, and the first of its errors.
/// A program beyond a bound is ended: `TimedOut` or `FileTooLarge`.
pub(crate) fn run_within(command: &mut Command, bounds: Bounds) -> Result<Output, Error> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // Both are read while it runs: it would wait for ever for a full pipe to be emptied.
    let stdout = read_beside(child.stdout.take(), bounds.output.saturating_add(1), false);
    let stderr = read_beside(child.stderr.take(), MOST_ERRORS, true);
    let output = collect(&mut child, (&stdout, &stderr), bounds);
    if output.is_err() {
        drop(child.kill());
        // A program that hangs in a driver ends when the driver lets it.
        std::thread::spawn(move || child.wait());
    }
    output
}

fn collect(
    child: &mut Child,
    (stdout, stderr): (&Receiver<Vec<u8>>, &Receiver<Vec<u8>>),
    bounds: Bounds,
) -> Result<Output, Error> {
    let end = Instant::now() + bounds.time;
    let late = || {
        let text = format!("it did not end within {} s", bounds.time.as_secs_f32());
        Error::new(ErrorKind::TimedOut, text)
    };
    // A program that it started may keep its pipes open.
    let read = |pipe: &Receiver<Vec<u8>>| {
        pipe.recv_timeout(end.saturating_duration_since(Instant::now())).map_err(|_| late())
    };
    let stdout = read(stdout)?;
    if u64::try_from(stdout.len()).is_ok_and(|length| length > bounds.output) {
        let text = format!("its output is longer than {} bytes", bounds.output);
        return Err(Error::new(ErrorKind::FileTooLarge, text));
    }
    let stderr = read(stderr)?;
    let status = ended_until(child, end)?.ok_or_else(late)?;
    Ok(Output { status, stdout, stderr })
}

/// Waits for the end of a program; `None`: it still runs.
fn ended_until(child: &mut Child, end: Instant) -> Result<Option<ExitStatus>, Error> {
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Some(status)),
            None if Instant::now() < end => std::thread::sleep(Duration::from_millis(2)),
            None => return Ok(None),
        }
    }
}

/// Reads a pipe in a thread, up to a bound. Then it is closed, which ends its writer, or `drained`.
fn read_beside(pipe: Option<impl Read + Send + 'static>, most: u64, drained: bool) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is shorter than the whole, and the program's status says why.
            drop(pipe.by_ref().take(most).read_to_end(&mut bytes));
            if drained {
                drop(copy(&mut pipe, &mut sink()));
            }
        }
        // The receiver is gone if nobody waits any longer.
        drop(sender.send(bytes));
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::VARIABLES;

    #[test]
    fn every_secret_variable_is_withheld() {
        let names = VARIABLES.iter().flat_map(|variable| variable.names).copied();
        let secret =
            names.filter(|name| ["PASSWORD", "SIGNING", "AUTH"].iter().any(|word| name.contains(word)));
        let unknown: Vec<&str> = secret.filter(|name| !SECRETS.contains(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        for command in [&child("true"), async_child("true").as_std()] {
            let removed: Vec<_> = command.get_envs().filter(|(_, value)| value.is_none()).collect();
            assert!(SECRETS.iter().all(|name| removed.contains(&(OsStr::new(name), None))), "{removed:?}");
        }
    }

    /// Runs a script of a shell within bounds.
    fn script(text: &str, time: Duration, output: u64) -> Result<Output, Error> {
        run_within(child("sh").args(["-c", text]), Bounds { time, output })
    }

    const PATIENCE: Duration = Duration::from_mins(1);

    #[test]
    fn output_beyond_a_pipe_is_read_while_the_program_runs() {
        let output = script(
            "head -c 300000 /dev/zero >&2 || exit 9; head -c 300000 /dev/zero; exit 3",
            PATIENCE,
            300_000,
        );
        let output = output.expect("it ends");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 300_000));
        assert_eq!(output.stderr.len(), 64 << 10, "the first of its errors");
        let error = script("head -c 11 /dev/zero", PATIENCE, 10).expect_err("one byte more");
        assert_eq!(error.kind(), ErrorKind::FileTooLarge, "{error}");
    }

    #[test]
    fn program_beyond_a_bound_is_ended() {
        let short = Duration::from_millis(100);
        for text in ["exec sleep 60", "exec >&- 2>&-; exec sleep 60", "sleep 60 & exit 0"] {
            let began = Instant::now();
            let error = script(text, short, 10).expect_err("ended");
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{text}: {error}");
            assert!(began.elapsed() < PATIENCE / 2, "{text}: {:?}", began.elapsed());
        }
        let error = script("trap '' PIPE; exec cat /dev/zero", PATIENCE, 10).expect_err("ended");
        assert_eq!(error.kind(), ErrorKind::FileTooLarge, "{error}");
        let error = run_within(&mut child("no-such-program-envforge"), Bounds { time: short, output: 1 });
        assert_eq!(error.expect_err("absent").kind(), ErrorKind::NotFound);
    }
}

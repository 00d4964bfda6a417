//! Further processes of the agent, for checks that need more than one: each is given words and prints one line.

use std::process::{Child, Command, Stdio};

use envforge_protocol::SkipReason;

use super::CheckFailure;
use crate::checks::Options;

/// What a process prints if it found what it should.
pub(crate) const EXACT: &str = "exact";
/// How its line begins if it could not be tried here: the reason follows.
const SKIPPED: &str = "skipped:";

/// Starts the agent as `COMMAND WORD…` with the same options.
pub(crate) fn start(command: &str, words: &[String], options: &Options) -> Result<Child, CheckFailure> {
    let program = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    Command::new(&program)
        .arg(command)
        .args(words)
        .args(options.words())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| CheckFailure::error(format!("cannot start {}: {error}", program.display())))
}

/// What a process printed, a skip with its reason among it; `None` if that is [`EXACT`].
pub(crate) fn problem(child: Child) -> Option<CheckFailure> {
    let text = child.wait_with_output().map_or_else(
        |error| error.to_string(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    );
    let problem = if text.is_empty() { "ended without an answer".to_owned() } else { text };
    (problem != EXACT).then(|| failure(&problem))
}

/// The failure that `line` wrote.
fn failure(line: &str) -> CheckFailure {
    let skip = line.strip_prefix(SKIPPED).and_then(|rest| rest.split_once(' '));
    match skip.and_then(|(reason, detail)| Some((SkipReason::parse(reason)?, detail))) {
        Some((reason, detail)) => CheckFailure::skip(reason, detail),
        None => CheckFailure::fail(line),
    }
}

/// Prints what came of a process's work.
pub(crate) fn print(found: Result<String, CheckFailure>) {
    println!("{}", line(found));
}

fn line(found: Result<String, CheckFailure>) -> String {
    let text = found.unwrap_or_else(|failure| match failure.skip {
        Some(reason) => format!("{SKIPPED}{} {}", reason.as_str(), failure.detail),
        None => failure.detail,
    });
    text.replace('\n', " ")
}

/// Two digits a byte, for a word of the command line.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of such a word; `None` for another number of bytes.
pub(crate) fn bytes<const COUNT: usize>(word: &str) -> Option<[u8; COUNT]> {
    let digits = (0..word.len()).step_by(2).map(|at| u8::from_str_radix(word.get(at..at + 2)?, 16).ok());
    digits.collect::<Option<Vec<u8>>>()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_of_a_skip_survives_the_other_process() {
        let busy = CheckFailure::skip(SkipReason::HostBusy, "the GPU's memory is full");
        let found = failure(&line(Err(busy)));
        assert_eq!(
            (found.skip, found.detail.as_str()),
            (Some(SkipReason::HostBusy), "the GPU's memory is full")
        );
        let found = failure(&line(Err(CheckFailure::fail("wrong\nat 3"))));
        assert_eq!((found.skip, found.detail.as_str()), (None, "wrong at 3"));
    }

    #[test]
    fn words_hold_bytes_and_nothing_else() {
        assert_eq!(hex(&[0, 0xa5, 0xff]), "00a5ff");
        assert_eq!(bytes::<3>("00a5ff"), Some([0, 0xa5, 0xff]));
        for wrong in ["00a5f", "00a5", "00a5ff00", "00a5fg", "00äff"] {
            assert_eq!(bytes::<3>(wrong), None, "{wrong}");
        }
    }
}

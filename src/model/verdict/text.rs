//! A verdict for people: problems first, each with its fix, and one line of counts at the end.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use envforge_protocol::{Outcome, SkipReason, Stage};

use super::{Check, Verdict, VerdictStatus};
use crate::model::counted::counted;
use crate::model::visible::visible_line_within;

/// Characters of a reason in the line of checks that looked at nothing.
const SHOWN_REASON: usize = 100;

/// Which checks a text lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Those that bar a tag.
    Problems,
    /// All of them.
    Everything,
}

impl Detail {
    /// Everything for `-v`.
    pub fn of(verbose: u8) -> Self {
        if verbose > 0 { Self::Everything } else { Self::Problems }
    }
}

/// Writes one line per check, failures first, each with its hint. Ends in a newline unless there is none to list.
pub fn check_lines(verdict: &Verdict, detail: Detail) -> String {
    let listed = |check: &&Check| {
        detail == Detail::Everything || check.is_bad() || check.is_hindered() || warns(check)
    };
    let mut checks: Vec<_> = verdict.checks.iter().filter(listed).collect();
    checks.sort_by_key(|check| check.outcome);
    let width = checks.iter().map(|check| check.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        let word = outcome_word(check);
        // A further line of a finding does not begin like the line of another check.
        let below = format!("\n{:1$}", "", width + 10);
        let _ = writeln!(text, "{word:7} {:width$}  {}", check.id, check.detail.replace('\n', &below));
        if let Some(hint) = &check.hint {
            let _ = writeln!(text, "{:7} {:width$}  hint: {}", "", "", hint.replace('\n', &below));
        }
    }
    text
}

/// Names the static checks of an image from elsewhere that found nothing to look at, with the reason, in one line; empty if there are
/// none. Those of an image of envforge's own are required and bar its tag.
pub fn unseen_line(verdict: &Verdict) -> String {
    let mut by_reason = BTreeMap::<String, Vec<&str>>::new();
    for check in verdict.checks.iter().filter(|check| verdict.sandboxed && is_unseen(check)) {
        by_reason.entry(visible_line_within(&check.detail, SHOWN_REASON)).or_default().push(&check.id);
    }
    if by_reason.is_empty() {
        return String::new();
    }
    let parts: Vec<_> = by_reason.iter().map(|(why, ids)| format!("{} ({why})", ids.join(", "))).collect();
    format!("not looked at: {}\n", parts.join("; "))
}

/// Whether a check had nothing to look at, or could not read it.
fn is_unseen(check: &Check) -> bool {
    use SkipReason::{NotInImage, NotOffered, NotReported, UnknownFormat};
    let reasons = [NotInImage, NotOffered, NotReported, UnknownFormat];
    Stage::parse(&check.stage) == Some(Stage::Static)
        && check.outcome == Outcome::Skipped
        && check.skip.is_some_and(|reason| reasons.contains(&reason))
}

/// Returns the word for a check's outcome.
pub fn outcome_word(check: &Check) -> &'static str {
    match check.outcome {
        Outcome::Failed => "failed",
        Outcome::Errored => "error",
        Outcome::Skipped => "skipped",
        Outcome::Passed if warns(check) => "warning",
        Outcome::Passed => "ok",
    }
}

/// Whether a check found something that says nothing about the image: a slow GPU, a fault of the host.
fn warns(check: &Check) -> bool {
    check.measured.contains_key("warning")
}

/// Writes the verdict in one line: how many checks failed, passed and were skipped, and where they ran.
pub fn summary(verdict: &Verdict) -> String {
    let count = |outcome| verdict.checks.iter().filter(|check| check.outcome == outcome).count();
    let (passed, skipped) = (count(Outcome::Passed), count(Outcome::Skipped));
    let mut line = match verdict.verdict {
        VerdictStatus::Failed => {
            let mut line =
                format!("failed: {} of {}", verdict.failures(), counted(verdict.checks.len(), "check"));
            let _ = write!(line, ", {passed} passed");
            line
        }
        VerdictStatus::Undecided => format!("undecided: {} passed", counted(passed, "check")),
        VerdictStatus::StaticOnly => format!("passed: {}", counted(passed, "check")),
        VerdictStatus::Passed => {
            format!("passed: {} on {}", counted(passed, "check"), verdict.gpus.join(", "))
        }
    };
    if skipped > 0 {
        let _ = write!(line, ", {skipped} skipped");
    }
    match verdict.verdict {
        VerdictStatus::Undecided => {
            line.push_str("; the GPU is busy: run `envforge verify` again when it is free");
        }
        VerdictStatus::StaticOnly => line.push_str("; nothing ran on a GPU"),
        VerdictStatus::Passed if !verdict.not_proven.is_empty() => {
            let others: Vec<_> = verdict.not_proven.iter().map(|it| it.dotted()).collect();
            let _ = write!(line, "; not proven on {}", others.join(" "));
        }
        VerdictStatus::Passed | VerdictStatus::Failed => {}
    }
    line
}

/// Writes the lines and the summary below them.
pub fn verdict_text(verdict: &Verdict, detail: Detail) -> String {
    check_lines(verdict, detail) + &unseen_line(verdict) + &summary(verdict)
}

#[cfg(test)]
mod tests {
    use super::super::tests::verdict_of;
    use super::*;

    const LINES: &str = r#"{"id":"one","stage":"static","outcome":"passed","detail":"fine"}
{"id":"three","stage":"static","outcome":"skipped","detail":"not in this image"}
{"id":"two","stage":"static","outcome":"failed","detail":"broken","hint":"fix it"}
{"done":true,"seconds":1.25}
"#;

    #[test]
    fn failures_come_first_and_counts_last() {
        let text = verdict_text(&verdict_of(LINES), Detail::Problems);
        let lines = "failed  two  broken\n             hint: fix it\n";
        assert_eq!(text, format!("{lines}failed: 1 of 5 checks, 3 passed, 1 skipped"));
    }

    #[test]
    fn finding_of_several_lines_forges_no_other_line() {
        let lines = LINES
            .replace("broken", r"broken\nok      gemm-large  exact\u001b[2K")
            .replace("fix it", r"fix\nit");
        let text = verdict_text(&verdict_of(&lines), Detail::Problems);
        let shown = "failed  two  broken\n             ok      gemm-large  exact\\u{1b}[2K\n             hint: fix\n             it\n";
        assert!(text.starts_with(shown), "{text}");
    }

    #[test]
    fn passed_checks_are_listed_on_request() {
        let text = verdict_text(&verdict_of(LINES), Detail::of(1));
        let words: Vec<_> = text.lines().map(|line| line.split_once(' ').expect("two words").0).collect();
        assert_eq!(words, ["failed", "", "skipped", "ok", "ok", "ok", "failed:"], "{text}");
        assert!(!verdict_text(&verdict_of(LINES), Detail::of(0)).contains("ok "));
    }

    #[test]
    fn warnings_are_listed_and_fail_nothing() {
        let slow = r#"{"id":"speed-memory","stage":"perf","outcome":"passed","detail":"slow","measured":{"warning":"x"}}"#;
        let text = verdict_text(&verdict_of(&LINES.replace("\"failed\"", "\"passed\"")), Detail::Problems);
        assert!(!text.contains("warning"), "{text}");
        let lines = format!("{slow}\n{}", LINES.replace("\"failed\"", "\"passed\""));
        let text = verdict_text(&verdict_of(&lines), Detail::Problems);
        assert!(text.starts_with("warning speed-memory  slow\npassed: 5 checks"), "{text}");
    }

    #[test]
    fn unseen_checks_are_named_with_their_reason() {
        let skipped = |id: &str, reason: &str, detail: &str| {
            format!(
                r#"{{"id":"{id}","stage":"static","outcome":"skipped","detail":"{detail}","skip":"{reason}"}}"#
            ) + "\n"
        };
        let lines = skipped("pip-check", "not-in-image", "Python is not in the image")
            + &skipped("framework-cuda", "no-expectation", "12.8 (not compared)")
            + &skipped("code-for-target", "unknown-format", "unknown: libtorch_cuda.so")
            + &skipped("extension-abi", "not-in-image", "Python is not in the image")
            + "{\"done\":true,\"seconds\":1}";
        let mut verdict = verdict_of(&lines);
        assert_eq!(unseen_line(&verdict), "", "an image of ours says it by its tag");
        verdict.sandboxed = true;
        let line = "not looked at: pip-check, extension-abi (Python is not in the image); code-for-target (unknown: libtorch_cuda.so)\n";
        assert_eq!(unseen_line(&verdict), line);
        assert!(verdict_text(&verdict, Detail::Problems).contains(line));
    }

    #[test]
    fn summary_names_where_checks_ran() {
        let mut verdict = verdict_of(&LINES.replace("failed", "passed"));
        assert_eq!(summary(&verdict), "passed: 4 checks, 1 skipped; nothing ran on a GPU");
        verdict.verdict = VerdictStatus::Undecided;
        let line = summary(&verdict);
        assert!(line.starts_with("undecided: 4 checks passed, 1 skipped; the GPU is busy"), "{line}");
        verdict.verdict = VerdictStatus::Passed;
        verdict.gpus = vec!["NVIDIA H200 (sm_90)".to_owned()];
        assert_eq!(summary(&verdict), "passed: 4 checks on NVIDIA H200 (sm_90), 1 skipped");
        verdict.not_proven = vec!["8.0".parse().unwrap(), "12.0".parse().unwrap()];
        let line = summary(&verdict);
        assert_eq!(line, "passed: 4 checks on NVIDIA H200 (sm_90), 1 skipped; not proven on 8.0 12.0");
    }
}

//! The lines of a report by their schema, within bounds: code of the image can print what it likes.
//!
//! Texts are cut and their control characters escaped here, so that everything below may show them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Check;
use crate::model::visible::{Bounds, visible_line_within, visible_within};

/// The most checks of a report. The agent has some 100.
pub(super) const MOST_CHECKS: usize = 1_000;
/// The longest line, bytes.
const LONGEST_LINE: usize = 64 << 10;
/// A finding or a fix.
const TEXT: Bounds = Bounds { lines: 40, characters: 4_000 };
/// The most values of a check.
pub(super) const MOST_VALUES: usize = 200;
/// A value, characters.
pub(super) const LONGEST_VALUE: usize = 1_000;
/// An id, a stage, or the name of a value, characters.
const LONGEST_NAME: usize = 100;
/// A week: no report takes longer.
pub(super) const MOST_SECONDS: f64 = 7.0 * 24.0 * 60.0 * 60.0;

/// A report as it was printed.
pub(super) struct Lines {
    /// Its checks, in order.
    pub(super) checks: Vec<Check>,
    /// The seconds of its last line; `None`: it is incomplete.
    pub(super) seconds: Option<f64>,
    /// Why it is not one of the agent, if so.
    pub(super) excess: Option<String>,
}

/// The last line of a complete report.
#[derive(Deserialize)]
struct Done {
    #[expect(dead_code, reason = "its presence marks the report as complete")]
    done: bool,
    seconds: f64,
}

impl Lines {
    /// Reads the lines of a report. Other lines are ignored: libraries print them.
    pub(super) fn read(text: &str) -> Self {
        let (mut checks, mut seconds, mut excess) = (Vec::new(), None, None);
        for line in text.lines() {
            if line.len() > LONGEST_LINE {
                excess = Some(format!("a line of it has more than {} KiB", LONGEST_LINE >> 10));
            } else if let Ok(Done { seconds: found, .. }) = serde_json::from_str(line) {
                seconds = Some(found.clamp(0.0, MOST_SECONDS));
            } else if let Some(check) = serde_json::from_str(line).ok().and_then(bounded) {
                if checks.len() == MOST_CHECKS {
                    excess = Some(format!("it has more than {MOST_CHECKS} checks"));
                    break;
                }
                checks.push(check);
            }
        }
        Self { checks, seconds, excess }
    }
}

/// The check with its texts within bounds; `None` if its id or stage is not a name. Only this program decides which checks are required.
pub(super) fn bounded(check: Check) -> Option<Check> {
    let Check { id, stage, required: _, outcome, detail, measured, expected, hint, skip } = check;
    (is_name(&id) && is_name(&stage)).then(|| Check {
        id,
        stage,
        required: false,
        outcome,
        detail: visible_within(&detail, TEXT),
        measured: values(measured),
        expected: values(expected),
        hint: hint.map(|hint| visible_within(&hint, TEXT)),
        skip,
    })
}

pub(super) fn values(all: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let shown = |(name, value): (String, String)| {
        (visible_line_within(&name, LONGEST_NAME), visible_line_within(&value, LONGEST_VALUE))
    };
    all.into_iter().take(MOST_VALUES).map(shown).collect()
}

/// Whether a text has the form of an id: `framework-cuda`, `check:own-1`.
fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:+/".contains(&byte);
    !text.is_empty() && text.len() <= LONGEST_NAME && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, detail: &str) -> String {
        serde_json::json!({
            "id": id, "stage": "gpu", "outcome": "passed", "detail": detail, "required": true,
            "measured": { detail: detail }, "expected": {}, "hint": detail,
        })
        .to_string()
    }

    #[test]
    fn texts_are_cut_and_escaped() {
        let read = Lines::read(&line("one", "\u{1b}[2J\u{9b}31mok\rdone"));
        let [check] = &read.checks[..] else { panic!("one check") };
        let shown = "\\u{1b}[2J\\u{9b}31mok\\rdone";
        assert_eq!((check.detail.as_str(), check.hint.as_deref()), (shown, Some(shown)));
        assert_eq!(check.measured, BTreeMap::from([(shown.to_owned(), shown.to_owned())]));
        assert!(!check.required, "a report requires nothing");
        let long = Lines::read(&line("one", &"x".repeat(10_000)));
        assert!(long.checks[0].detail.ends_with("(… 6000 more characters)"), "{}", long.checks[0].detail);
        let values = &long.checks[0].measured;
        assert!(values.iter().all(|(name, value)| name.len() < 110 && value.len() < 1_010), "{values:?}");
        let many = Lines::read(&line("one", &"x\n".repeat(1_000)));
        assert_eq!(many.checks[0].detail.lines().count(), TEXT.lines + 1);
    }

    #[test]
    fn line_without_a_name_is_none() {
        for id in ["", "one\n", "one two", "\u{1b}[31mone", "ok  gemm", &"x".repeat(101)] {
            assert!(Lines::read(&line(id, "fine")).checks.is_empty(), "{id:?}");
        }
        assert!(Lines::read(&line("one", "fine").replace("\"gpu\"", "\"g p\"")).checks.is_empty());
        assert_eq!(Lines::read(&line("check:own-1", "fine")).checks.len(), 1);
    }

    #[test]
    fn report_out_of_bounds_is_noticed() {
        let good = line("one", "fine");
        assert_eq!(Lines::read(&good).excess, None);
        let many = format!("{good}\n").repeat(MOST_CHECKS + 500);
        let read = Lines::read(&many);
        assert_eq!(
            (read.checks.len(), read.excess.as_deref()),
            (MOST_CHECKS, Some("it has more than 1000 checks"))
        );
        let long = Lines::read(&line("one", &"x".repeat(LONGEST_LINE)));
        assert_eq!(long.excess.as_deref(), Some("a line of it has more than 64 KiB"));
        assert!(long.checks.is_empty());
    }

    #[test]
    fn seconds_of_a_report_are_plausible() {
        let seconds = |text: &str| Lines::read(&format!("{{\"done\":true,\"seconds\":{text}}}")).seconds;
        assert_eq!(
            (seconds("1.25"), seconds("-1"), seconds("1e308")),
            (Some(1.25), Some(0.0), Some(MOST_SECONDS))
        );
        assert_eq!(seconds("\"x\""), None);
    }
}

//! `doctor --explain`: the known errors in a message or a log, with the lines that contain them.

use std::io::{Error, Read as _};

use serde::Serialize;

use super::this_machine::ThisMachine;
use crate::failure::{Exit, reason};
use crate::host::Severity;
use crate::model::diagnosis::{Diagnosis, Finding, Findings, findings};
use crate::model::typed_path::looks_like_path;
use crate::model::visible::visible_line;
use crate::model::wrap::{hanging, wrapped};
use crate::report::Printer;
use crate::settings::Settings;
use crate::store::read_regular;
use crate::workflow::error::CommandError;

/// Characters of a line that are shown.
const SHOWN: usize = 160;

/// JSON output of `doctor --explain`.
#[derive(Serialize)]
struct Explanation {
    schema: u32,
    findings: Vec<Explained>,
    lines: Vec<MarkedLine>,
}

/// A known error of a text.
#[derive(Serialize)]
struct Explained {
    id: &'static str,
    severity: Severity,
    text: String,
    hint: String,
    /// `cause` for the first error of a text, `consequence` for later ones.
    role: &'static str,
    /// Its first line, from 1.
    line: usize,
    /// Whether the text shows that a fix was tried, so that `hint` is the next one.
    tried: bool,
    /// What this machine has of what the fix depends on.
    #[serde(skip_serializing_if = "Option::is_none")]
    here: Option<String>,
    source: &'static str,
}

/// A line of a log that contains a known error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct MarkedLine {
    /// Its number, from 1.
    line: usize,
    /// The id of the error.
    id: &'static str,
    text: String,
}

/// A log is at most this long, bytes; of a longer one give the end: `tail -n 10000 LOG | envforge doctor --explain -`.
const LARGEST_LOG: u64 = 256 << 20;

/// Explains a text, the file that it names, or standard input for `-`.
pub(super) fn explain(text: &str, settings: &Settings) -> Result<Exit, CommandError> {
    let output = settings.output;
    let path = settings.paths.current_dir.join(text);
    let bytes = if text == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes)?;
        bytes
    } else if !text.contains(char::is_whitespace) && (is_log(text) || path.is_file()) {
        let named =
            |error: Error| Error::new(error.kind(), format!("cannot read `{text}`: {}", reason(&error)));
        read_regular(&path, LARGEST_LOG).map_err(named)?
    } else {
        text.as_bytes().to_vec()
    };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let found = findings(&text);
    let lines = if text.trim_end().contains('\n') { marked_lines(&text, &found) } else { Vec::new() };
    let machine = ThisMachine::new(&settings.matrix);
    let here = |finding: &Finding| machine.has(finding.diagnosis.id);
    if output.json {
        let errors = found.errors.iter().enumerate();
        let findings = errors.map(|(at, finding)| explained(at, finding, here(finding))).collect();
        Printer.json(&Explanation { schema: 1, findings, lines });
    } else if found.errors.is_empty() {
        Printer.say("no known error found in this text; run `envforge doctor` to check this machine");
    } else {
        Printer.text(&wrapped(&report(&found.errors, &lines, &here), output.width));
    }
    Ok(if found.errors.is_empty() { Exit::No } else { Exit::Done })
}

/// Whether a word is the path of a log, there or not, rather than a message.
fn is_log(word: &str) -> bool {
    looks_like_path(word) || [".log", ".out", ".err"].iter().any(|end| word.ends_with(end))
}

fn marked_lines(text: &str, found: &Findings) -> Vec<MarkedLine> {
    let shown = |line: &str| visible_line(line.trim_end()).chars().take(SHOWN).collect();
    let all: Vec<&str> = text.lines().collect();
    let marked = |(line, id): &(usize, &'static str)| {
        Some(MarkedLine { line: *line, id, text: shown(all.get(line.checked_sub(1)?)?) })
    };
    found.lines.iter().filter_map(marked).collect()
}

fn explained(at: usize, finding: &Finding, here: Option<String>) -> Explained {
    let Diagnosis { id, what, why, cure, source } = &finding.diagnosis;
    Explained {
        id,
        severity: Severity::Error,
        text: format!("{what}: {why}"),
        hint: cure.clone(),
        role: if at == 0 { "cause" } else { "consequence" },
        line: finding.line,
        tried: finding.has_tried,
        here,
        source,
    }
}

/// The marked lines, then each error with its cause and fix; `here`: what this machine has of what the fix depends on.
fn report(found: &[Finding], lines: &[MarkedLine], here: &dyn Fn(&Finding) -> Option<String>) -> String {
    let widest = lines.iter().map(|line| line.id.len()).max().unwrap_or_default();
    let line = |MarkedLine { line, id, text }: &MarkedLine| format!("line {line:<6} {id:widest$}  {text}\n");
    let lines: String = lines.iter().map(line).collect();
    let first = found.first().map(|finding| (finding.diagnosis.id, finding.line));
    let blocks = found.iter().enumerate().map(|(at, finding)| {
        block(finding, first.filter(|_| at > 0), found.len() > 1, here(finding).as_deref())
    });
    Some(lines).into_iter().filter(|lines| !lines.is_empty()).chain(blocks).collect::<Vec<_>>().join("\n")
}

/// An error with its cause and fix; `first`: the earlier error that it may follow from.
fn block(
    finding: &Finding,
    first: Option<(&str, usize)>,
    is_one_of_several: bool,
    here: Option<&str>,
) -> String {
    let Diagnosis { id, what, why, cure, source } = &finding.diagnosis;
    let order = match first {
        Some((id, line)) => {
            Some(format!("a consequence of `{id}` (line {line}), or independent of it: fix that first"))
        }
        None if is_one_of_several => {
            Some("the first error of the text: the cause, of which the others are consequences".to_owned())
        }
        None => None,
    };
    let cure_head =
        if finding.has_tried { "next cure (the text shows that the first was tried)" } else { "cure" };
    let facts = [
        ("why", Some(why.as_str())),
        ("order", order.as_deref()),
        (cure_head, Some(cure)),
        ("this machine", here),
        ("seen in", Some(source)),
    ];
    let facts = facts.into_iter().filter_map(|(head, text)| Some(hanging(&format!("  {head}: "), text?)));
    hanging(&format!("{id}: "), what) + &facts.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "step 1\nFailed to initialize NVML: Unknown Error\nretry\nFailed to initialize NVML: Unknown Error\n\
                       RuntimeError: CUDA error: no kernel image is available for execution on the device\n";

    #[test]
    fn log_lists_each_error_once() {
        let ids: Vec<_> = findings(LOG).errors.iter().map(|finding| finding.diagnosis.id).collect();
        assert_eq!(ids, ["gpu-lost", "no-code-for-gpu"]);
        assert!(findings("everything is fine").errors.is_empty());
    }

    #[test]
    fn log_has_every_line_with_an_error_marked() {
        let marks = |log: &str| marked_lines(log, &findings(log));
        let marked: Vec<_> = marks(LOG).into_iter().map(|line| (line.line, line.id)).collect();
        assert_eq!(marked, [(2, "gpu-lost"), (4, "gpu-lost"), (5, "no-code-for-gpu")]);
        let hostile = marks("\u{1b}]0;owned\u{7} Failed to initialize NVML: Unknown Error\nx\n");
        assert!(!hostile[0].text.contains('\u{1b}'), "{hostile:?}");
        assert!(
            report(&findings(LOG).errors, &marks(LOG), &|_| None)
                .starts_with("line 2      gpu-lost         Failed")
        );
    }

    #[test]
    fn later_error_is_a_consequence_of_the_first() {
        let found = findings(LOG).errors;
        assert_eq!(explained(0, &found[0], None).role, "cause");
        assert_eq!(explained(1, &found[1], None).role, "consequence");
        let text = report(&found, &[], &|_| None);
        assert!(text.contains("a consequence of `gpu-lost` (line 2)"), "{text}");
        assert!(!report(&found[..1], &[], &|_| None).contains("order: "), "one error has no order");
    }

    #[test]
    fn fact_of_this_machine_stands_below_the_fix() {
        let found = findings(LOG).errors;
        let text = report(&found[1..], &[], &|_| Some("NVIDIA H200 (sm_90)".to_owned()));
        let (cure, here) = (text.find("  cure: "), text.find("  this machine: NVIDIA H200 (sm_90)\n"));
        assert!(cure.is_some() && here > cure, "{text}");
    }
}

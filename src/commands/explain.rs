//! `doctor --explain`: the known errors in a message or a log, with the lines that contain them.

use std::collections::BTreeSet;
use std::io::Read as _;

use serde::Serialize;

use crate::failure::Exit;
use crate::host::{HostFinding, Severity};
use crate::model::diagnosis::{Diagnosis, diagnose};
use crate::model::visible::visible_line;
use crate::model::wrap::{hanging, wrapped};
use crate::report::Printer;
use crate::settings::Output;
use crate::workflow::error::CommandError;

/// Characters of a line that are shown.
const SHOWN: usize = 160;

/// JSON output of `doctor --explain`.
#[derive(Serialize)]
struct Explanation {
    schema: u32,
    findings: Vec<HostFinding>,
    lines: Vec<MarkedLine>,
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

/// Explains a text, or standard input for `-`.
pub(super) fn explain(text: &str, output: Output) -> Result<Exit, CommandError> {
    let mut text = text.to_owned();
    if text == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes)?;
        text = String::from_utf8_lossy(&bytes).into_owned();
    }
    let found = known_errors(&text);
    let lines = if text.trim_end().contains('\n') { marked_lines(&text) } else { Vec::new() };
    if output.json {
        let findings = found.iter().map(finding).collect();
        Printer.json(&Explanation { schema: 1, findings, lines });
    } else if found.is_empty() {
        Printer.say("no known error found in this text; run `envforge doctor` to check this machine");
    } else {
        Printer.text(&wrapped(&report(&found, &lines), output.width));
    }
    Ok(if found.is_empty() { Exit::No } else { Exit::Done })
}

/// The known errors in a text, each once: line by line first, since a log holds many.
fn known_errors(text: &str) -> Vec<Diagnosis> {
    let mut seen = BTreeSet::new();
    let lines = text.lines().filter_map(diagnose).chain(diagnose(text));
    lines.filter(|finding| seen.insert(finding.id)).collect()
}

fn marked_lines(text: &str) -> Vec<MarkedLine> {
    let shown = |line: &str| visible_line(line.trim_end()).chars().take(SHOWN).collect();
    let marked =
        |(at, line)| diagnose(line).map(|known| MarkedLine { line: at + 1, id: known.id, text: shown(line) });
    text.lines().enumerate().filter_map(marked).collect()
}

fn finding(found: &Diagnosis) -> HostFinding {
    HostFinding {
        id: found.id,
        severity: Severity::Error,
        text: format!("{}: {}", found.what, found.why),
        hint: Some(found.cure.to_owned()),
    }
}

/// The marked lines, then each error with its cause and fix.
fn report(found: &[Diagnosis], lines: &[MarkedLine]) -> String {
    let widest = lines.iter().map(|line| line.id.len()).max().unwrap_or_default();
    let line = |MarkedLine { line, id, text }: &MarkedLine| format!("line {line:<6} {id:widest$}  {text}\n");
    let lines: String = lines.iter().map(line).collect();
    let block = |found: &Diagnosis| {
        let Diagnosis { id, what, why, cure, source } = found;
        let facts = [("why", why), ("cure", cure), ("seen in", source)];
        let facts = facts.map(|(head, text)| hanging(&format!("  {head}: "), text)).concat();
        hanging(&format!("{id}: "), what) + &facts
    };
    let blocks = found.iter().map(block);
    Some(lines).into_iter().filter(|lines| !lines.is_empty()).chain(blocks).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "step 1\nFailed to initialize NVML: Unknown Error\nretry\nFailed to initialize NVML: Unknown Error\n\
                       RuntimeError: CUDA error: no kernel image is available for execution on the device\n";

    #[test]
    fn log_lists_each_error_once() {
        let ids: Vec<_> = known_errors(LOG).iter().map(|finding| finding.id).collect();
        assert_eq!(ids, ["gpu-lost", "no-code-for-gpu"]);
        assert!(known_errors("everything is fine").is_empty());
    }

    #[test]
    fn log_has_every_line_with_an_error_marked() {
        let marked: Vec<_> = marked_lines(LOG).into_iter().map(|line| (line.line, line.id)).collect();
        assert_eq!(marked, [(2, "gpu-lost"), (4, "gpu-lost"), (5, "no-code-for-gpu")]);
        let hostile = marked_lines("\u{1b}]0;owned\u{7} Failed to initialize NVML: Unknown Error\nx\n");
        assert!(!hostile[0].text.contains('\u{1b}'), "{hostile:?}");
        assert!(
            report(&known_errors(LOG), &marked_lines(LOG)).starts_with("line 2      gpu-lost         Failed")
        );
    }
}

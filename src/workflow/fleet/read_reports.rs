//! Reports in files: logs with the lines of launchers, what an agent printed, `verify --json` of a node.

use std::io::{BufRead, BufReader, Read as _};

use camino::{Utf8Path, Utf8PathBuf};
use envforge_protocol::{AGENT, field};
use serde::Deserialize;

use super::error::FleetError;
use jiff::Timestamp;

use crate::fleet::{Heard, NodeLine, NodeLog, NodeReport, Outcome, Place};
use crate::model::image::info::ImageInfo;
use crate::model::verdict::{ImageExpectations, Verdict, bounded_report, judge};
use crate::report::{Event, Reporter};
use crate::store::open_regular;

/// The most bytes of a file, and of one that is read as one JSON object.
const LARGEST: u64 = 512 << 20;
const LARGEST_OBJECT: u64 = 32 << 20;
/// The most files of a call.
const MOST_FILES: usize = 100_000;
/// Pieces of a line that is longer.
const PIECE: usize = 64 << 10;
/// Lines for which a thread is worth its start.
const LEAST_SHARE: usize = 64;

/// Reads the reports of files and of the files of directories. `expected`: what a report is held to.
pub(crate) fn read_reports(
    paths: &[Utf8PathBuf],
    folder: &Utf8Path,
    expected: &ImageExpectations,
    reporter: &dyn Reporter,
) -> Result<Vec<Heard>, FleetError> {
    let mut heard = Vec::new();
    for typed in paths {
        let path = folder.join(typed);
        let error = |cause| FleetError::File { file: typed.to_string(), cause };
        if !fs_err::metadata(&path).map_err(error)?.is_dir() {
            heard.extend(read_file(&path, expected).map_err(error)?);
            continue;
        }
        let files = files_of(&path).map_err(error)?;
        if files.is_empty() {
            return Err(FleetError::Empty { folder: typed.to_string() });
        }
        for file in files {
            // One that cannot be read says nothing about the others.
            match read_file(&file, expected) {
                Ok(found) => heard.extend(found),
                Err(cause) => reporter.report(Event::Warning { text: format!("skipping report: {cause}") }),
            }
        }
    }
    Ok(heard)
}

/// The files of a directory by name, without hidden ones and directories.
fn files_of(folder: &Utf8Path) -> std::io::Result<Vec<Utf8PathBuf>> {
    let mut files = Vec::new();
    for entry in fs_err::read_dir(folder)?.take(MOST_FILES) {
        let Ok(path) = Utf8PathBuf::from_path_buf(entry?.path()) else { continue };
        let is_hidden = path.file_name().is_some_and(|name| name.starts_with('.'));
        if !is_hidden && !path.is_dir() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// What `verify --json` prints for several images.
#[derive(Deserialize)]
struct Several {
    reports: Vec<serde::de::IgnoredAny>,
}

/// What was heard in one file; a file without a report is a node that gave none.
fn read_file(path: &Utf8Path, expected: &ImageExpectations) -> std::io::Result<Vec<Heard>> {
    let source = path.file_stem().unwrap_or_default().to_owned();
    let silent = |why: &str| {
        let outcome = Outcome::Silent { stage: None, why: why.to_owned() };
        vec![Heard { asked: None, source: source.clone(), gpus: None, outcome }]
    };
    let file = open_regular(path)?;
    let size = file.metadata()?.len();
    if size > LARGEST {
        return Ok(silent(&format!("the file is larger than {} MiB", LARGEST >> 20)));
    }
    let mut reader = BufReader::new(file.take(LARGEST));
    if size > LARGEST_OBJECT {
        let (heard, _) = read_lines(reader, &source, expected, false)?;
        return Ok(if heard.is_empty() { silent("no report in its file") } else { heard });
    }
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    if bytes.trim_ascii_start().starts_with(b"{") {
        if let Ok(verdict) = serde_json::from_slice::<Verdict>(&bytes) {
            let outcome = Outcome::Verdict(Box::new(bounded_report(verdict)));
            return Ok(vec![Heard { asked: None, source, gpus: None, outcome }]);
        }
        if let Ok(Several { reports }) = serde_json::from_slice::<Several>(&bytes) {
            return Ok(silent(&format!("its file has reports of {} images, not of one", reports.len())));
        }
    }
    let (heard, of_agent) = read_lines(bytes.as_slice(), &source, expected, true)?;
    if heard.is_empty() && !of_agent.is_empty() {
        let verdict = judge(&of_agent, "the file ends there", &ImageInfo::default(), expected);
        let is_whole =
            !verdict.checks.iter().any(|check| check.id == envforge_protocol::CheckId::Agent.as_str());
        if is_whole {
            return Ok(vec![Heard {
                asked: None,
                source,
                gpus: None,
                outcome: Outcome::Verdict(Box::new(verdict)),
            }]);
        }
        return Ok(silent("the agent's report in its file is cut"));
    }
    Ok(if heard.is_empty() { silent("no report in its file") } else { heard })
}

/// Reads lines of launchers, and those of an agent that printed into the file itself.
fn read_lines(
    mut reader: impl BufRead,
    source: &str,
    expected: &ImageExpectations,
    keeps_agent: bool,
) -> std::io::Result<(Vec<Heard>, String)> {
    let (mut log, mut found, mut of_agent) = (NodeLog::default(), Vec::new(), String::new());
    let header = format!("\"{}\":\"{AGENT}\"", field::AGENT);
    let (mut line, mut has_header) = (Vec::new(), false);
    loop {
        line.clear();
        if (&mut reader).take(PIECE as u64).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        has_header |= text.starts_with('{') && text.contains(&header);
        if keeps_agent && has_header {
            of_agent.push_str(text);
            of_agent.push('\n');
        }
        found.extend(log.push(text).into_iter().map(|(_, line)| line));
    }
    found.extend(log.finish().into_iter().map(|(_, line)| line));
    Ok((heard_of_all(found, source, expected), of_agent))
}

/// What lines say of their nodes, in the same order. Judging them takes most of the time: a log of a whole cluster has all processors.
fn heard_of_all(mut lines: Vec<NodeLine>, source: &str, expected: &ImageExpectations) -> Vec<Heard> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let share = lines.len().div_ceil(cores).max(LEAST_SHARE);
    let mut shares = Vec::new();
    while lines.len() > share {
        let rest = lines.split_off(share);
        shares.push(std::mem::replace(&mut lines, rest));
    }
    let judge = |lines: Vec<NodeLine>| -> Vec<Heard> {
        lines.into_iter().map(|line| heard_of(line, source, expected)).collect()
    };
    let judge = &judge;
    std::thread::scope(|scope| {
        let threads: Vec<_> = shares.into_iter().map(|lines| scope.spawn(move || judge(lines))).collect();
        let last = judge(lines);
        let joined = threads.into_iter().flat_map(|thread| match thread.join() {
            Ok(heard) => heard,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.chain(last).collect()
    })
}

/// What a line says of its node: a report, or how far it came, which a report that follows replaces.
fn heard_of(line: NodeLine, source: &str, expected: &ImageExpectations) -> Heard {
    let of_place = |place: &Place| {
        let known = [&place.node, &place.host].into_iter().find(|name| !name.is_empty());
        known.map_or_else(|| source.to_owned(), Clone::clone)
    };
    let (source, outcome) = match line {
        NodeLine::Stage(place, stage) => {
            (of_place(&place), Outcome::Silent { stage: Some(stage), why: "its log ends".to_owned() })
        }
        NodeLine::Damaged { place, why } => {
            (of_place(&place), Outcome::Silent { stage: None, why: format!("damaged report: {why}") })
        }
        NodeLine::Report(report) => (source.to_owned(), judged(report, expected)),
    };
    Heard { asked: None, source, gpus: None, outcome }
}

/// A report with its verdict.
pub(crate) fn judged(mut report: Box<NodeReport>, expected: &ImageExpectations) -> Outcome {
    let end = format!("agent exited with code {}", report.code);
    // Of a thousand nodes the verdicts are enough.
    let lines = std::mem::take(&mut report.lines);
    let mut verdict = judge(&lines, &end, &ImageInfo::default(), expected);
    verdict.level.clone_from(&report.level);
    // By the node's clock.
    verdict.checked = Timestamp::from_second(report.began).map(|time| time.to_string()).unwrap_or_default();
    Outcome::Report(report, Box::new(verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many threads judge them, reports keep their order: of two of one node the later one counts.
    #[test]
    fn lines_are_judged_in_their_order() {
        let line = |number: i64| NodeLine::Damaged {
            place: Place { node: format!("node{number}"), ..Place::default() },
            why: "the line is cut",
        };
        let lines: Vec<NodeLine> = (0..1_000).map(line).collect();
        let heard = heard_of_all(lines, "log", &ImageExpectations::default());
        let names: Vec<String> = heard.into_iter().map(|heard| heard.source).collect();
        assert_eq!(names, (0..1_000).map(|number| format!("node{number}")).collect::<Vec<_>>());
    }
}

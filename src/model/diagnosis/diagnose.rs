//! Chooses among the rows that a text matches: a specific one before a general one, the first fault as the cause of later ones, and
//! a fix that was not tried.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::{Diagnosis, KnownError};
use super::general::{generality, is_note};
use super::index::{Match, matches};
use super::log::Log;
use super::range::is_in_reach;
use super::status;
use super::tried::is_tried;
use super::values::{Values, stated_gpu};

/// Lines within which a specific row stands for a general one.
const NEAR: usize = 200;
/// Lines of a text that is about one message.
const ABOUT_ONE: usize = 4;
/// Lines before and after a fault whose versions and names belong to it.
const AROUND: usize = 12;
/// How general a line of the level INFO is before an error: more than anything else.
const COURSE: u8 = u8::MAX;
/// The fix after all others.
const ALL_TRIED: &str = "the text shows that the known fixes were tried: compare versions with `envforge plan {spec|SPEC}`, and attach \
                         `envforge doctor --report` when you ask others";

/// A known error in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The diagnosis.
    pub diagnosis: Diagnosis,
    /// Its first line, from 1.
    pub line: usize,
    /// Whether the text shows that a fix was tried.
    pub has_tried: bool,
}

/// The known errors of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Each error once, the cause first.
    pub errors: Vec<Finding>,
    /// Lines, from 1, and the id of the error in each.
    pub lines: Vec<(usize, &'static str)>,
}

/// What a line contains.
struct Hit {
    line: usize,
    id: &'static str,
    /// The place in the table; statuses by name come last.
    rank: usize,
    values: Values,
    known: Known,
}

/// What is known of it.
enum Known {
    Row(&'static KnownError),
    Status(Diagnosis),
}

/// Returns the diagnosis of a text, if it is known.
pub fn diagnose(text: &str) -> Option<Diagnosis> {
    findings(text).errors.into_iter().next().map(|finding| finding.diagnosis)
}

/// Returns the known errors of a text.
pub fn findings(text: &str) -> Findings {
    let log = Log::new(text);
    let mut hits = hits(&log);
    if log.lines() > ABOUT_ONE && hits.iter().all(|hit| is_note(hit.id)) {
        hits.clear();
    }
    let lines = hits.iter().map(|hit| (hit.line + 1, hit.id)).collect();
    let last_error = hits.iter().map(|hit| hit.line).filter(|line| !log.is_info(*line)).max();
    let level_of = |hit: &Hit| {
        let is_course = log.is_info(hit.line) && last_error.is_some_and(|line| hit.line < line);
        if is_course { COURSE } else { generality(hit.id) }
    };
    let levels: Vec<(u8, usize)> = hits.iter().map(|hit| (level_of(hit), hit.line)).collect();
    let mut seen = BTreeSet::new();
    let mut errors = Vec::new();
    for hit in &hits {
        let own = level_of(hit);
        // A line that healthy programs print too is not the cause of an error, however far away.
        let near = if is_note(hit.id) || own == COURSE { usize::MAX } else { NEAR };
        let is_reason = |(level, line): &(u8, usize)| *level < own && line.abs_diff(hit.line) <= near;
        if (own > 0 && levels.iter().any(is_reason)) || !seen.insert(hit.id) {
            continue;
        }
        errors.push(finding(hit, &log));
    }
    Findings { errors, lines }
}

/// Returns the best hit of each line.
fn hits(log: &Log) -> Vec<Hit> {
    let mut best: BTreeMap<usize, Match> = BTreeMap::new();
    for found in matches(log).into_iter().filter(|found| !is_in_reach(found, log)) {
        let line = log.line_of(found.place);
        let is_better = |other: &Match| {
            found.rank < other.rank || found.rank == other.rank && found.values.len() > other.values.len()
        };
        if best.get(&line).is_none_or(is_better) {
            best.insert(line, found);
        }
    }
    let gpu = stated_gpu(log.lower());
    let mut all: Vec<Hit> =
        best.into_iter().map(|(line, found)| of_row(line, &found, log, gpu.as_deref())).collect();
    let taken: BTreeSet<usize> = all.iter().map(|hit| hit.line).collect();
    for line in (0..log.lines()).filter(|line| !taken.contains(line)) {
        let (start, end) = log.line(line);
        if let Some(known) = status::named_in(&log.lower()[start..end]) {
            let (id, rank) = (known.id, usize::MAX);
            all.push(Hit { line, id, rank, values: Values::default(), known: Known::Status(known) });
        }
    }
    all.sort_by_key(|hit| (hit.line, hit.rank));
    all
}

fn of_row(line: usize, found: &Match, log: &Log, gpu: Option<&str>) -> Hit {
    let mut values = Values::default();
    for (name, start, end) in &found.values {
        let value = log.text()[*start..*end].trim_matches(|c: char| "'\"()[]<>,;:!`".contains(c));
        values.set(name, value);
    }
    let (from, _) = log.line(line.saturating_sub(AROUND));
    let (_, to) = log.line((line + AROUND).min(log.lines().saturating_sub(1)));
    let (start, end) = log.line(line);
    let (before, after) = (&log.text()[from..start], &log.text()[start..to]);
    values.set("found", library_in(&log.text()[found.place..end]).unwrap_or_default());
    // The line itself and what follows count before what stands above it.
    values.derive(&format!("{after}\n{before}"), &format!("{before}\n{}", &log.text()[start..found.place]));
    values.set("gpu", gpu.unwrap_or_default());
    Hit { line, id: found.row.id, rank: found.rank, values, known: Known::Row(found.row) }
}

/// Returns the first library in a text: `libcudnn_ops.so.9` of `Unable to load any of {libcudnn_ops.so.9, libcudnn_ops.so}`.
fn library_in(text: &str) -> Option<&str> {
    let words = text.split(|c: char| c == ' ' || "'\"{}()[]<>,;".contains(c));
    let mut named = words.map(|word| word.trim_end_matches([':', '.']));
    let is_library = |word: &&str| {
        let is_prose = ["lib", "libs", "library", "libraries"].contains(word);
        word.contains(".so") || word.starts_with("lib") && !is_prose
    };
    named.find(is_library)
}

fn finding(hit: &Hit, log: &Log) -> Finding {
    let line = hit.line + 1;
    let row = match &hit.known {
        Known::Row(row) => row,
        Known::Status(known) => return Finding { diagnosis: known.clone(), line, has_tried: false },
    };
    let cures: Vec<_> = row.cures.iter().filter(|cure| hit.values.allow(cure)).collect();
    let cure = cures.iter().find(|cure| !is_tried(cure, log));
    let has_tried = cure != cures.first();
    let diagnosis = row.filled(cure.map_or(ALL_TRIED, |cure| **cure), &hit.values);
    Finding { diagnosis, line, has_tried }
}

//! The form of a row, and how a text is matched with the rows.

use serde::Serialize;

use super::{containers, cuda, libraries, several_gpus, start, status, wsl};

/// One known failure.
#[derive(Debug)]
pub struct Entry {
    /// Its stable id.
    pub id: &'static str,
    /// What stands in the text, in any case: one of these, each a list of parts that must all be there, in that order.
    pub texts: &'static [&'static [&'static str]],
    /// What happened.
    pub what: &'static str,
    /// Why.
    pub why: &'static str,
    /// What to do.
    pub cure: &'static str,
    /// Where it was met or is written.
    pub source: &'static str,
}

/// A failure that was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its stable id: `driver-too-old`.
    pub id: &'static str,
    /// What happened.
    pub what: &'static str,
    /// Why.
    pub why: &'static str,
    /// What to do.
    pub cure: &'static str,
    /// Where it was met or is written.
    pub source: &'static str,
}

impl Finding {
    /// Why and what to do in one line, for a hint below the text that was recognised.
    pub fn hint(&self) -> String {
        format!("{}; {}", self.why, self.cure)
    }
}

impl From<&Entry> for Finding {
    fn from(entry: &Entry) -> Self {
        let Entry { id, what, why, cure, source, .. } = *entry;
        Self { id, what, why, cure, source }
    }
}

/// All rows, the specific ones before those whose words are part of theirs.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    wsl::ENTRIES
        .iter()
        .chain(start::ENTRIES)
        .chain(several_gpus::ENTRIES)
        .chain(containers::ENTRIES)
        .chain(libraries::ENTRIES)
        .chain(cuda::ENTRIES)
}

/// The failure that a text tells of, if it is a known one.
pub fn diagnose(text: &str) -> Option<Finding> {
    let text = text.to_ascii_lowercase();
    let known = entries().find(|entry| entry.texts.iter().any(|parts| in_order(&text, parts)));
    known.map(Finding::from).or_else(|| status::named_in(&text))
}

/// True if the parts stand in the text one after the other. The text is in lower case.
fn in_order(text: &str, parts: &[&str]) -> bool {
    let mut rest = text;
    parts.iter().all(|part| match rest.find(&part.to_ascii_lowercase()) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

//! Matches texts with rows.

use super::entry::Diagnosis;
use super::status;
use super::table::entries;

/// Returns the diagnosis of a text, if it is known.
pub fn diagnose(text: &str) -> Option<Diagnosis> {
    let text = text.to_ascii_lowercase();
    let known = entries().find(|entry| entry.texts.iter().any(|parts| in_order(&text, parts)));
    known.map(Diagnosis::from).or_else(|| status::named_in(&text))
}

/// Whether the text contains the parts in this order. The text is in lower case.
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

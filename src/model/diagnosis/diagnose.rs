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
    parts.iter().all(|part| match end_of(rest, &part.to_ascii_lowercase()) {
        Some(end) => {
            rest = &rest[end..];
            true
        }
        None => false,
    })
}

/// Returns where the first place of a part in a text ends.
fn end_of(text: &str, part: &str) -> Option<usize> {
    let head = part.split('*').next().unwrap_or_default();
    text.match_indices(head).find_map(|(at, _)| Some(at + at_start(&text[at..], part)?))
}

/// Returns where a part that the text begins with ends.
fn at_start(text: &str, part: &str) -> Option<usize> {
    let (head, tail) = part.split_once('*').map_or((part, None), |(head, tail)| (head, Some(tail)));
    let rest = text.strip_prefix(head)?;
    let Some(tail) = tail else { return Some(head.len()) };
    let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let mut starts = (0..=word).filter(|place| rest.is_char_boundary(*place));
    starts.find_map(|place| Some(head.len() + place + at_start(&rest[place..], tail)?))
}

//! Patterns of rows. A part is text in any case and any quotes. In it `*` is any text without a blank, `{name}` such text that is kept
//! as a value, `{name#}` a version or number that is kept. `^` before it: at the start of a line; `$` behind it: at its end; `~` before
//! or behind it: not within a word.

use super::log::{Log, plain};

/// A piece of a part.
#[derive(Debug, PartialEq)]
enum Piece {
    Literal(String),
    /// Any text without a blank; the name it is kept under, and whether it is a number.
    Any {
        name: Option<&'static str>,
        is_number: bool,
    },
}

/// One part.
#[derive(Debug)]
struct Part {
    pieces: Vec<Piece>,
    before: Edge,
    behind: Edge,
}

/// The character that a part asks for before or behind it.
#[derive(Debug, PartialEq)]
enum Edge {
    Any,
    /// None: the line ends there.
    Line,
    /// None of a word.
    Word,
}

/// A pattern of a row.
#[derive(Debug)]
pub(super) struct Pattern {
    /// The value before the first text.
    leading: Option<&'static str>,
    parts: Vec<Part>,
}

/// Values that a pattern found: name and place in the text.
pub(super) type Found = Vec<(&'static str, usize, usize)>;

impl Pattern {
    pub(super) fn new(parts: &[&'static str]) -> Self {
        let mut parts: Vec<Part> = parts.iter().map(|part| Part::new(part)).collect();
        let mut leading = None;
        if let Some(first) = parts.first_mut()
            && let Some(Piece::Any { name, .. }) = first.pieces.first()
        {
            leading = *name;
            first.pieces.remove(0);
        }
        Self { leading, parts }
    }

    /// Returns the text that a match begins with.
    pub(super) fn head(&self) -> &str {
        match self.parts.first().and_then(|part| part.pieces.first()) {
            Some(Piece::Literal(text)) => text,
            _ => "",
        }
    }

    /// Whether a match begins at a place and stays on its line.
    pub(super) fn line_at(&self, log: &Log, place: usize) -> bool {
        self.within(log, place, log.line(log.line_of(place)).1).is_some()
    }

    /// Returns the values of a match that begins at a place.
    pub(super) fn found_at(&self, log: &Log, place: usize) -> Option<Found> {
        self.within(log, place, log.reach(place))
    }

    fn within(&self, log: &Log, place: usize, limit: usize) -> Option<Found> {
        let mut found = Found::new();
        let (first, others) = self.parts.split_first()?;
        let mut at = first.end_at(log, place, limit, &mut found)?;
        for part in others {
            at = part.end_after(log, at, limit, &mut found)?;
        }
        if let Some(name) = self.leading {
            let start = log.text()[..place].rfind(' ').map_or(0, |blank| blank + 1);
            found.push((name, start, place));
        }
        Some(found)
    }
}

impl Part {
    fn new(written: &'static str) -> Self {
        let (before, text) = match written.strip_prefix('^') {
            Some(text) => (Edge::Line, text),
            None => written.strip_prefix('~').map_or((Edge::Any, written), |text| (Edge::Word, text)),
        };
        let (behind, text) = match text.strip_suffix('$') {
            Some(text) => (Edge::Line, text),
            None => text.strip_suffix('~').map_or((Edge::Any, text), |text| (Edge::Word, text)),
        };
        Self { pieces: pieces(text), before, behind }
    }

    /// Returns where the first match after a place ends.
    fn end_after(&self, log: &Log, place: usize, limit: usize, found: &mut Found) -> Option<usize> {
        let Some(Piece::Literal(head)) = self.pieces.first() else {
            return self.end_at(log, place, limit, found);
        };
        let text = log.lower().get(place..limit)?;
        text.match_indices(head.as_str()).find_map(|(at, _)| self.end_at(log, place + at, limit, found))
    }

    /// Returns where a match that begins at a place ends.
    fn end_at(&self, log: &Log, place: usize, limit: usize, found: &mut Found) -> Option<usize> {
        let is_inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_allowed = |edge: &Edge, is_line: bool, next: Option<char>| match edge {
            Edge::Any => true,
            Edge::Line => is_line,
            Edge::Word => !next.is_some_and(is_inside),
        };
        if !is_allowed(&self.before, log.is_start(place), log.lower()[..place].chars().next_back()) {
            return None;
        }
        let kept = found.len();
        let end = end_of(&self.pieces, log.lower().get(..limit)?, place, found);
        let end =
            end.filter(|end| is_allowed(&self.behind, log.is_end(*end), log.lower()[*end..].chars().next()));
        if end.is_none() {
            found.truncate(kept);
        }
        end
    }
}

/// Returns where pieces that begin at a place end.
fn end_of(pieces: &[Piece], text: &str, place: usize, found: &mut Found) -> Option<usize> {
    let Some((piece, others)) = pieces.split_first() else { return Some(place) };
    let rest = text.get(place..)?;
    let (name, is_number) = match piece {
        Piece::Literal(literal) => {
            return rest
                .starts_with(literal.as_str())
                .then(|| end_of(others, text, place + literal.len(), found))?;
        }
        Piece::Any { name, is_number } => (*name, *is_number),
    };
    let word = rest.find(|c: char| c.is_whitespace() || is_number && !c.is_ascii_digit() && c != '.');
    let word = word.unwrap_or(rest.len());
    let least = usize::from(name.is_some());
    let kept = found.len();
    if others.is_empty() {
        let length = rest[..word].trim_end_matches(['.', ',', ';', ':', ')', ']', '\'', '!', '}', '>']).len();
        if length < least {
            return None;
        }
        found.extend(name.map(|name| (name, place, place + length)));
        return Some(place + length);
    }
    for length in (least..=word).filter(|length| rest.is_char_boundary(*length)) {
        found.extend(name.map(|name| (name, place, place + length)));
        if let Some(end) = end_of(others, text, place + length, found) {
            return Some(end);
        }
        found.truncate(kept);
    }
    None
}

/// Splits a part at its wildcards.
fn pieces(text: &'static str) -> Vec<Piece> {
    let mut all = Vec::new();
    let literal = |text: &str| match plain_part(text) {
        text if text.is_empty() => None,
        text => Some(Piece::Literal(text)),
    };
    let mut rest = text;
    while let Some(at) = rest.find(['*', '{']) {
        let (before, after) = rest.split_at(at);
        let (wildcard, next) = match after.strip_prefix('*') {
            Some(next) => (Piece::Any { name: None, is_number: false }, next),
            None => match value(after) {
                Some(value) => value,
                None => break,
            },
        };
        all.extend(literal(before));
        all.push(wildcard);
        rest = next;
    }
    all.extend(literal(rest));
    all
}

/// Reads `{name}` or `{name#}` at the start of a text; other braces are text.
fn value(text: &'static str) -> Option<(Piece, &'static str)> {
    let (name, next) = text.strip_prefix('{')?.split_once('}')?;
    let (bare, is_number) = name.strip_suffix('#').map_or((name, false), |bare| (bare, true));
    let is_name = !bare.is_empty() && bare.bytes().all(|b| b.is_ascii_lowercase());
    is_name.then_some((Piece::Any { name: Some(bare), is_number }, next))
}

/// Returns a literal as [`Log`] writes texts, blanks at its ends kept.
fn plain_part(text: &str) -> String {
    let blank = |is: bool| if is { " " } else { "" };
    let inner = plain(text);
    if inner.is_empty() {
        return blank(!text.is_empty()).to_owned();
    }
    format!("{}{inner}{}", blank(text.starts_with(' ')), blank(text.ends_with(' '))).to_ascii_lowercase()
}

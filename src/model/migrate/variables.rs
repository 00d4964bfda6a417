//! Variables in texts of Dockerfiles and compose files: `$NAME`, `${NAME}`, `${NAME:-default}`.

use std::collections::BTreeMap;

/// A value that variables fill in is at most this long, bytes.
const LARGEST: usize = 64 << 10;

/// Fills in the variables of a text as far as they are known or have a default; others stay as they are written.
pub(super) fn filled(text: &str, known: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (name, default, length) = if let Some(inside) = after.strip_prefix('{') {
            let end = inside.find('}').unwrap_or(inside.len());
            let (name, default) = name_and_default(&inside[..end]);
            (name, default, end + 2)
        } else {
            let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
            (&after[..end], None, end)
        };
        let end = (at + 1 + length).min(rest.len());
        match known.get(name).map(String::as_str).or(default) {
            Some(value) if !name.is_empty() => out.push_str(value),
            _ => out.push_str(&rest[at..end]),
        }
        rest = &rest[end..];
        if out.len() > LARGEST {
            return text.to_owned();
        }
    }
    out.push_str(rest);
    out
}

/// The name of the first variable in a text: `TORCH` of `torch==${TORCH}`.
pub(super) fn variable_in(text: &str) -> Option<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = text.split('$').skip(1).map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        &rest[..rest.find(|c: char| !is_part(c)).unwrap_or(rest.len())]
    });
    names.find(|name| !name.is_empty())
}

/// The parts of `NAME:-default` and `NAME-default`. Other operators (`NAME//./-`) have no default.
fn name_and_default(inside: &str) -> (&str, Option<&str>) {
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let parts = inside.split_once('-').map(|(name, default)| (name.trim_end_matches(':'), default));
    match parts.filter(|(name, _)| is_name(name)) {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_ones_and_defaults_are_filled_in() {
        let known = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        for (text, expected) in [
            ("x:$A-${A}", "x:1-1"),
            ("${B:-2.4.1-cuda12.1}", "2.4.1-cuda12.1"),
            ("${B-3}/${A:-9}", "3/1"),
            ("${B}:$C", "${B}:$C"),
            ("${B:?needed}", "${B:?needed}"),
            ("${A//./-}", "${A//./-}"),
            ("cost $", "cost $"),
            ("${A", "1"),
        ] {
            assert_eq!(filled(text, &known), expected, "{text}");
        }
    }
}

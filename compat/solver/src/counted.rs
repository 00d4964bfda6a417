//! Numbers with their noun, as people write them.

use std::fmt::Write as _;

/// Returns `1 change`, `2 changes`, `3 libraries`.
pub fn counted(count: usize, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

/// Things that are named in an error.
const NAMED: usize = 10;

/// Returns things as lines of a list that follows a colon, ten at most: `\n  - one\n  - and 3 more`.
pub fn listed(all: &[String]) -> String {
    let mut text: String = all.iter().take(NAMED).flat_map(|one| ["\n  - ", one]).collect();
    if let Some(more @ 1..) = all.len().checked_sub(NAMED) {
        let _ = write!(text, "\n  - and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        for (count, noun, text) in [
            (0, "change", "0 changes"),
            (1, "change", "1 change"),
            (2, "change", "2 changes"),
            (1, "library", "1 library"),
            (3, "library", "3 libraries"),
        ] {
            assert_eq!(counted(count, noun), text);
        }
    }

    #[test]
    fn ten_are_listed_and_the_others_counted() {
        let all: Vec<String> = (1..=12).map(|number| number.to_string()).collect();
        assert_eq!(listed(&all[..2]), "\n  - 1\n  - 2");
        assert!(listed(&all[..10]).ends_with("\n  - 10"));
        assert!(listed(&all).ends_with("\n  - 10\n  - and 2 more"));
    }
}

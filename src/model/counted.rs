//! Numbers with their noun, as people write them.

/// Returns `1 change`, `2 changes`, `3 libraries`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
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
}

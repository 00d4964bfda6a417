//! `os-release` of a system: assignments as a shell reads them, of which none is run. Format: os-release(5).

use std::collections::BTreeMap;

/// The assignments of a file.
#[derive(Debug)]
pub(crate) struct OsRelease(BTreeMap<String, String>);

impl OsRelease {
    /// Reads the lines that are assignments; others are left out.
    pub(crate) fn parse(text: &str) -> Self {
        let assignment = |line: &str| {
            let (name, value) = line.trim().split_once('=')?;
            let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            is_name.then(|| (name.to_owned(), unquoted(value)))
        };
        Self(text.lines().filter_map(assignment).collect())
    }

    /// The value of a name; an empty one is none.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// What a person calls the system.
    pub(crate) fn pretty_name(&self) -> &str {
        self.get("PRETTY_NAME").or(self.get("ID")).unwrap_or("an unnamed system")
    }

    /// The distribution and those it is like.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &str> {
        self.get("ID").into_iter().chain(self.get("ID_LIKE").unwrap_or_default().split_whitespace())
    }

    /// Whether a value is as os-release(5) wants it of `ID`, `VERSION_ID` and `VERSION_CODENAME`.
    pub(crate) fn is_name(value: &str) -> bool {
        value.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            && value.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c))
    }
}

/// The value of an assignment without its quotes and the backslashes that quote.
fn unquoted(value: &str) -> String {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(literal) = inside('\'') {
        return literal.to_owned();
    }
    let mut text = String::new();
    let mut characters = inside('"').unwrap_or(value).chars();
    while let Some(character) = characters.next() {
        text.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_read_and_not_run() {
        let text = "# a comment\nID=debian\n VERSION_CODENAME='bookworm'\nPRETTY_NAME=\"A \\\"B\\\" $(id)\"\n\
                    ID_LIKE=\"a b\"\nrm -rf /=x\nEMPTY=\nID_TWICE=1\nID_TWICE=2\n";
        let release = OsRelease::parse(text);
        assert_eq!(release.get("VERSION_CODENAME"), Some("bookworm"));
        assert_eq!(release.pretty_name(), "A \"B\" $(id)");
        assert_eq!(release.kinds().collect::<Vec<_>>(), ["debian", "a", "b"]);
        assert_eq!((release.get("EMPTY"), release.get("ID_TWICE")), (None, Some("2")));
        assert_eq!(release.0.len(), 6, "{release:?}");
        assert_eq!(OsRelease::parse("").pretty_name(), "an unnamed system");
    }

    #[test]
    fn names_are_those_of_the_manual() {
        for name in ["bookworm", "22.04", "opensuse-leap", "a_b"] {
            assert!(OsRelease::is_name(name), "{name}");
        }
        for name in ["", "A", "a b", "a/b", "../a", "-a", "a\nb", "$a"] {
            assert!(!OsRelease::is_name(name), "{name}");
        }
    }
}

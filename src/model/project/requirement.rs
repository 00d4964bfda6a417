//! One Python requirement that can be pinned.

use std::str::FromStr as _;

use pep508_rs::{Requirement, VersionOrUrl};

use crate::model::requirement_text::beyond_bounds;

/// Returns the normalized package name of a requirement, or the reason why it cannot be pinned by a hash of the index.
pub fn requirement_name(text: &str) -> Result<String, String> {
    // A path (`./x.whl`) is recognized by its first character, with a shorter message than the parser's.
    let text = text.trim();
    // An address may hold a password and is not repeated.
    let shown = if text.contains("://") { "…" } else { text };
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) || text.contains(['\n', '\r']) {
        return Err(format!("invalid requirement `{shown}` (expected `requests>=2`)"));
    }
    if let Some(why) = beyond_bounds(text) {
        return Err(format!("invalid requirement: {why}"));
    }
    let parsed: Requirement = Requirement::from_str(text).map_err(|error| {
        let why =
            if text.contains("://") { "URL without a name".to_owned() } else { error.message.to_string() };
        format!("invalid requirement `{shown}` (expected `requests>=2`): {}", why.trim_end_matches('.'))
    })?;
    if let Some(VersionOrUrl::Url(_)) = parsed.version_or_url {
        return Err(format!("URL requirements are not supported: `{}`", parsed.name));
    }
    Ok(parsed.name.to_string())
}

/// Returns the normalized name, if the text is exactly one name.
pub fn bare_name(text: &str) -> Result<String, String> {
    let is_name = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if !is_name {
        return Err(format!("invalid Python package name `{text}`"));
    }
    requirement_name(text).map_err(|_| format!("invalid Python package name `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_give_their_normalized_name() {
        for (text, name) in [
            ("requests", "requests"),
            ("Foo.Bar_baz[extra] >= 2, < 3 ; python_version < '3.12'", "foo-bar-baz"),
            ("torchmetrics~=1.4", "torchmetrics"),
        ] {
            assert_eq!(requirement_name(text).as_deref(), Ok(name));
        }
    }

    #[test]
    fn a_bare_name_has_no_version() {
        assert_eq!(bare_name("Foo.Bar_baz").as_deref(), Ok("foo-bar-baz"));
        for text in ["", "foo>=1", "foo bar", "-foo", "https://u:p@h/x"] {
            assert!(bare_name(text).is_err(), "{text}");
        }
    }

    #[test]
    fn requirements_that_cannot_be_pinned_are_rejected() {
        for (text, says) in [
            ("x @ https://host/x.whl", "URL requirements are not supported"),
            ("-e .", "invalid requirement"),
            ("./x.whl", "invalid requirement"),
            ("requests >= ", "invalid requirement"),
            ("requests\nevil", "invalid requirement"),
            ("", "invalid requirement"),
            ("https://u:hunter2@host/x.whl", "invalid requirement"),
        ] {
            let error = requirement_name(text).expect_err(text);
            assert!(error.contains(says) && !error.contains("hunter2"), "{error}");
        }
        // The parser would run out of stack with more of them.
        let nested = format!("a; {}os_name == 'x'{}", "(".repeat(2000), ")".repeat(2000));
        let error = requirement_name(&nested).expect_err("too deep");
        assert!(error.contains("parentheses") && error.len() < 200, "{error}");
    }
}

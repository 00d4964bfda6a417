//! One Python requirement, as it can be pinned.

use std::str::FromStr as _;

use pep508_rs::{Requirement, VersionOrUrl};

/// The normalised name of the package a requirement asks for, or why it cannot be pinned by a hash of the index.
pub fn requirement_name(text: &str) -> Result<String, String> {
    // One with an unnamed address (`./x.whl`) is told by its first sign, in fewer words than the parser's.
    let text = text.trim();
    // An address may hold a password and is not repeated.
    let shown = if text.contains("://") { "…" } else { text };
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) || text.contains(['\n', '\r']) {
        return Err(format!("`{shown}` is not a requirement such as `requests>=2`"));
    }
    let parsed: Requirement = Requirement::from_str(text).map_err(|error| {
        let why = if text.contains("://") { "an address".to_owned() } else { error.message.to_string() };
        format!("`{shown}` is not a requirement such as `requests>=2`: {}", why.trim_end_matches('.'))
    })?;
    if let Some(VersionOrUrl::Url(_)) = parsed.version_or_url {
        return Err(format!(
            "`{}` is wanted from an address of its own: only packages of an index can be pinned",
            parsed.name
        ));
    }
    Ok(parsed.name.to_string())
}

/// The normalised name that a text is, and nothing more.
pub fn bare_name(text: &str) -> Result<String, String> {
    let is_name = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if !is_name {
        return Err(format!("`{text}` is not the name of a Python package"));
    }
    requirement_name(text).map_err(|_| format!("`{text}` is not the name of a Python package"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_give_their_normalised_name() {
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
    fn what_cannot_be_pinned_is_refused_in_words() {
        for (text, says) in [
            ("x @ https://host/x.whl", "address of its own"),
            ("-e .", "not a requirement"),
            ("./x.whl", "not a requirement"),
            ("requests >= ", "not a requirement"),
            ("requests\nevil", "not a requirement"),
            ("", "not a requirement"),
            ("https://u:hunter2@host/x.whl", "not a requirement"),
        ] {
            let error = requirement_name(text).expect_err(text);
            assert!(error.contains(says) && !error.contains("hunter2"), "{error}");
        }
    }
}

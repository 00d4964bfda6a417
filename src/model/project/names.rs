//! The names in a project file.

/// Whether a text is a valid name of a project, environment, index, secret or check: lower-case letters and digits,
/// with single `-`, `_` or `.` between them. Names become part of image names.
pub fn is_name(text: &str) -> bool {
    let inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    let separators = ["..", "--", "__", "._", "_.", "-.", ".-", "-_", "_-"];
    (1..=64).contains(&bytes.len())
        && bytes.iter().all(|b| inside(*b) || b"-_.".contains(b))
        && bytes.first().is_some_and(|b| inside(*b))
        && bytes.last().is_some_and(|b| inside(*b))
        && !separators.iter().any(|pair| text.contains(pair))
}

/// Returns a valid name made from any text, such as a directory name; `None` if no character is usable.
pub(crate) fn name_from(text: &str) -> Option<String> {
    let lower: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let parts: Vec<_> = lower.split('-').filter(|part| !part.is_empty()).collect();
    let name: String = parts.join("-").chars().take(64).collect();
    let name = name.trim_end_matches('-').to_owned();
    is_name(&name).then_some(name)
}

/// Whether a text is a valid name of a distribution package: `libgl1`, `g++-12`.
pub fn is_apt_name(text: &str) -> bool {
    let inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    (2..=128).contains(&bytes.len())
        && bytes.first().is_some_and(|b| inside(*b))
        && bytes.iter().all(|b| inside(*b) || b"+-.".contains(b))
        // apt treats a trailing `-` as "remove" and a trailing `+` as "install".
        && !text.ends_with('-')
        && (!text.ends_with('+') || text.ends_with("++"))
}

/// Whether a text is a valid name of an environment variable.
pub(super) fn is_variable(text: &str) -> bool {
    let first = text.as_bytes().first();
    first.is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_in_image_names() {
        for good in ["a", "train", "my-project", "v2.1", "a_b"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "Train", "-a", "a-", "a b", "a/b", "a--b", "ä", &"x".repeat(65)] {
            assert!(!is_name(bad), "{bad}");
        }
        assert_eq!(name_from("My Project (2)").as_deref(), Some("my-project-2"));
        assert_eq!(name_from("日本"), None);
    }

    #[test]
    fn apt_names_reject_options_and_removals() {
        for good in ["ffmpeg", "libgl1", "g++-12", "libstdc++6", "g++"] {
            assert!(is_apt_name(good), "{good}");
        }
        for bad in ["", "x", "-y", "FFmpeg", "ffmpeg=1", "a b", "vim-", "vim+", "$(id)", "./x.deb"] {
            assert!(!is_apt_name(bad), "{bad}");
        }
    }
}

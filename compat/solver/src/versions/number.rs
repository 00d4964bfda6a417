//! Numbers between dots.

/// Parses digits.
pub(super) fn number(part: &str) -> Option<u32> {
    let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if digits { part.parse().ok() } else { None }
}

/// Parses dot-separated digits.
pub(super) fn numbers(text: &str) -> Option<Vec<u32>> {
    text.split('.').map(number).collect()
}

//! Wraps text for a terminal of 80 columns.

/// The width of wrapped text.
pub(crate) const WIDTH: usize = 80;

/// Wraps `text` after `head` with a hanging indent. A word longer than a line is not broken.
pub(crate) fn wrap_hanging(head: &str, text: &str) -> String {
    let indent = head.chars().count();
    let mut out = String::from(head);
    let mut column = indent;
    for (at, word) in text.split_whitespace().enumerate() {
        let wide = word.chars().count();
        if at > 0 && column + 1 + wide > WIDTH {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if at > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += wide;
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_has_a_hanging_indent() {
        let text = wrap_hanging("  field   ", &"word ".repeat(40));
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("          word")), "{text}");
        assert_eq!(text.split_whitespace().count(), 41);
    }

    #[test]
    fn long_words_are_not_broken() {
        let address = "x".repeat(100);
        assert!(wrap_hanging("  source: ", &address).contains(&address));
    }

    #[test]
    fn empty_text_leaves_no_blanks() {
        assert_eq!(wrap_hanging("head: ", ""), "head:\n");
    }
}

//! Wraps text for a terminal of 80 columns.

/// The width everything is wrapped to.
pub(crate) const WIDTH: usize = 80;

/// `text` after `head`, its following lines under its first one. A word longer than a line stays whole.
pub(crate) fn hanging(head: &str, text: &str) -> String {
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
    fn long_text_hangs_under_its_first_word() {
        let text = hanging("  field   ", &"word ".repeat(40));
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("          word")), "{text}");
        assert_eq!(text.split_whitespace().count(), 41);
    }

    #[test]
    fn an_address_is_never_cut() {
        let address = "x".repeat(100);
        assert!(hanging("  source: ", &address).contains(&address));
    }

    #[test]
    fn nothing_leaves_no_blanks() {
        assert_eq!(hanging("head: ", ""), "head:\n");
    }
}

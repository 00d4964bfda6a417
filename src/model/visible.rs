//! Text of others in messages: control characters are escaped, so that none reaches a terminal.

/// Returns a text with its control characters escaped; lines and tabs stay.
pub(crate) fn visible(text: &str) -> String {
    escaped(text, |character| matches!(character, '\n' | '\t'))
}

/// Returns a text on one line, with every control character escaped.
pub(crate) fn visible_line(text: &str) -> String {
    escaped(text, |_| false)
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() && !stays(character) {
            shown.extend(character.escape_debug());
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let text = "a\n\tb\r\u{1b}[31m\u{9b}2J\u{7}é \\ \"`";
        assert_eq!(visible(text), "a\n\tb\\r\\u{1b}[31m\\u{9b}2J\\u{7}é \\ \"`");
        assert_eq!(visible_line("a\nerror: b"), "a\\nerror: b");
    }
}

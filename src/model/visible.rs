//! Text of others in messages: control characters are escaped, so that none reaches a terminal, and there is an end to it.

/// The bounds of a shown text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Lines.
    pub(crate) lines: usize,
    /// Characters.
    pub(crate) characters: usize,
}

/// Returns a text with its control characters escaped; lines and tabs stay.
pub(crate) fn visible(text: &str) -> String {
    escaped(text, |character| matches!(character, '\n' | '\t'))
}

/// Returns a text on one line, with every control character escaped.
pub(crate) fn visible_line(text: &str) -> String {
    escaped(text, |_| false)
}

/// Returns the beginning of a text within bounds, escaped as by [`visible`]; its last line says that there was more.
pub(crate) fn visible_within(text: &str, bounds: Bounds) -> String {
    let kept = cut(text, bounds);
    if kept.len() == text.len() {
        return visible(text);
    }
    format!("{}\n(… {} more characters)", visible(kept.trim_end()), text[kept.len()..].chars().count())
}

/// Returns the beginning of a text on one line, escaped as by [`visible_line`]; `…` says that there was more.
pub(crate) fn visible_line_within(text: &str, characters: usize) -> String {
    let kept = cut(text, Bounds { lines: usize::MAX, characters });
    visible_line(kept) + if kept.len() == text.len() { "" } else { "…" }
}

/// The beginning of a text within bounds.
fn cut(text: &str, bounds: Bounds) -> &str {
    let end = text.char_indices().nth(bounds.characters).map_or(text.len(), |(at, _)| at);
    let text = &text[..end];
    let end = bounds.lines.checked_sub(1).and_then(|before| text.match_indices('\n').nth(before));
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_hidden(character) && !stays(character) {
            // `\r` for a control character with a name, else its number.
            if character.is_control() {
                shown.extend(character.escape_debug());
            } else {
                shown.extend(character.escape_unicode());
            }
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Whether a character changes how others are shown, or shows nothing, instead of being shown: control characters, those that
/// change the direction of a text, line ends of other scripts, blanks without width, and tags.
pub(crate) fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
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

    #[test]
    fn characters_that_turn_the_text_around_are_escaped() {
        assert_eq!(visible("a\u{202e}gpj.exe \u{2066}b\u{200f}"), "a\\u{202e}gpj.exe \\u{2066}b\\u{200f}");
        assert_eq!(visible("עברית"), "עברית", "letters stay");
    }

    #[test]
    fn characters_without_a_shape_are_escaped() {
        let hidden = ['\u{61c}', '\u{feff}', '\u{2028}', '\u{2029}'].into_iter();
        let hidden = hidden.chain('\u{200b}'..='\u{200f}').chain('\u{e0000}'..='\u{e007f}');
        for character in hidden {
            let shown = format!("a\\u{{{:x}}}b", u32::from(character));
            assert_eq!(visible(&format!("a{character}b")), shown);
            assert_eq!(visible_line(&format!("a{character}b")), shown);
        }
        assert_eq!(visible("日本 é 👍 \u{a0}"), "日本 é 👍 \u{a0}", "what is shown stays");
    }

    #[test]
    fn long_text_is_cut_at_a_line_or_a_character() {
        let bounds = Bounds { lines: 2, characters: 10 };
        assert_eq!(visible_within("a\nb", bounds), "a\nb");
        assert_eq!(visible_within("a\nb\n", bounds), "a\nb\n(… 1 more characters)");
        assert_eq!(visible_within("a\nb\nc\nd", bounds), "a\nb\n(… 4 more characters)");
        assert_eq!(visible_within("0123456789ä", bounds), "0123456789\n(… 1 more characters)");
        assert_eq!(visible_line_within("ab\u{1b}c", 4), "ab\\u{1b}c");
        assert_eq!(visible_line_within("ab\nçd", 4), "ab\\nç…");
        let endless = "x\n".repeat(1_000_000);
        assert!(visible_within(&endless, Bounds { lines: 100, characters: 16_000 }).len() < 300);
    }
}

//! Text of others inside a page: escaped for HTML, and nothing in it is invisible or turns the reading order.

use minijinja::{Error, Output, State, Value, escape_formatter};

use crate::model::visible::is_hidden;

/// Writes a value into a page. Only our own style, script and macros are safe as they are.
pub(super) fn write_value(
    out: &mut Output<'_>,
    state: &mut State<'_, '_>,
    value: &Value,
) -> Result<(), Error> {
    match value.as_str() {
        Some(text) if !value.is_safe() => Ok(out.write_str(&escaped(text))?),
        _ => escape_formatter(out, state, value),
    }
}

/// Returns a text for HTML, inside elements and quoted attributes.
fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            '\'' => shown.push_str("&#39;"),
            '\n' | '\t' => shown.push(character),
            _ if is_hidden(character) => shown.extend(character.escape_unicode()),
            _ => shown.push(character),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_hidden_characters_are_escaped() {
        let text = "<b a=\"'\">&\n\u{202e}gnp.exe\u{200b}\u{7}\r é 日本";
        let shown = "&lt;b a=&quot;&#39;&quot;&gt;&amp;\n\\u{202e}gnp.exe\\u{200b}\\u{7}\\u{d} é 日本";
        assert_eq!(escaped(text), shown);
    }
}

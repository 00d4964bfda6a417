//! Just enough JSON for a report: strings and objects of strings.

/// Returns a text as a JSON string.
pub fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            control if u32::from(control) < 0x20 => {
                let _ = std::fmt::Write::write_fmt(&mut out, format_args!("\\u{:04x}", u32::from(control)));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// Returns the string that follows `"name":` in an object written by this module, and `None` for `null`.
pub fn text_of(object: &str, name: &str) -> Option<String> {
    let mut rest = object.split_once(&format!("\"{name}\":\""))?.1.chars();
    let mut text = String::new();
    loop {
        match rest.next()? {
            '"' => return Some(text),
            '\\' => match rest.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'u' => {
                    let digits: String = rest.by_ref().take(4).collect();
                    text.push(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)?);
                }
                other => text.push(other),
            },
            other => text.push(other),
        }
    }
}

/// Returns pairs of name and text as a JSON object.
pub fn object(pairs: &[(String, String)]) -> String {
    let inside: Vec<_> =
        pairs.iter().map(|(name, value)| format!("{}:{}", string(name), string(value))).collect();
    format!("{{{}}}", inside.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_becomes_one_line_that_parses_back() {
        let text = "a\"b\\c\nd\te\u{1}ü";
        let written = string(text);
        assert_eq!(written, r#""a\"b\\c\nd\te\u0001ü""#);
        assert_eq!(text_of(&format!("{{\"x\":{written},\"y\":null}}"), "x").as_deref(), Some(text));
        assert_eq!(text_of("{\"y\":null}", "y"), None);
        let pairs = [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "\"".to_owned())];
        assert_eq!(object(&pairs), r#"{"a":"1","b":"\""}"#);
    }
}

//! The control format of Debian's files: stanzas of `Field: value`, continued by indented lines.
//!
//! Owns the grammar. Must not know the meaning of any field.

/// One stanza. Values borrow from the text; a continued value keeps its newlines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stanza<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Stanza<'a> {
    /// The value of a field, trimmed; names compare without case.
    pub(crate) fn field(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// Returns the stanzas of a text, in order. Lines that start with `#` are comments; skips lines without a field.
///
/// A distribution's index has some 1.5 million lines: newlines and colons are sought with `memchr`.
pub(crate) fn stanzas(text: &str) -> impl Iterator<Item = Stanza<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let mut fields: Vec<(&str, &str)> = Vec::new();
        // Where the value of the field that may still be continued begins.
        let mut open = None;
        while at < text.len() {
            let start = at;
            at = memchr::memchr(b'\n', &text.as_bytes()[start..])
                .map_or(text.len(), |length| start + length + 1);
            let line = &text[start..at];
            match line.as_bytes()[0] {
                b' ' | b'\t' | b'\r' | b'\n' if line.trim_ascii().is_empty() => {
                    if !fields.is_empty() {
                        break;
                    }
                    open = None;
                }
                b' ' | b'\t' => {
                    if let (Some(begin), Some((_, value))) = (open, fields.last_mut()) {
                        *value = &text[begin..at];
                    }
                }
                b'#' => open = None,
                _ => {
                    open = memchr::memchr(b':', line.as_bytes()).map(|colon| start + colon + 1);
                    if let Some(begin) = open {
                        fields.push((text[start..begin - 1].trim_ascii(), &text[begin..at]));
                    }
                }
            }
        }
        (!fields.is_empty()).then_some(Stanza(fields))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stanzas_end_at_blank_lines_and_continue_when_indented() {
        let text =
            "# a comment\nPackage: a\nDescription: short\n long\n .\n more\n\n \n\nPackage: b\nX: y: z";
        let all: Vec<_> = stanzas(text).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].field("package"), Some("a"));
        assert_eq!(all[0].field("Description"), Some("short\n long\n .\n more"));
        assert_eq!(all[1].field("X"), Some("y: z"));
        assert_eq!(all[1].field("absent"), None);
    }

    #[test]
    fn a_text_without_fields_has_no_stanza() {
        assert_eq!(stanzas("\n\n# nothing\n \nno field here\n").count(), 0);
        assert_eq!(stanzas("").count(), 0);
    }
}

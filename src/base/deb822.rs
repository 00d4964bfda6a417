//! The control format of Debian's files: stanzas of `Field: value`, continued by indented lines.
//!
//! Owns the grammar. Must not know what any field means.

/// One stanza. Values borrow from the text; a continued value keeps its newlines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stanza<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Stanza<'a> {
    /// The value of a field, trimmed; names compare without case.
    pub(crate) fn field(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// The stanzas of a text, in order. Lines that start with `#` are comments; what is no field is skipped.
pub(crate) fn stanzas(text: &str) -> impl Iterator<Item = Stanza<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut fields: Vec<(&str, &str)> = Vec::new();
        while !rest.is_empty() {
            let end = rest.find('\n').map_or(rest.len(), |newline| newline + 1);
            let (line, after) = rest.split_at(end);
            if line.trim().is_empty() {
                rest = after;
                if fields.is_empty() {
                    continue;
                }
                break;
            }
            let continuation = continuation_length(after);
            if !line.starts_with(['#', ' ', '\t'])
                && let Some((name, first)) = line.split_once(':')
            {
                let start = name.len() + 1;
                fields.push((name.trim(), &rest[start..start + first.len() + continuation]));
                rest = &after[continuation..];
            } else {
                rest = after;
            }
        }
        (!fields.is_empty()).then_some(Stanza(fields))
    })
}

/// How many bytes of indented lines follow.
fn continuation_length(text: &str) -> usize {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        if !line.starts_with([' ', '\t']) || line.trim().is_empty() {
            break;
        }
        length += line.len();
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stanzas_are_parted_by_blank_lines_and_continued_by_indented_ones() {
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

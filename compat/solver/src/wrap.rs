//! Long lines of a report: a line for each thing in a pipe, wrapped for a terminal.

/// The widest that text is wrapped at: longer lines are hard to read.
const WIDEST: usize = 100;
/// The longest label, characters.
const LONGEST_LABEL: usize = 12;
/// Narrower terminals wrap lines themselves.
const NARROWEST: usize = 20;

/// The width of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Width(Option<usize>);

impl Width {
    /// Lines of any length, for a pipe or a file.
    pub const UNLIMITED: Self = Self(None);

    /// The width for a terminal of so many columns.
    pub fn of_terminal(columns: usize) -> Self {
        Self((columns >= NARROWEST).then(|| columns.min(WIDEST)))
    }
}

/// Returns a line: `text` after `head`, below which [`wrapped`] puts what does not fit.
pub fn hanging(head: &str, text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{head}{words}").trim_end().to_owned() + "\n"
}

/// Returns a text with its lines wrapped at that width. A word longer than a line is not broken.
pub fn wrapped(text: &str, width: Width) -> String {
    let Some(width) = width.0 else { return text.to_owned() };
    text.split_inclusive('\n').map(|line| wrapped_line(line, width)).collect()
}

fn wrapped_line(line: &str, width: usize) -> String {
    let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
    if line.chars().count() <= width {
        return format!("{line}{end}");
    }
    let (head, text) = line.split_at(head_of(line));
    let indent = head.chars().count();
    // A column that leaves no room for words.
    let indent = if indent * 2 > width { 0 } else { indent };
    let mut out = String::from(head);
    let mut column = head.chars().count();
    for (at, word) in text.split_whitespace().enumerate() {
        let wide = word.chars().count();
        if at > 0 && column + 1 + wide > width {
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
    out + end
}

/// The bytes before the text of a line: the columns before the last, or a label with a colon, or the spaces at its beginning.
fn head_of(line: &str) -> usize {
    let text = line.len() - line.trim_start().len();
    let rest = &line[text..];
    let after = |at: usize| at + rest[at..].len() - rest[at..].trim_start().len();
    if let Some(gap) = rest.find("  ") {
        return text + after(gap);
    }
    match rest.find(": ") {
        Some(colon) if is_label(&rest[..colon]) => text + after(colon + 1),
        _ => text,
    }
}

/// Whether a text before a colon is a label, as `source` and `seen in` are, and not the beginning of a sentence.
fn is_label(text: &str) -> bool {
    let is_short = text.chars().count() <= LONGEST_LABEL;
    is_short && text.chars().all(|character| character.is_alphabetic() || matches!(character, ' ' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(width: usize, text: &str) -> String {
        wrapped(text, Width::of_terminal(width))
    }

    #[test]
    fn long_text_has_a_hanging_indent() {
        let line = hanging("  field   ", &"word ".repeat(40));
        for width in [40, 80] {
            let text = at(width, &line);
            assert!(text.lines().all(|line| line.len() <= width), "{text}");
            assert!(text.lines().skip(1).all(|line| line.starts_with("          word")), "{text}");
            assert_eq!(text.split_whitespace().count(), 41);
        }
        assert!(at(200, &line).lines().all(|line| line.len() <= WIDEST));
    }

    #[test]
    fn a_pipe_has_one_line_for_each_thing() {
        let line = hanging("  field   ", &"word ".repeat(40));
        assert_eq!(wrapped(&line, Width::UNLIMITED), line);
        assert_eq!(line.lines().count(), 1);
        assert_eq!(at(1, &line), line, "a terminal of one column wraps itself");
    }

    #[test]
    fn label_is_a_head_and_a_sentence_is_not() {
        let text = "word ".repeat(30);
        for (head, indent) in
            [("         hint: ", 15), ("  seen in: ", 11), ("    ", 4), ("", 0), ("error    ", 9)]
        {
            let shown = at(80, &hanging(head, &text));
            let second = shown.lines().nth(1).expect("two lines");
            assert_eq!(second.len() - second.trim_start().len(), indent, "{shown}");
        }
    }

    #[test]
    fn word_that_does_not_fit_is_not_broken() {
        let address = format!("https://example.test/{}", "a".repeat(90));
        assert!(at(80, &hanging("  source: ", &address)).contains(&address));
    }

    #[test]
    fn nothing_after_the_head_leaves_no_space() {
        assert_eq!(hanging("head: ", ""), "head:\n");
        assert_eq!(at(80, "a\n\nb"), "a\n\nb");
    }
}

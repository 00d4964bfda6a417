//! Color, which comes after escaping: the one place that writes control sequences of its own.

use owo_colors::OwoColorize as _;

use crate::model::visible::{visible, visible_line};

/// What a colored word stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A step that ended well.
    Done,
    /// A step that failed.
    Failed,
    /// `warning:`
    Warning,
    /// `error:`
    Error,
    /// `hint:`
    Hint,
}

/// A text for the terminal: every character of others is escaped in it, and it may have color.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Painted {
    color: bool,
    text: String,
}

impl Painted {
    /// An empty text that may have color.
    pub fn new(color: bool) -> Self {
        Self { color, text: String::new() }
    }

    /// Adds a mark.
    #[must_use]
    pub fn mark(mut self, mark: Mark) -> Self {
        let colored = match mark {
            Mark::Done => "✓".green().to_string(),
            Mark::Failed => "✗".red().to_string(),
            Mark::Warning => "warning:".yellow().to_string(),
            Mark::Error => "error:".red().bold().to_string(),
            Mark::Hint => "hint:".cyan().to_string(),
        };
        let plain = match mark {
            Mark::Done => "ok",
            Mark::Failed => "failed",
            Mark::Warning => "warning:",
            Mark::Error => "error:",
            Mark::Hint => "hint:",
        };
        self.text.push_str(if self.color { &colored } else { plain });
        self
    }

    /// Adds a text, whose control characters are escaped.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        self.text.push_str(&visible(text));
        self
    }

    /// Adds the level of a record of the log, as wide as the longest.
    #[must_use]
    pub(super) fn level(mut self, level: tracing::Level) -> Self {
        let plain = format!("{level:>5}");
        let colored = match level {
            tracing::Level::ERROR => plain.red().to_string(),
            tracing::Level::WARN => plain.yellow().to_string(),
            _ => plain.blue().to_string(),
        };
        self.text.push_str(if self.color { &colored } else { &plain });
        self
    }

    /// Adds a text on one line: every control character is escaped in it.
    #[must_use]
    pub(super) fn line(mut self, text: &str) -> Self {
        self.text.push_str(&visible_line(text));
        self
    }

    /// The bytes for the terminal.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_marks_are_not() {
        let painted = |color| Painted::new(color).mark(Mark::Done).text(" a\u{1b}[31mb\n");
        assert_eq!(painted(false).as_str(), "ok a\\u{1b}[31mb\n");
        assert_eq!(painted(true).as_str(), "\u{1b}[32m✓\u{1b}[39m a\\u{1b}[31mb\n");
    }
}

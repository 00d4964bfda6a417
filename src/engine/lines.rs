//! Lines of a byte stream. Pure.

use std::collections::VecDeque;

use super::limits::LONGEST_LINE;

/// A splitter of a byte stream into lines. `\r` ends a line too, because progress bars use it.
#[derive(Debug)]
pub(in crate::engine) struct Lines {
    rest: Vec<u8>,
    /// The most that is kept of a line, bytes.
    most: usize,
    /// Whether the rest was longer.
    cut: bool,
}

impl Default for Lines {
    fn default() -> Self {
        Self::up_to(LONGEST_LINE)
    }
}

impl Lines {
    /// Lines that are kept up to so many bytes.
    pub(in crate::engine) fn up_to(most: usize) -> Self {
        Self { rest: Vec::new(), most, cut: false }
    }

    /// Adds a chunk and returns the completed lines.
    pub(in crate::engine) fn push(&mut self, chunk: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for &byte in chunk {
            if byte == b'\n' || byte == b'\r' {
                lines.extend(self.finish());
            } else if self.rest.len() < self.most {
                self.rest.push(byte);
            } else {
                self.cut = true;
            }
        }
        lines
    }

    /// Returns the last line without a newline, if any.
    pub(in crate::engine) fn finish(&mut self) -> Option<String> {
        let mut line = String::from_utf8_lossy(&std::mem::take(&mut self.rest)).trim_end().to_owned();
        if std::mem::take(&mut self.cut) {
            line.push_str(" …");
        }
        (!line.is_empty()).then_some(line)
    }
}

/// The number of retained output lines of a step.
pub(in crate::engine) const KEPT: usize = 40;

/// The last lines of an output.
#[derive(Debug, Default)]
pub(in crate::engine) struct LastLines(VecDeque<String>);

impl LastLines {
    pub(in crate::engine) fn push(&mut self, line: &str) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(line.to_owned());
    }

    pub(in crate::engine) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_complete_regardless_of_chunks() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(b"one\ntw"), ["one"]);
        assert_eq!(lines.push(b"o\r\n\n"), ["two"]);
        assert_eq!(lines.push("50%\r100%\r\u{e9}".as_bytes()), ["50%", "100%"]);
        assert_eq!(lines.finish().as_deref(), Some("\u{e9}"));
        assert_eq!(lines.finish(), None);
    }

    #[test]
    fn line_without_end_is_kept_up_to_its_bound() {
        let mut lines = Lines::default();
        for _ in 0..1000 {
            assert!(lines.push(&[b'x'; 1 << 10]).is_empty());
        }
        assert!(lines.rest.capacity() <= 2 * LONGEST_LINE, "{}", lines.rest.capacity());
        let [long, short] = &lines.push(b"\nshort\n")[..] else { panic!("two lines") };
        assert_eq!((long.len(), long.ends_with("x …")), (LONGEST_LINE + " …".len(), true));
        assert_eq!(short, "short");
    }

    #[test]
    fn lines_keep_a_split_character() {
        let mut lines = Lines::default();
        assert!(lines.push(&[0xc3]).is_empty());
        assert_eq!(lines.push(&[0xa9, b'\n']), ["\u{e9}"]);
    }
}

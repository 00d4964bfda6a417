//! The two streams: data on stdout, talk on stderr. The only place that writes to either.

use std::fmt::Write as _;
use std::io::{Error, ErrorKind, Write as _};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::paint::Painted;
use super::screen::without_bars;
use crate::model::visible::{is_hidden, visible};

/// The first error of writing to stdout.
static WRITE_ERROR: Mutex<Option<Error>> = Mutex::new(None);

/// Writes results to stdout. A closed pipe is the reader's choice, not an error.
#[derive(Debug, Clone, Copy)]
pub struct Printer;

impl Printer {
    /// One value as JSON, indented, with a newline. Hidden characters of its texts are escaped.
    pub fn json<T: Serialize>(self, value: &T) {
        let text =
            serde_json::to_string_pretty(value).expect("result types serialise: they hold text keys only");
        self.bytes((json_visible(&text) + "\n").as_bytes());
    }

    /// A text, with a newline added if it has none. Control characters are escaped: it may hold texts of images.
    pub fn text(self, text: &str) {
        self.bytes(visible(text).as_bytes());
        if !text.ends_with('\n') {
            self.bytes(b"\n");
        }
    }

    /// Bytes as they are.
    pub fn bytes(self, bytes: &[u8]) {
        let written = without_bars(|| {
            let mut stdout = anstream::stdout().lock();
            stdout.write_all(bytes).and_then(|()| stdout.flush())
        });
        if let Err(error) = written {
            WRITE_ERROR.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    /// The first error of writing a result. `None`: everything was written, or the reader closed the pipe, which ends
    /// a command quietly.
    pub fn take_write_error(self) -> Option<std::io::Error> {
        let error = WRITE_ERROR.lock().unwrap_or_else(PoisonError::into_inner).take();
        error.filter(|error| error.kind() != ErrorKind::BrokenPipe)
    }

    /// Another program's bytes on stdout, untouched; an error if nobody reads them.
    pub fn pass_out(self, bytes: &[u8]) -> std::io::Result<()> {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush())
    }

    /// Another program's bytes on stderr, untouched; an error if nobody reads them.
    pub fn pass_err(self, bytes: &[u8]) -> std::io::Result<()> {
        std::io::stderr().lock().write_all(bytes)
    }

    /// A line of talk, whose control characters are escaped.
    pub fn say(self, line: &str) {
        talk(&visible(line));
    }

    /// A line of talk with colors.
    pub fn say_painted(self, line: &Painted) {
        talk(line.as_str());
    }
}

/// One value as JSON in one line. Hidden characters of its texts are escaped.
pub(super) fn json_line<T: Serialize>(value: &T) -> String {
    let text = serde_json::to_string(value);
    json_visible(&text.expect("events serialise: they hold text and finite numbers"))
}

/// Writes a line of talk as it is.
pub(super) fn talk(line: &str) {
    without_bars(|| {
        // Nobody can be told that standard error is closed.
        let _ = writeln!(anstream::stderr().lock(), "{line}");
    });
}

/// Escapes the hidden characters that JSON leaves as they are. They are in its strings, where the escapes mean the same.
fn json_visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_hidden(character) && character != '\n' {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::model::visible::visible_line;
    use crate::report::log::Lines;

    /// A message, a cell of a table, a line of the log and a value of JSON: no way to the terminal knows a character more.
    #[test]
    fn every_way_to_the_terminal_escapes_the_same_characters() {
        for character in ('\0'..='\u{e0100}').filter(|character| is_hidden(*character)) {
            let text = format!("a{character}b");
            let json = json_visible(&serde_json::to_string(&text).expect("text"));
            let message = Painted::new(false).text(&text);
            for shown in [message.as_str(), &visible_line(&text), &log_line(&text), &json] {
                let is_kept = matches!(character, '\n' | '\t') && shown == message.as_str();
                assert!(is_kept || !shown.contains(character), "{shown:?}");
            }
        }
    }

    /// What the log shows of a text in a field and in a message.
    fn log_line(text: &str) -> String {
        let (sender, lines) = std::sync::mpsc::channel();
        let write = move |line: &Painted| sender.send(line.as_str().to_owned()).expect("it is received");
        let log = tracing_subscriber::registry().with(Lines { color: false, write });
        tracing::subscriber::with_default(log, || tracing::warn!(text, shown = %text, "{text}"));
        let line = lines.recv().expect("a line");
        assert!(
            line.starts_with(" WARN a") && line.contains("b text=") && line.contains(" shown=a"),
            "{line:?}"
        );
        line
    }

    #[test]
    fn json_without_hidden_characters_means_the_same() {
        let value =
            serde_json::json!({ "a": "\u{1b}[31m\u{9b}2J\u{202e}x\n\u{feff}\u{e0041}", "b\u{7f}": ["é"] });
        let text = json_visible(&serde_json::to_string_pretty(&value).expect("text"));
        assert!(!text.contains(|character| is_hidden(character) && character != '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
    }
}

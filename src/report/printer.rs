//! The two streams: data on stdout, talk on stderr. The only place that writes to either.

use std::io::{Error, ErrorKind, Write};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// The first error of writing to stdout.
static WRITE_ERROR: Mutex<Option<Error>> = Mutex::new(None);

/// Writes results to stdout. A closed pipe is the reader's choice, not an error.
#[derive(Debug, Clone, Copy)]
pub struct Printer;

impl Printer {
    /// One value as JSON, indented, with a newline.
    pub fn json<T: Serialize>(self, value: &T) {
        let text =
            serde_json::to_string_pretty(value).expect("result types serialise: they hold text keys only");
        self.text(&text);
    }

    /// A text, with a newline added if it has none.
    pub fn text(self, text: &str) {
        self.bytes(text.as_bytes());
        if !text.ends_with('\n') {
            self.bytes(b"\n");
        }
    }

    /// Bytes as they are.
    pub fn bytes(self, bytes: &[u8]) {
        let mut stdout = anstream::stdout().lock();
        if let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush()) {
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

    /// A line of talk.
    pub fn say(self, line: &str) {
        let mut stderr = anstream::stderr().lock();
        let _ = writeln!(stderr, "{line}");
    }
}

//! The terminal below the moving bars: whatever writes to it takes the bars away first, so that no half of a bar stays.

use std::io;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use indicatif::MultiProgress;
use rustix::termios::tcgetwinsize;

use crate::settings::Terminals;

/// The bars of this process, once there are any: one set for all reporters, since there is one terminal.
static BARS: OnceLock<MultiProgress> = OnceLock::new();
/// Columns of a terminal that does not say.
const COLUMNS: u16 = 80;
/// Its rows.
const ROWS: u16 = 24;

/// The bars of this process.
pub(super) fn bars() -> &'static MultiProgress {
    BARS.get_or_init(MultiProgress::new)
}

/// Writes while no bar is on the screen.
pub(super) fn without_bars<T>(write: impl FnOnce() -> T) -> T {
    match BARS.get() {
        Some(bars) => bars.suspend(write),
        None => write(),
    }
}

/// The terminals of this process, with their columns now.
pub fn terminals() -> Terminals {
    Terminals { stdout: columns(&io::stdout()), stderr: columns(&io::stderr()) }
}

/// The rows of the terminal on which work is shown.
pub(crate) fn rows() -> usize {
    let known = tcgetwinsize(io::stderr()).ok().map(|size| size.ws_row).filter(|rows| *rows > 0);
    usize::from(known.unwrap_or(ROWS))
}

/// The columns of a terminal; `None`: a pipe or a file.
fn columns(stream: &(impl io::IsTerminal + AsFd)) -> Option<u16> {
    let known = || tcgetwinsize(stream).ok().map(|size| size.ws_col).filter(|columns| *columns > 0);
    stream.is_terminal().then(|| known().unwrap_or(COLUMNS))
}

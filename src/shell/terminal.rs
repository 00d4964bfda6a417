//! This machine's terminal: raw mode, size, input.

use std::io::{IsTerminal as _, stdin, stdout};

use bytes::Bytes;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use super::ShellError;

/// Bytes read at once.
const CHUNK: usize = 32 * 1024;

/// Returns uid and gid of the caller.
pub(crate) fn caller_ids() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

/// Returns whether input and output are a terminal.
pub(crate) fn is_interactive() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// Returns columns and rows of a terminal, if known.
pub(super) fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// A terminal in raw mode, restored on drop.
pub(super) struct Raw(Termios);

impl Raw {
    pub(super) fn enter() -> Result<Self, ShellError> {
        let fault = |error: rustix::io::Errno| ShellError::Terminal { cause: error.into() };
        let before = tcgetattr(stdin()).map_err(fault)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw).map_err(fault)?;
        Ok(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if let Err(error) = tcsetattr(stdin(), OptionalActions::Now, &self.0) {
            tracing::warn!(%error, "cannot restore the terminal");
        }
    }
}

/// Returns the input until its end. The thread lives as long as its read: a program that ends first abandons it.
pub(super) fn typed() -> mpsc::Receiver<Bytes> {
    let (sender, receiver) = mpsc::channel(4);
    std::thread::spawn(move || {
        let mut buffer = vec![0; CHUNK];
        loop {
            match rustix::io::read(stdin(), &mut buffer) {
                Ok(0) => break,
                Ok(read) if sender.blocking_send(Bytes::copy_from_slice(&buffer[..read])).is_err() => break,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    tracing::debug!(%error, "standard input");
                    break;
                }
            }
        }
    });
    receiver
}

//! The user's own programs on this machine: the browser and the editor.

use std::io::{Result, Write as _};
use std::time::Duration;

use super::child_process::child;

/// Opens a URL that holds a token in the browser: it goes through a file of the caller's own, since the arguments of a program can
/// be read by everybody on this machine.
///
/// # Errors
/// The file cannot be written, or there is no program that opens pages.
pub(crate) fn open_page(url: &str) -> Result<()> {
    let mut page = tempfile::Builder::new().prefix("envforge-").suffix(".html").tempfile()?;
    write!(page, "<meta http-equiv=\"refresh\" content=\"0; url={url}\">")?;
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    child(program).arg(page.path()).status()?;
    // A browser that runs already reads it after the program has ended.
    std::thread::sleep(Duration::from_secs(3));
    Ok(())
}

/// Runs a command of words without quotes and waits for its end.
///
/// # Errors
/// The program is not there.
pub(crate) fn open_program(command: &str) -> Result<()> {
    let mut words = command.split(' ');
    child(words.next().unwrap_or_default()).args(words).status()?;
    Ok(())
}

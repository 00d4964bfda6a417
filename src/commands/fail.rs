//! Prints the error that ended a command.

use std::process::ExitCode;

use crate::report::Printer;
use crate::workflow::error::CommandError;

/// Prints an error with its causes and hints; an interrupted command ends silently. Returns its exit code.
pub(super) fn fail(error: &CommandError, color: bool) -> ExitCode {
    if !error.is_interrupted() {
        Printer.say_painted(&error.report(color));
    }
    error.exit().into()
}

//! What bollard and the daemon say when something fails, as an [`EngineError`].
//!
//! Pure: looks at the error only.

use std::error::Error as StdError;
use std::io;

use bollard::errors::Error;

use super::EngineError;
use super::address::Address;

/// Translates an error met while doing `during`.
pub(super) fn fault(address: &Address, during: &str, error: Error) -> EngineError {
    match error {
        Error::DockerResponseServerError { message, .. } => refused(during, &message),
        Error::DockerStreamError { error } | Error::DockerContainerWaitError { error, .. } => {
            refused(during, &error)
        }
        Error::HyperLegacyError { err } if err.is_connect() => unconnected(address, &err),
        Error::HyperLegacyError { .. }
        | Error::HyperResponseError { .. }
        | Error::IOError { .. }
        | Error::RequestTimeoutError => broken(address, during, &error),
        other => refused(during, &root_text(&other)),
    }
}

/// The daemon's own words; a full disk is told apart from other refusals.
pub(super) fn refused(during: &str, text: &str) -> EngineError {
    let text = text.trim().to_owned();
    if is_disk_full(&text) {
        EngineError::DiskFull { text }
    } else {
        EngineError::Refused { during: during.to_owned(), text }
    }
}

/// A step of a build failed: with a full disk, if that is what it said.
pub(super) fn step_failure(text: String, output: Vec<String>) -> EngineError {
    if is_disk_full(&text) {
        return EngineError::DiskFull { text };
    }
    match output.iter().rev().find(|line| is_disk_full(line)) {
        Some(line) => EngineError::DiskFull { text: line.clone() },
        None => EngineError::BuildFailed { text, output },
    }
}

/// The connection broke.
pub(super) fn lost(during: &str, error: &(dyn StdError + 'static)) -> EngineError {
    EngineError::Lost { during: during.to_owned(), cause: root_text(error) }
}

/// The connection broke, or turns out never to have come about: ssh and the client's certificate fail late.
pub(super) fn broken(address: &Address, during: &str, error: &(dyn StdError + 'static)) -> EngineError {
    let late = io_kind(error) == Some(io::ErrorKind::NotConnected);
    if late || root_text(error).contains("received fatal alert") {
        unconnected(address, error)
    } else {
        lost(during, error)
    }
}

/// No connection came about.
pub(super) fn unconnected(address: &Address, error: &(dyn StdError + 'static)) -> EngineError {
    let address = address.to_string();
    match io_kind(error) {
        Some(io::ErrorKind::PermissionDenied) => EngineError::NoPermission { address },
        _ => EngineError::Unreachable { address, cause: root_text(error) },
    }
}

/// True if the words say that the disk is full.
fn is_disk_full(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("no space left on device") || text.contains("disk quota exceeded")
}

fn io_kind(error: &(dyn StdError + 'static)) -> Option<io::ErrorKind> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        next = error.source();
    }
    None
}

/// The innermost cause, which says what happened; the outer ones only name layers of the client.
fn root_text(error: &(dyn StdError + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(message: &str) -> Error {
        Error::DockerResponseServerError { status_code: 500, message: message.to_owned() }
    }

    #[test]
    fn a_refusal_keeps_the_daemons_words() {
        let address = Address::default();
        let error = fault(&address, "removing `a`", server("conflict: unable to remove\n"));
        assert_eq!(error.to_string(), "the engine refused removing `a`: conflict: unable to remove");
        assert_eq!(error.exit_code(), 3);
    }

    #[test]
    fn a_full_disk_is_recognised_in_a_status_and_in_a_stream() {
        let address = Address::default();
        let words = "failed to copy: write /var/lib/docker/tmp/x: No space left on device";
        let stream = Error::DockerStreamError { error: words.to_owned() };
        for error in [server(words), stream] {
            let error = fault(&address, "importing", error);
            assert!(matches!(error, EngineError::DiskFull { .. }), "{error}");
            assert!(!error.hints().is_empty());
        }
    }

    #[test]
    fn a_broken_connection_is_a_loss() {
        let reset = io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer");
        let error = fault(&Address::default(), "the pull of `a`", Error::IOError { err: reset });
        assert_eq!(
            error.to_string(),
            "the engine went away during the pull of `a`: connection reset by peer"
        );
    }

    #[test]
    fn a_closed_socket_is_told_apart_from_an_absent_one() {
        let address = Address::default();
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert!(matches!(unconnected(&address, &denied), EngineError::NoPermission { .. }));
        let absent = io::Error::new(io::ErrorKind::NotFound, "`/x.sock` does not exist");
        let absent = unconnected(&address, &absent);
        assert!(matches!(absent, EngineError::Unreachable { .. }));
        assert!(absent.hints()[0].contains("systemctl start docker"));
    }
}

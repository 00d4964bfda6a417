//! Maps errors of bollard and the daemon to [`EngineError`]. Pure.

use std::error::Error as StdError;
use std::io;

use bollard::errors::Error;

use crate::engine::error::EngineError;
use crate::engine::transport::address::Address;

/// Returns whether the error is the daemon's "not found".
pub(in crate::engine) fn is_absent(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 404, .. })
}

/// Whether a description lacks what every image has: containerd's store describes one without its blobs like that.
pub(in crate::engine) fn is_incomplete(error: &Error) -> bool {
    matches!(error, Error::JsonDataError { message, .. } if message.contains("missing field"))
}

/// Whether the answer is `null`: containerd's store has no list where the configuration has none.
pub(in crate::engine) fn is_null(error: &Error) -> bool {
    matches!(error, Error::JsonDataError { message, .. } if message.starts_with("invalid type: null"))
}

/// Maps an error that occurred during `during`.
pub(in crate::engine) fn fault(address: &Address, during: &str, error: Error) -> EngineError {
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

/// Maps the daemon's message; distinguishes a full disk from other refusals.
pub(in crate::engine) fn refused(during: &str, text: &str) -> EngineError {
    let text = text.trim().to_owned();
    if is_disk_full(&text) {
        EngineError::DiskFull { text }
    } else {
        EngineError::Refused { during: during.to_owned(), text }
    }
}

/// Maps a failed build step; distinguishes a full disk.
pub(in crate::engine) fn step_failure(text: String, output: Vec<String>) -> EngineError {
    if is_disk_full(&text) {
        return EngineError::DiskFull { text };
    }
    match output.iter().rev().find(|line| is_disk_full(line)) {
        Some(line) => EngineError::DiskFull { text: line.clone() },
        None => EngineError::BuildFailed { text, output },
    }
}

/// Maps a broken connection.
pub(in crate::engine) fn connection_lost(during: &str, error: &(dyn StdError + 'static)) -> EngineError {
    EngineError::Lost { during: during.to_owned(), cause: root_text(error) }
}

/// Maps a broken connection, or one that was never established: ssh and the client's certificate fail late.
pub(in crate::engine) fn broken(
    address: &Address,
    during: &str,
    error: &(dyn StdError + 'static),
) -> EngineError {
    let late = io_kind(error) == Some(io::ErrorKind::NotConnected);
    if late || root_text(error).contains("received fatal alert") {
        unconnected(address, error)
    } else {
        connection_lost(during, error)
    }
}

/// Maps a failed connection attempt.
pub(in crate::engine) fn unconnected(address: &Address, error: &(dyn StdError + 'static)) -> EngineError {
    let address = address.to_string();
    match io_kind(error) {
        Some(io::ErrorKind::PermissionDenied) => EngineError::NoPermission { address },
        _ => EngineError::Unreachable { address, cause: root_text(error) },
    }
}

/// Returns whether the message reports a full disk.
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

/// Returns the innermost cause; the outer ones only describe layers of the client.
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
    use crate::failure::{Exit, Failure as _};

    fn server(message: &str) -> Error {
        Error::DockerResponseServerError { status_code: 500, message: message.to_owned() }
    }

    #[test]
    fn refusal_keeps_the_daemons_message() {
        let address = Address::default();
        let error = fault(&address, "removing `a`", server("conflict: unable to remove\n"));
        assert_eq!(error.to_string(), "the engine refused removing `a`: conflict: unable to remove");
        assert_eq!(error.exit(), Exit::Outside);
    }

    #[test]
    fn full_disk_is_recognized_in_status_and_stream() {
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
    fn broken_connection_is_reported_as_lost() {
        let reset = io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer");
        let error = fault(&Address::default(), "the pull of `a`", Error::IOError { err: reset });
        assert_eq!(
            error.to_string(),
            "lost connection to the engine during the pull of `a`: connection reset by peer"
        );
    }

    #[test]
    fn unconnected_distinguishes_closed_and_missing_sockets() {
        let address = Address::default();
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert!(matches!(unconnected(&address, &denied), EngineError::NoPermission { .. }));
        let absent = io::Error::new(io::ErrorKind::NotFound, "`/x.sock` does not exist");
        let absent = unconnected(&address, &absent);
        assert!(matches!(absent, EngineError::Unreachable { .. }));
        assert!(absent.hints()[0].contains("systemctl start docker"));
    }
}

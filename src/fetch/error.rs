//! Why a download failed, and what to do about it.

use crate::address::Address;
use crate::store::StoreError;

/// Why a download failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The client could not be set up (a bad certificate or proxy).
    #[error("the HTTP client cannot be set up: {cause}")]
    Client {
        /// The client's words.
        cause: String,
    },
    /// No server has the file.
    #[error("`{name}` is not at `{address}`")]
    NotFound {
        /// What was wanted.
        name: String,
        /// The last place asked.
        address: Address,
    },
    /// The server answered, but not with the file.
    #[error("`{address}` answered {status}")]
    Status {
        /// The place asked.
        address: Address,
        /// `503 Service Unavailable`.
        status: String,
    },
    /// The server could not be reached, or went away in the middle.
    #[error("`{address}` could not be read: {cause}")]
    Transfer {
        /// The place asked.
        address: Address,
        /// The network's words.
        cause: String,
    },
    /// The bytes that came are not those wanted.
    #[error("`{name}` from `{address}` has SHA-256 `{found}`, not `{wanted}`")]
    WrongHash {
        /// What was wanted.
        name: String,
        /// Where it came from.
        address: Address,
        /// The hash that was promised.
        wanted: String,
        /// The hash of what came.
        found: String,
    },
    /// The document is larger than anything it could sensibly be.
    #[error("`{address}` is larger than {limit} bytes")]
    TooLarge {
        /// The place asked.
        address: Address,
        /// The limit.
        limit: u64,
    },
    /// What came is what was promised, but it cannot be read.
    #[error("`{address}` cannot be unpacked: {cause}")]
    Unreadable {
        /// Where it came from.
        address: Address,
        /// What the reader said.
        cause: String,
    },
    /// The cache failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl FetchError {
    pub(super) fn transfer(address: &Address, error: reqwest::Error) -> Self {
        // The error's own text would repeat the address with its credentials.
        Self::Transfer { address: address.clone(), cause: chain(&error.without_url()) }
    }
    pub(super) fn is_worth_retrying(&self) -> bool {
        match self {
            Self::Transfer { .. } => !self.is_of_trust(),
            Self::Status { status, .. } => is_passing(status),
            _ => false,
        }
    }

    /// True if the server's certificate was not trusted: no second attempt and no waiting changes that.
    pub fn is_of_trust(&self) -> bool {
        matches!(self, Self::Transfer { cause, .. } if cause.contains("invalid peer certificate"))
    }

    /// True if nobody who is trusted signed the server's certificate.
    pub fn is_of_unknown_issuer(&self) -> bool {
        matches!(self, Self::Transfer { cause, .. } if cause.contains("UnknownIssuer"))
    }

    /// What the user can do.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Transfer { .. } | Self::Status { .. } => vec![
                "check the address and the proxy settings; what was downloaded is kept, so run it again".to_owned(),
            ],
            Self::WrongHash { .. } => vec![
                "the server or something on the way changed the file: try another mirror; nothing of it was used"
                    .to_owned(),
            ],
            Self::Store(error) => error.hints(),
            Self::Client { .. } | Self::NotFound { .. } | Self::TooLarge { .. } | Self::Unreadable { .. } => {
                Vec::new()
            },
        }
    }
    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        3
    }
}

/// True if a status may be another one soon: a server that is busy, restarting or behind a tired proxy.
pub(super) fn is_passing(status: &str) -> bool {
    ["408", "425", "429", "500", "502", "503", "504"].iter().any(|code| status.starts_with(code))
}

/// An error with all its causes, on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

//! Errors of downloads, with exit codes and hints.

use crate::failure::{Exit, Failure};
use crate::model::address::Address;
use crate::store::StoreError;

/// What the TLS library says of a certificate whose issuer is not trusted.
const OTHER_ISSUER: [&str; 2] = ["UnknownIssuer", "BadSignature"];

/// Why a download failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The client could not be set up (a bad certificate or proxy).
    #[error("cannot set up the HTTP client: {cause}")]
    Client {
        /// The client's message.
        cause: String,
    },
    /// The login cannot be a header, such as one with a line break.
    #[error("cannot send the login for `{address}`: it has a character that no header may have")]
    UnusableLogin {
        /// The requested address.
        address: Address,
    },
    /// The file does not exist on any server.
    #[error("`{name}` not found at `{address}`")]
    NotFound {
        /// The requested file.
        name: String,
        /// The last requested address.
        address: Address,
    },
    /// An unexpected status.
    #[error("cannot download `{address}`: {status}")]
    Status {
        /// The requested address.
        address: Address,
        /// `503 Service Unavailable`.
        status: String,
    },
    /// The server is unreachable, or the connection was lost.
    #[error("cannot download `{address}`: {cause}")]
    Transfer {
        /// The requested address.
        address: Address,
        /// The network error.
        cause: String,
    },
    /// The connection was lost while a body was sent, or nothing moved any more.
    #[error("cannot upload to `{address}`: {cause}")]
    Upload {
        /// The requested address.
        address: Address,
        /// The network error.
        cause: String,
    },
    /// A redirect that is not followed.
    #[error("cannot follow the redirect of `{address}`: {why}")]
    Redirect {
        /// The requested address.
        address: Address,
        /// Why not.
        why: String,
    },
    /// A server names another one in a network that is nearer to this machine than itself.
    #[error("cannot use `{address}`: it is in a nearer network than the server that names it")]
    Nearer {
        /// The address of the other server.
        address: Address,
    },
    /// The received bytes do not match the hash.
    #[error("SHA-256 mismatch for `{name}` from `{address}`: expected `{wanted}`, found `{found}`")]
    WrongHash {
        /// The requested file.
        name: String,
        /// Its source.
        address: Address,
        /// The expected hash.
        wanted: String,
        /// The hash of the received bytes.
        found: String,
    },
    /// The document exceeds the size limit.
    #[error("`{address}` is larger than {limit} bytes")]
    TooLarge {
        /// The requested address.
        address: Address,
        /// The limit.
        limit: u64,
    },
    /// The verified document cannot be unpacked.
    #[error("cannot unpack `{address}`: {cause}")]
    Unreadable {
        /// Its source.
        address: Address,
        /// The parser's message.
        cause: String,
    },
    /// The cache failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Failure for FetchError {
    fn exit(&self) -> Exit {
        Exit::Outside
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Transfer { .. } | Self::Status { .. } => vec![
                "check the address and the proxy settings, then run it again (downloads resume)".to_owned(),
            ],
            Self::WrongHash { .. } => vec![
                "use another mirror: the file was changed by the server or in transit and was discarded"
                    .to_owned(),
            ],
            Self::Redirect { .. } => {
                vec!["set the address that the server redirects to, if it is the right one".to_owned()]
            }
            Self::Store(error) => error.hints(),
            Self::Client { .. }
            | Self::Nearer { .. }
            | Self::NotFound { .. }
            | Self::UnusableLogin { .. }
            | Self::Upload { .. }
            | Self::TooLarge { .. }
            | Self::Unreadable { .. } => Vec::new(),
        }
    }
}

impl FetchError {
    pub(super) fn transfer(address: &Address, error: reqwest::Error) -> Self {
        // The error's own text would repeat the address with its credentials.
        Self::Transfer { address: address.clone(), cause: chain(&error.without_url()) }
    }
    pub(super) fn is_worth_retrying(&self) -> bool {
        match self {
            Self::Transfer { .. } => !self.is_untrusted_certificate(),
            Self::Status { status, .. } => is_transient(status),
            _ => false,
        }
    }

    /// Whether the server's certificate is not trusted: a retry cannot succeed.
    pub fn is_untrusted_certificate(&self) -> bool {
        matches!(self, Self::Transfer { cause, .. } if cause.contains("invalid peer certificate"))
    }

    /// Whether the issuer of the server's certificate is unknown, or has the name of a known one and another key.
    pub fn is_of_unknown_issuer(&self) -> bool {
        matches!(self, Self::Transfer { cause, .. } if OTHER_ISSUER.iter().any(|word| cause.contains(word)))
    }
}

/// Whether a status is temporary: the server is busy or restarting.
pub(crate) fn is_transient(status: &str) -> bool {
    ["408", "425", "429", "500", "502", "503", "504"].iter().any(|code| status.starts_with(code))
}

/// Returns an error with all its causes on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

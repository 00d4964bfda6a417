//! A file to download.

use secrecy::SecretString;

use crate::model::address::Address;

/// A file to download into the cache.
#[derive(Debug, Clone)]
pub struct Download {
    /// Its display name: `libc6_2.36-9_amd64.deb`.
    pub name: String,
    /// Its addresses, tried in order.
    pub addresses: Vec<Address>,
    /// Its SHA-256, hex.
    pub sha256: String,
    /// Its size, if known.
    pub size: Option<u64>,
    /// The login for its addresses, as the header has it; a redirect takes it to no other server.
    pub login: Option<SecretString>,
}

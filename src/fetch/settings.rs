//! How downloads reach the network: proxies, trust, patience. Plain values made by the settings.

use std::time::Duration;

use bytes::Bytes;

use crate::address::Address;

/// How downloads reach the network.
#[derive(Clone)]
pub struct FetchSettings {
    /// Proxy for `http://` addresses.
    pub http_proxy: Option<Address>,
    /// Proxy for `https://` addresses.
    pub https_proxy: Option<Address>,
    /// Hosts reached without proxy, comma-separated as in `NO_PROXY`.
    pub no_proxy: Option<String>,
    /// More certificate authorities to trust (PEM), beside those of this machine.
    pub extra_ca: Option<Bytes>,
    /// How often a download is tried in all; 1: once.
    pub attempts: usize,
    /// The pause before the second attempt; it doubles each time.
    pub first_pause: Duration,
    /// The longest silence of a server before the attempt counts as failed.
    pub silence: Duration,
    /// Downloads at the same time.
    pub parallel: usize,
}

impl Default for FetchSettings {
    fn default() -> Self {
        Self {
            http_proxy: None,
            https_proxy: None,
            no_proxy: None,
            extra_ca: None,
            attempts: 4,
            first_pause: Duration::from_millis(500),
            silence: Duration::from_mins(1),
            parallel: 8,
        }
    }
}

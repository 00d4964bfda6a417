//! Network settings of downloads: proxies, trust, timeouts. Plain values made by the settings.

use std::time::Duration;

use bytes::Bytes;

use crate::model::address::Address;

/// Network settings of downloads.
#[derive(Clone)]
pub struct FetchSettings {
    /// Proxy for `http://` addresses.
    pub http_proxy: Option<Address>,
    /// Proxy for `https://` addresses.
    pub https_proxy: Option<Address>,
    /// Hosts reached without proxy, comma-separated as in `NO_PROXY`.
    pub no_proxy: Option<String>,
    /// Additional trusted certificate authorities (PEM).
    pub extra_ca: Option<Bytes>,
    /// Maximum number of attempts per download.
    pub attempts: usize,
    /// The pause before the second attempt; it doubles each time.
    pub first_pause: Duration,
    /// Read timeout of an attempt.
    pub silence: Duration,
    /// Number of parallel downloads.
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

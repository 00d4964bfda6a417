//! Timeouts and retries of registry requests.

use std::time::Duration;

/// Timeout and retries of registry requests.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// Timeout of one attempt.
    pub attempt: Duration,
    /// Whether to try only once.
    pub once: bool,
}

impl RetryPolicy {
    /// For a required image.
    pub const NEEDED: Self = Self { attempt: Duration::from_secs(30), once: false };
    /// For an optional image.
    pub const SHORT: Self = Self { attempt: Duration::from_secs(5), once: true };
}

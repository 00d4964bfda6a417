//! `doctor`.

/// A request for `doctor`.
#[derive(Debug, Clone)]
pub struct Doctor {
    /// Explain a message of a container, daemon, driver or library; `-` reads it from stdin.
    pub explain: Option<String>,
    /// Print every fact with the findings as one JSON object; it holds no address and no credential.
    pub report: bool,
}

//! `ps`, `stop`, `logs`.

/// A request for `ps`.
#[derive(Debug, Clone)]
pub struct Ps {
    /// Show it again every second until Ctrl-C.
    pub watch: bool,
}

/// A request for `stop`.
#[derive(Debug, Clone)]
pub struct Stop {
    /// Names, as `ps` shows them.
    pub names: Vec<String>,
    /// All containers that you started.
    pub all: bool,
    /// Seconds until it is killed.
    pub time: u16,
}

/// A request for `logs`.
#[derive(Debug, Clone)]
pub struct Logs {
    /// The container's name, as `ps` shows it.
    pub name: String,
    /// Go on as more comes.
    pub follow: bool,
    /// Only the last lines.
    pub tail: Option<u32>,
}

//! `init`.

use super::target::TargetOptions;

/// A request for `init`.
#[derive(Debug, Clone)]
pub struct Init {
    /// What to build.
    pub spec: Option<String>,
    /// Overwrite an envforge.toml that is there.
    pub force: bool,
    /// The machine that will run it.
    pub target: TargetOptions,
}

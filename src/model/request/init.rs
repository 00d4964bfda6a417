//! `init`.

use super::spec::SpecArgument;
use super::target::TargetOptions;

/// A request for `init`.
#[derive(Debug, Clone)]
pub struct Init {
    /// What to build.
    pub spec: Option<SpecArgument>,
    /// The file or folder to read; `None`: the current folder.
    pub from: Option<camino::Utf8PathBuf>,
    /// Overwrite an envforge.toml that is there.
    pub force: bool,
    /// The machine that will run it.
    pub target: TargetOptions,
}

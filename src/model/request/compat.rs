//! `compat`.

use camino::Utf8PathBuf;

/// A request for `compat lint`.
#[derive(Debug, Clone)]
pub struct CompatLint {
    /// The folder of `.toml` files; without one the matrix of this program.
    pub dir: Option<Utf8PathBuf>,
}

/// A request for `compat refresh`.
#[derive(Debug, Clone)]
pub struct CompatRefresh {
    /// Frameworks to compare.
    pub frameworks: Vec<String>,
    /// Only the rows of this release.
    pub release: Option<String>,
    /// Also which GPUs the wheels have code for: reads their libraries, up to gigabytes for each row.
    pub architectures: bool,
    /// The directory whose files get drafts of rows for new releases.
    pub write: Option<Utf8PathBuf>,
}

/// A request for `compat abi`.
#[derive(Debug, Clone)]
pub struct CompatAbi {
    /// The wheel.
    pub wheel: Utf8PathBuf,
    /// The spec whose lock it is held against; without one the project's.
    pub spec: Option<String>,
    /// Another lock file.
    pub lockfile: Option<Utf8PathBuf>,
}

/// A request for `compat site`.
#[derive(Debug, Clone)]
pub struct CompatSite {
    /// The folder the pages are written to.
    pub dir: Utf8PathBuf,
}

/// A request for `compat use`.
#[derive(Debug, Clone)]
pub struct CompatUse {
    /// The edition.
    pub file: Option<Utf8PathBuf>,
    /// The SHA-256 that its publisher names.
    pub sha256: Option<String>,
    /// The matrix this program was built with.
    pub builtin: bool,
}

/// A request for `compat show`.
#[derive(Debug, Clone)]
pub struct CompatShow {
    /// The row's name or its beginning, as messages write it: `variant pytorch 2.8.0`.
    pub row: String,
}

//! `import`.

use camino::Utf8PathBuf;

/// A request for `import`.
#[derive(Debug, Clone)]
pub struct Import {
    /// The layout: a directory or a tar.
    pub path: Utf8PathBuf,
    /// The tag it gets, with `-unverified` at its end.
    pub tag: String,
    /// Keep the evidence in it, too.
    pub evidence: bool,
}

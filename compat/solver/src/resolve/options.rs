//! The options of a resolution.

/// The allowed sources of nvcc for the `devel` flavour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolkitSources {
    /// The base distribution's own package.
    pub distribution: bool,
    /// The wheels of CUDA releases whose nvcc wheel is complete (13.0 and newer).
    pub wheels: bool,
    /// The vendor's apt repository.
    pub vendor: bool,
}

impl Default for ToolkitSources {
    fn default() -> Self {
        Self { distribution: true, wheels: true, vendor: true }
    }
}

/// The options besides spec and target.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResolveOptions {
    /// Whether a forward-compatibility package is allowed where supported.
    pub forward_compat: bool,
    /// The only base to consider: `debian:13`.
    pub base: Option<String>,
    /// The allowed sources of nvcc.
    pub toolkit: ToolkitSources,
    /// Whether unpublished variants are rejected instead of built from source.
    pub no_source: bool,
    /// Whether a variant whose GPU code was not read is rejected even where it is named.
    pub refuse_unknown: bool,
    /// The moment whose releases are considered (RFC 3339, UTC); `None`: all.
    pub as_of: Option<String>,
}

//! What the user allows and where things may come from.

/// Where nvcc may be taken from for the `devel` flavour.
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

/// What `resolve` may use beyond the spec and the target.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResolveOptions {
    /// Admit a forward-compatibility package where it is legal.
    pub forward_compat: bool,
    /// The only base to consider: `debian:13`.
    pub base: Option<String>,
    /// Where nvcc may come from.
    pub toolkit: ToolkitSources,
    /// Do not build from source what nobody publishes.
    pub no_source: bool,
}

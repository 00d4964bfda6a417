//! `plan`.

use super::project::ProjectOptions;
use super::spec::SpecArgument;
use super::spec_parts::SpecParts;
use super::target::TargetOptions;

/// A request for `plan`.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What to plan: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]`.
    pub spec: Option<SpecArgument>,
    /// What the spec is restricted to.
    pub parts: SpecParts,
    /// Which project.
    pub project: ProjectOptions,
    /// The machine that will run it.
    pub target: TargetOptions,
    /// The base image instead of the chosen one, such as debian:13.
    pub base: Option<String>,
    /// Python requirements to check against the stack.
    pub with: Vec<String>,
    /// The date whose releases are considered.
    pub as_of: Option<String>,
    /// Packages that may be built from source.
    pub allow_source: Vec<String>,
}

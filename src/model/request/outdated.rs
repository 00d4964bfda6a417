//! `outdated`.

use super::lock::LockOptions;
use super::project::ProjectOptions;
use super::spec::SpecArgument;
use super::spec_parts::SpecParts;
use super::target::TargetOptions;

/// A request for `outdated`.
#[derive(Debug, Clone)]
pub struct Outdated {
    /// Whose lock: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]`.
    pub spec: Option<SpecArgument>,
    /// What the spec is restricted to.
    pub parts: SpecParts,
    /// Which project.
    pub project: ProjectOptions,
    /// Where the lock lies.
    pub source: LockOptions,
    /// The machine that will run it.
    pub target: TargetOptions,
}

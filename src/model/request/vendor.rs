//! `vendor`.

use camino::Utf8PathBuf;

use super::lock::LockOptions;
use super::project::ProjectOptions;
use super::spec::SpecArgument;
use super::spec_parts::SpecParts;
use super::target::TargetOptions;

/// A request for `vendor`.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[derive(Debug, Clone)]
pub struct Vendor {
    /// Whose lock: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]`.
    pub spec: Option<SpecArgument>,
    /// The folder; several locks may share it, and each file lies there once.
    pub dir: Utf8PathBuf,
    /// Gather nothing: read what is there and compare it with the folder's locks.
    pub check: bool,
    /// Make the layers that need a container, and add them.
    pub layers: bool,
    /// Add the evidence of the image that was built here.
    pub evidence: bool,
    /// With --check: ask the indexes for each wheel.
    pub upstream: bool,
    /// What the spec is restricted to.
    pub parts: SpecParts,
    /// Which project.
    pub project: ProjectOptions,
    /// Which lock is used and how.
    pub source: LockOptions,
    /// The machine that will run it.
    pub target: TargetOptions,
}

//! `add` and `remove`.

use super::project::ProjectOptions;
use super::target::TargetOptions;

/// What happens to the packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageAction {
    /// They are added, or replaced.
    Add,
    /// They are removed.
    Remove,
}

/// A request for `add` or `remove`.
#[derive(Debug, Clone)]
pub struct EditPackages {
    /// What happens to the packages.
    pub action: PackageAction,
    /// Requirements to add, or names to remove.
    pub packages: Vec<String>,
    /// They are distribution packages.
    pub apt: bool,
    /// Show the changes of the file; write and lock nothing.
    pub dry_run: bool,
    /// Which project.
    pub project: ProjectOptions,
    /// The machine that will run it.
    pub target: TargetOptions,
}

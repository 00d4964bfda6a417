//! `inspect`, `diff`, `size`, `prune`.

use super::project::ProjectOptions;
use super::spec_parts::SpecParts;

/// A request for `inspect`.
#[derive(Debug, Clone)]
pub struct Inspect {
    /// An image, a spec or a lock file.
    pub name: Option<String>,
    /// Print its bill of materials, as SPDX 2.3 JSON.
    pub sbom: bool,
    /// What the spec is restricted to.
    pub parts: SpecParts,
    /// Which project.
    pub project: ProjectOptions,
}

/// A request for `diff`.
#[derive(Debug, Clone)]
pub struct Diff {
    /// An image, a spec or a lock file.
    pub from: String,
    /// The other; without it the project.
    pub to: Option<String>,
    /// Write the changes as an HTML page, too.
    pub html: Option<camino::Utf8PathBuf>,
    /// What the specs are restricted to.
    pub parts: SpecParts,
    /// Which project, in place of the other.
    pub project: ProjectOptions,
}

/// The parts whose sizes are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeBy {
    /// Layers of the image.
    Component,
    /// Device code in its libraries.
    Gpu,
}

/// A request for `size`.
#[derive(Debug, Clone)]
pub struct Size {
    /// An image or a spec.
    pub name: Option<String>,
    /// The parts.
    pub by: SizeBy,
    /// Write the sizes as an HTML page with a treemap, too.
    pub html: Option<camino::Utf8PathBuf>,
    /// What the spec is restricted to.
    pub parts: SpecParts,
    /// Which project.
    pub project: ProjectOptions,
}

/// A request for `prune`.
#[derive(Debug, Clone)]
pub struct Prune {
    /// Remove them; without it they are only listed.
    pub yes: bool,
    /// Files of the cache that no lock in use names, too.
    pub cache: bool,
}

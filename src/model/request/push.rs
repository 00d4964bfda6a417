//! `push`.

use super::project::ProjectOptions;

/// A request for `push`.
#[derive(Debug, Clone)]
pub struct Push {
    /// The image or spec; without it the project's.
    pub image: Option<String>,
    /// Where it goes: with tags, or without for the digest alone.
    pub targets: Vec<String>,
    /// Which project.
    pub project: ProjectOptions,
}

//! `push`.

use crate::model::layer_compression::LayerCompression;

use super::project::ProjectOptions;

/// A request for `push`.
#[derive(Debug, Clone)]
pub struct Push {
    /// The image or spec; without it the project's.
    pub image: Option<String>,
    /// Where it goes: with tags, or without for the digest alone.
    pub targets: Vec<String>,
    /// How its layers are compressed; `None`: as the settings say.
    pub compression: Option<LayerCompression>,
    /// Which project.
    pub project: ProjectOptions,
}

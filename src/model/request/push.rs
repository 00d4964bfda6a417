//! `push`.

use camino::Utf8PathBuf;

use crate::model::layer_compression::LayerCompression;
use crate::model::versions::Machine;

use super::project::ProjectOptions;
use super::spec_parts::SpecParts;

/// A request for `push`.
#[derive(Debug, Clone)]
pub struct Push {
    /// The image or spec; without it the project's.
    pub image: Option<String>,
    /// Where it goes: with tags, or without for the digest alone.
    pub targets: Vec<String>,
    /// How its layers are compressed; `None`: as the settings say.
    pub compression: Option<LayerCompression>,
    /// The platforms that its tags hold, for an index; empty: the image alone.
    pub platforms: Vec<Machine>,
    /// Copy its evidence, too.
    pub evidence: bool,
    /// Sign what it was built from, next to the image.
    pub attest: bool,
    /// The key that signs; without one that of the environment.
    pub key: Option<Utf8PathBuf>,
    /// What the spec is restricted to.
    pub parts: SpecParts,
    /// Which project.
    pub project: ProjectOptions,
}

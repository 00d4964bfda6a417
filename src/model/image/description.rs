//! The finished description of an image: everything its Dockerfile states, as plain values.
//!
//! Serialized it is what the templates may use; templates/README.md lists it.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::model::image::component::ComponentKind;
use crate::model::image::toolkit::ToolkitStep;
use crate::model::versions::{CudaVariant, PythonVersion};

/// Everything that the Dockerfile of an image states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageDescription {
    /// The canonical name, or `envforge/<project>:<hash>` for a build with any addition.
    pub name: String,
    /// Version of envforge.
    pub envforge: &'static str,
    /// Version of the matrix.
    pub matrix: String,
    /// Hash of the lock, hex.
    pub lock: String,
    /// The CUDA variant.
    pub cuda: CudaVariant,
    /// Python of the image.
    pub python: PythonVersion,
    /// Whether a wheel comes from the framework's own index.
    pub framework_index: bool,
    /// The base.
    pub base: BaseDescription,
    /// Distribution packages above the base.
    pub system: SystemDescription,
    /// Wheel layers, lowest first.
    pub layers: Vec<LayerPlan>,
    /// The step that makes /usr/local/cuda.
    pub toolkit: Option<ToolkitStep>,
    /// Distribution packages of the user.
    pub apt: Option<AptDescription>,
    /// Whether the wheels are part of the context.
    pub vendored: bool,
    /// Whether the project has further package indexes.
    pub indexes: bool,
    /// Files of the project.
    pub copies: Vec<CopyDescription>,
    /// Commands of the project.
    pub runs: Vec<RunDescription>,
    /// Environment, sorted by name.
    #[serde(serialize_with = "pairs")]
    pub environment: BTreeMap<String, String>,
    /// Labels, sorted by name.
    #[serde(serialize_with = "pairs")]
    pub labels: BTreeMap<String, String>,
}

/// The base of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BaseDescription {
    /// `debian:12`.
    pub name: String,
    /// `bookworm`.
    pub suite: String,
    /// Number of its locked packages.
    pub packages: usize,
    /// The reference after FROM.
    pub reference: String,
    /// Its archive in the context; empty: it is an image.
    pub archive: &'static str,
}

/// Distribution packages above the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SystemDescription {
    /// Their number.
    pub packages: usize,
}

/// One RUN step that installs wheels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayerPlan {
    /// Its content, for people.
    pub title: String,
    /// Its requirement files in the context.
    pub files: Vec<String>,
    /// Whether the user added it: it changes most often and is the topmost.
    pub user: bool,
    /// Whether wheels of no index are in the context for it.
    pub local: bool,
    /// Its component.
    #[serde(skip)]
    pub kind: ComponentKind,
}

/// Distribution packages of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AptDescription {
    /// Number of packages.
    pub packages: usize,
    /// The requested ones, in a line.
    pub names: String,
}

/// Files of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CopyDescription {
    /// Path in the project.
    pub from: String,
    /// Path in the image.
    pub to: String,
    /// Whether it is a directory.
    pub folder: bool,
    /// Name of a single file in the context.
    pub name: String,
    /// Arguments of COPY, as a JSON array.
    pub words: String,
}

/// A command of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunDescription {
    /// The instruction of a Dockerfile.
    pub instruction: String,
    /// The command.
    pub command: String,
    /// Names of the secrets it may read.
    pub secrets: Vec<String>,
}

/// Everything the engine needs to build an image, and everything that must then be true of it.
#[derive(Debug, Clone)]
pub struct BuildPlan {
    /// The image.
    pub image: ImageDescription,
    /// The context, sorted by path; contains the Dockerfile.
    pub context: Vec<crate::model::image::context::ContextEntry>,
}

fn pairs<S: Serializer>(map: &BTreeMap<String, String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(map)
}

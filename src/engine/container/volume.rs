//! The trait [`Volumes`] and its values: named volumes.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::engine::container::run_request::ContainerFile;
use crate::engine::error::EngineError;

/// A new named volume, filled before a container uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVolume {
    /// Its name.
    pub name: String,
    /// The mount path in containers.
    pub target: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether the volume starts as a copy of the image's content and owner at that path.
    pub copies: bool,
    /// uid and gid of its directory; `None`: the image's.
    pub owner: Option<(u32, u32)>,
}

/// Files of an image by path, each as a tar.
pub type Tars = BTreeMap<String, Vec<u8>>;

/// A function that creates files from files of an image.
pub type Fill = Box<dyn Fn(&Tars) -> Vec<OwnedFile> + Send + Sync>;

/// Volumes to create and fill.
pub struct VolumeSetup {
    /// The image's id.
    pub image: String,
    /// The user namespace mode of the containers that will use the volumes.
    pub user_namespace: Option<String>,
    /// The volumes.
    pub volumes: Vec<NewVolume>,
    /// Paths of the image to read first.
    pub reads: Vec<String>,
    /// Creates the files of the volumes: paths below a target, with owners.
    pub fill: Fill,
}

/// A file with its owner.
#[derive(Debug, Clone)]
pub struct OwnedFile {
    /// The file.
    pub file: ContainerFile,
    /// uid and gid.
    pub owner: (u32, u32),
}

/// The named volumes of an engine.
#[async_trait]
pub trait Volumes: Send + Sync {
    /// Creates and fills volumes; removes all of them on a failure.
    async fn prepare(&self, preparation: VolumeSetup) -> Result<(), EngineError>;
    /// Returns whether a volume of that name exists.
    async fn has_volume(&self, name: &str) -> Result<bool, EngineError>;
    /// Lists the volumes with that label: name and label value.
    async fn volumes(&self, label: &str) -> Result<Vec<(String, String)>, EngineError>;
    /// Removes a volume; succeeds if absent.
    async fn remove_volume(&self, name: &str) -> Result<(), EngineError>;
}

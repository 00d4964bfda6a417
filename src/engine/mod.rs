//! A container engine in envforge's terms. No bollard type crosses this boundary.
//!
//! Owns the traits [`Images`], [`Builder`], [`Runner`] and [`Containers`] and their values. [`Docker`] is the one real
//! implementation, also for Podman: `image` and `build` implement the first two, `container` the others. `connect` finds the daemon and reads its
//! features once; `transport` carries bytes; `classify_error` maps the daemon's errors.

mod archive_file;
mod build;
mod cleanup;
mod connect;
mod container;
mod container_engine;
mod docker;
mod error;
mod gpu;
mod gpu_selection;
mod image;
mod info;
mod limits;
mod lines;
mod orphans;
mod sent_file;
mod transport;

pub use crate::model::image::info::ImageInfo;
pub use crate::model::request::network::Network;
pub use crate::settings::EngineSettings;
pub use build::types::{Builder, ImageBuildRequest, Secret};
pub use container::program::{Attached, ExecRequest, Output, Program, Programs};
pub use container::run_request::{
    ContainerFile, ReachedLimit, RunLimits, RunOutcome, RunRequest, Runner, WritableRoot,
};
pub use container::types::{
    ContainerInfo, ContainerRequest, Containers, Limits, Link, Mount, MountSource, OWNER_LABEL, Port,
    SHELL_LABEL,
};
pub use container::volume::{Fill, NewVolume, OwnedFile, Tars, VolumeSetup, Volumes};
pub use container_engine::Engine;
pub use docker::Docker;
pub use error::EngineError;
pub use gpu::{GpuAccess, GpuChoice, GpuRequest};
pub use gpu_selection::GpuSelection;
pub use image::layered::{
    ConfigOf, Expected, ImageLayer, LayerContent, LayeredImage, PackedLayer, plain_config,
};
pub use image::temporary_tag::{TemporaryTag, is_temporary};
pub use image::types::{Images, PullRequest};
pub use info::{BuilderKind, EngineInfo};

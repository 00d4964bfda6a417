//! A container engine: images, builds and throwaway containers behind one trait.

use crate::engine::build::types::Builder;
use crate::engine::container::run_request::Runner;
use crate::engine::docker::Docker;
use crate::engine::image::types::Images;
use crate::engine::info::EngineInfo;

/// A container engine.
pub trait Engine: Images + Builder + Runner {
    /// Returns the engine's features, read once on connect.
    fn info(&self) -> &EngineInfo;
}

impl Engine for Docker {
    fn info(&self) -> &EngineInfo {
        &self.info
    }
}

//! The machine that will run the image.

use crate::model::versions::Machine;

/// The machine that will run the image.
#[derive(Debug, Clone, Default)]
pub struct TargetOptions {
    /// A GPU of the target: an NVML name, `sm_90` or `9.0`.
    pub gpu: Vec<String>,
    /// The target's driver, such as 535.104.05.
    pub driver: Option<String>,
    /// `any`: do not constrain the image to a machine.
    pub target: Option<String>,
    /// The processor of the image.
    pub platform: Option<Machine>,
    /// Allow NVIDIA's forward-compatibility package where supported.
    pub forward_compat: bool,
    /// Fail instead of building from source.
    pub no_source: bool,
}

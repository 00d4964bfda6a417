//! The target machine: driver and GPUs, detected, given or unconstrained.
//!
//! A plain value, an input of `resolve` and part of the lock. Detection is the caller's.

use serde::{Deserialize, Serialize};

use crate::versions::{ComputeCapability, DriverVersion, Machine};

/// The origin of a target's facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetSource {
    /// Read from this machine's driver.
    Detected,
    /// Given by the user (`--gpu`, `--driver`, `ENVFORGE_GPU`, `ENVFORGE_DRIVER`).
    Named,
    /// No constraint.
    Any,
}

/// One GPU of the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetGpu {
    /// The product name, if given or detected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its compute capability.
    pub compute_capability: ComputeCapability,
}

/// The machine that will run the image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The origin of the facts.
    pub source: TargetSource,
    /// Its driver; `None`: unknown, no constraint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverVersion>,
    /// Its GPUs; empty: no constraint.
    #[serde(default)]
    pub gpus: Vec<TargetGpu>,
    /// The processor of the image.
    pub machine: Machine,
}

impl Target {
    /// Returns a target without constraints.
    pub fn any(machine: Machine) -> Self {
        Self { source: TargetSource::Any, driver: None, gpus: Vec::new(), machine }
    }
    /// Returns the distinct compute capabilities, ascending.
    pub fn capabilities(&self) -> Vec<ComputeCapability> {
        let mut all: Vec<_> = self.gpus.iter().map(|gpu| gpu.compute_capability).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

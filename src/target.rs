//! The machine that will run the image: driver and GPUs, detected, named or unconstrained.
//!
//! A plain value, an input of `resolve` and part of the lock. Detection itself is `gpu.rs`.

use serde::{Deserialize, Serialize};

use crate::versions::{ComputeCapability, DriverVersion, Machine};

/// Where a target's facts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetSource {
    /// Read from this machine's driver.
    Detected,
    /// Named by the user (`--gpu`, `--driver`, `ENVFORGE_GPU`, `ENVFORGE_DRIVER`).
    Named,
    /// No constraint.
    Any,
}

/// One GPU of the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetGpu {
    /// The product's name, if one was given or detected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its compute capability.
    pub compute_capability: ComputeCapability,
}

/// The machine that will run the image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Where the facts come from.
    pub source: TargetSource,
    /// Its driver; `None`: not known, no constraint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverVersion>,
    /// Its GPUs; empty: no constraint.
    #[serde(default)]
    pub gpus: Vec<TargetGpu>,
    /// The processor of the image.
    pub machine: Machine,
}

impl Target {
    /// The target without any constraint.
    pub fn any(machine: Machine) -> Self {
        Self { source: TargetSource::Any, driver: None, gpus: Vec::new(), machine }
    }
    /// The different compute capabilities, ascending.
    pub fn capabilities(&self) -> Vec<ComputeCapability> {
        let mut all: Vec<_> = self.gpus.iter().map(|gpu| gpu.compute_capability).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

//! The source of uv's own wheel.

use super::error::PackagesError;
use super::settings::PackageSettings;
use crate::engine::Engine;
use crate::model::lock::LockedTool;

/// Source of uv: the index of the settings, else pip's default index, from a container of the base.
#[derive(Clone, Copy)]
pub struct UvSource<'a> {
    /// The engine that has the base.
    pub engine: &'a dyn Engine,
    /// The base in the engine, by tag or id.
    pub base_reference: &'a str,
    /// Sources of packages.
    pub settings: &'a PackageSettings,
}

/// Returns the error for a wheel of uv that cannot be used.
pub(super) fn unusable(tool: &LockedTool, detail: &str) -> PackagesError {
    PackagesError::UvWheel { file: tool.file.clone(), detail: detail.to_owned() }
}

//! The source of uv's own wheel.

use super::error::PackagesError;
use super::resolver_image::ResolverImage;
use super::settings::PackageSettings;
use crate::engine::Engine;
use crate::model::lock::LockedTool;

/// Source of uv: the index of the settings, else pip's default index, from a container of the image that resolves.
#[derive(Clone, Copy)]
pub struct UvSource<'a> {
    /// The engine.
    pub engine: &'a dyn Engine,
    /// The image that resolves.
    pub image: &'a dyn ResolverImage,
    /// Sources of packages.
    pub settings: &'a PackageSettings,
}

/// Returns the error for a wheel of uv that cannot be used.
pub(super) fn unusable(tool: &LockedTool, detail: &str) -> PackagesError {
    PackagesError::UvWheel { file: tool.file.clone(), detail: detail.to_owned() }
}

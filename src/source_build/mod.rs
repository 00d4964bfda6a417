//! Source builds of unpublished variants: a release archive becomes a wheel in a separate image, once, and is cached.
//!
//! Owns the way from a row of the matrix, or from a source distribution that the user allows, to that wheel: archive, builder
//! image, compile, export. The wheel is then treated
//! like a prebuilt one. Must not choose a stack, nor print.

mod archive;
mod build;
mod error;
mod export;
mod package;
mod recipe;
mod wheel_cache;

pub use archive::source_archive;
pub use build::{SourceRequest, build_wheel};
pub use error::SourceError;
pub use package::{PackageBuild, build_package, build_requires, extra_requirements};
pub use recipe::Recipe;
pub use wheel_cache::cached_wheel;

//! Source builds: a release archive or a source distribution becomes a wheel in a separate image, once, and is cached.
//!
//! Owns the way from a row of the matrix, or from a source distribution that the user allows, to that wheel: archive, builder
//! lock, compile, export. The wheel is then treated like a prebuilt one. Must not choose a stack, assemble an image, nor print.

mod archive;
mod build;
mod error;
mod export;
mod package;
mod patches;
mod recipe;
mod wheel_cache;

pub use archive::{release_archive, source_archive};
pub use build::{Compilation, compile};
pub use error::SourceError;
pub use package::{
    Obstacle, PackageBuild, build_requires, extra_requirements, pyproject_requires, recipe_sha256,
};
pub use recipe::Recipe;
pub use wheel_cache::{built_once, cached_wheel};

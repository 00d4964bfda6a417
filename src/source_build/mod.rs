//! What nobody publishes, built: a release archive becomes a wheel in an image of its own, once, and the cache keeps it.
//!
//! Owns the way from a row of the matrix, or from a source distribution that the user allows, to that wheel: archive, builder
//! image, compile, export. What is done with the wheel
//! is the same as with one that somebody else built. Must not choose a stack, nor print.

mod archive;
mod error;
mod export;
mod kept;
mod make;
mod package;
mod recipe;

pub use archive::source_archive;
pub use error::SourceError;
pub use kept::kept_wheel;
pub use make::{SourceRequest, build_wheel};
pub use package::{PackageBuild, beyond, build_package, build_requires};
pub use recipe::Recipe;

//! Versions that are easily confused, each with its own type: driver, CUDA toolkit, compute capability, variant, Python.
//!
//! Owns parsing, ordering and printing. Must not know any table: which versions exist is data in `compat/`.
//!

mod compute_capability;
mod cuda_variant;
mod dotted;
mod error;
mod machine;
mod number;
mod python;
mod serde_text;

#[cfg(test)]
mod tests;

pub use compute_capability::ComputeCapability;
pub use cuda_variant::CudaVariant;
pub use dotted::{
    CudaApiVersion, DriverVersion, FrameworkVersion, GlibcVersion, LibraryVersion, ToolkitVersion,
};
pub use error::VersionError;
pub use machine::Machine;
pub use python::PythonVersion;

//! The compatibility matrix: driver, GPU, toolkit, cuDNN, NCCL, framework, Python and base systems.
//!
//! Owns the tables, their lint and lookups. Must not choose: that is `resolve`.

pub mod coupled;
mod files;
mod from_source;
#[cfg(feature = "resolve")]
mod gpu_name;
pub mod lint;
#[cfg(feature = "resolve")]
mod lookup;
pub mod needs;
#[cfg(feature = "resolve")]
mod overlay;
pub mod parse;
pub mod rows;
pub mod tables;
mod toolkit;

pub use files::FolderError;
#[cfg(feature = "resolve")]
pub(crate) use gpu_name::DATA_CENTRE;
#[cfg(feature = "resolve")]
pub use gpu_name::{GpuNameError, GpuNames, NamedGpu};
pub use lint::{Fault, faults};
#[cfg(feature = "resolve")]
pub use lookup::VariantQuery;
pub use parse::{CompatError, read_unlinted};
pub use rows::Row;
pub use tables::Matrix;
pub use toolkit::TOOLKIT;

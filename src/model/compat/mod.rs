//! The compatibility matrix: driver, GPU, toolkit, cuDNN, NCCL, framework, Python and base systems.
//!
//! Owns the tables, their lint and lookups. Must not choose: that is `resolve`.

pub mod coupled;
mod embedded;
mod from_source;
mod gpu_name;
pub mod lint;
mod lookup;
pub mod needs;
mod overlay;
pub mod parse;
pub mod rows;
pub mod tables;
mod toolkit;

pub(crate) use gpu_name::DATA_CENTRE;
pub use gpu_name::{GpuNameError, GpuNames, NamedGpu};
pub use lint::{Fault, faults};
pub use lookup::VariantQuery;
pub use parse::{CompatError, read};
pub use rows::Row;
pub use tables::Matrix;
pub use toolkit::TOOLKIT;

//! The compatibility matrix: driver, GPU, toolkit, cuDNN, NCCL, framework, Python and base systems.
//!
//! Owns the tables and look-ups over them. Must not choose: that is `resolve`.

mod gpu_name;
mod lookup;
pub mod tables;

pub use gpu_name::{GpuNameError, NamedGpu};
pub use lookup::VariantQuery;
pub use tables::Matrix;

//! The compatibility matrix: driver, GPU, toolkit, cuDNN, NCCL, framework, Python and base systems.
//!
//! Owns the tables and look-ups over them. Must not choose: that is `resolve`.

pub mod tables;

pub use tables::Matrix;

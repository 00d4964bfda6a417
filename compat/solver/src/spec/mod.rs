//! Specs: the requests of users, `pytorch-cuda:2.8-cu128-py3.11-devel`.
//!
//! Owns the grammar, its errors and the canonical spelling. Must not know which names and versions exist: `resolve`
//! checks them against the matrix.
//!
//! ```text
//! SPEC = NAME [":" VERSION ["+" CUDA]] ["-" CUDA] ["-" PYTHON] ["-" FLAVOUR]
//! ```

mod cuda_request;
mod error;
mod flavour;
mod parse;
mod parts;
mod suffix;
mod types;

#[cfg(test)]
mod tests;

pub use cuda_request::CudaRequest;
pub use error::{SpecError, SpecProblem};
pub use flavour::Flavour;
pub use parse::strip_unverified;
pub use parts::{cuda_part, python_part};
pub use types::Spec;

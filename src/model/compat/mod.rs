//! The compatibility matrix, and the copy of it that this program embeds.

mod embedded;
mod failures;

pub use embedded::{built_in, embedded};
pub use envforge_compat::matrix::*;

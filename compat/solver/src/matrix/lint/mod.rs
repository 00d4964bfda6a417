//! The consistency rules of the matrix.
//!
//! Owns the rules for a valid matrix: a source in every row, no dangling reference, no contradicting rows. Must not
//! know a fact: it only compares rows. `Matrix::read` applies it (envforge's `build.rs` too: a faulty matrix does not build).

mod code;
mod coupled;
mod cycle;
mod drivers;
mod fault;
mod frameworks;
mod jit;
mod keys;
mod needs;
mod nvcc;
mod systems;
#[cfg(test)]
mod tests;

pub use fault::{Fault, Problem};
#[cfg(feature = "resolve")]
pub(super) use keys::key;

use super::tables::Matrix;
use fault::Faults;

/// Returns all faults of a matrix.
pub fn faults(matrix: &Matrix) -> Vec<Fault> {
    let mut faults = Faults::default();
    keys::check(matrix, &mut faults);
    drivers::check(matrix, &mut faults);
    code::check(matrix, &mut faults);
    frameworks::check(matrix, &mut faults);
    systems::check(matrix, &mut faults);
    nvcc::check(matrix, &mut faults);
    jit::check(matrix, &mut faults);
    coupled::check(matrix, &mut faults);
    needs::check(matrix, &mut faults);
    cycle::check(matrix, &mut faults);
    faults.0
}

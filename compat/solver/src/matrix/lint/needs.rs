//! Consistency of requirements, of modules that several distributions install, and of libraries of the operating system.

use super::super::tables::Matrix;
use super::fault::{Faults, Problem};

pub(super) fn check(matrix: &Matrix, faults: &mut Faults) {
    for row in &matrix.requirements {
        let known = matrix.products.iter().any(|product| product.framework == row.framework);
        faults.require(known, row, "product of framework", &row.framework);
        if row.first > row.last {
            faults.contradiction(row, format!("from {}", row.first), row, format!("to {}", row.last));
        }
        if row.requires.is_empty() {
            faults.add(row, Problem::Empty { field: "requires" });
        }
        for one in &row.requires {
            let is_bounded = one.contains(['=', '<', '>']) && !one.contains([';', ' ', '[']);
            faults.require(is_bounded, row, "name with versions", one);
        }
    }
    for row in &matrix.same_modules {
        let sorted = row.packages.windows(2).all(|pair| pair[0] < pair[1]);
        faults.require(sorted && row.packages.len() > 1, row, "two packages or more, sorted", &row.module);
        let twice = |name: &&String| {
            let rows = matrix.same_modules.iter().filter(|other| other.packages.contains(name));
            rows.count() > 1
        };
        for name in row.packages.iter().filter(twice) {
            faults.require(false, row, "one module for", name);
        }
    }
    for row in &matrix.wheel_libraries {
        if row.libraries.is_empty() {
            faults.add(row, Problem::Empty { field: "libraries" });
        }
        for library in &row.libraries {
            let known = matrix.distribution_libraries.iter().any(|other| other.library == *library);
            faults.require(known, row, "distribution_library", library);
        }
    }
}

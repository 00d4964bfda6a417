//! Base systems and developer stacks.

use super::super::tables::Matrix;
use super::fault::{Fault, Faults, Problem};

pub(super) fn check(matrix: &Matrix, faults: &mut Faults) {
    for base in &matrix.bases {
        if base.gcc.is_empty() {
            faults.add(base, Problem::Empty { field: "gcc" });
        }
        if base.name.split(':').next() != Some(base.distribution.as_str()) {
            faults.unknown(base, "distribution", &base.distribution);
        }
    }
    if matrix.bases.iter().filter(|base| base.default).count() != 1 {
        faults.0.push(Fault {
            file: "bases.toml".to_owned(),
            row: "base".to_owned(),
            problem: Problem::Missing { wanted: "exactly one base must have `default = true`" },
        });
    }
    for stack in &matrix.stacks {
        if stack.versions.is_empty() {
            faults.add(stack, Problem::Empty { field: "versions" });
        }
        let numpy = stack.versions.get("numpy").map_or("", |version| version.split('.').next().unwrap_or(""));
        if stack.numpy_line != format!("{numpy}.x") {
            let says = format!("numpy line {}", stack.numpy_line);
            faults.contradiction(stack, says, stack, format!("numpy {numpy}"));
        }
    }
}

//! Sources of nvcc: their bases, toolkits and parts have rows.

use super::super::rows::Row;
use super::super::tables::{Matrix, Toolkit};
use super::code::same_minor;
use super::fault::{Faults, Problem};
use crate::versions::ToolkitVersion;

/// Hex digits of an OpenPGP fingerprint, version 4.
const FINGERPRINT: usize = 40;

pub(super) fn check(matrix: &Matrix, faults: &mut Faults) {
    for row in &matrix.nvcc_packages {
        base(matrix, row, &row.base, faults);
        minor(matrix, row, &row.cuda, faults);
        parts(matrix, row, &row.headers, faults);
    }
    for row in &matrix.nvcc_wheels {
        parts(matrix, row, &row.parts, faults);
        if row.parts.is_empty() {
            faults.add(row, Problem::Empty { field: "parts" });
        }
    }
    for row in &matrix.ptxas_wheels {
        parts(matrix, row, &row.parts, faults);
        if !row.parts.iter().any(|part| part == "nvcc") {
            faults.require(false, row, "part", "nvcc");
        }
        let is_of_major = |toolkit: &Toolkit| toolkit.cuda.major() == row.cuda_major;
        faults.require(matrix.toolkits.iter().any(is_of_major), row, "toolkit", row.cuda_major);
        faults.require(row.file.ends_with("/bin/ptxas"), row, "file of ptxas", &row.file);
    }
    for row in &matrix.nvcc_repositories {
        base(matrix, row, &row.base, faults);
        for cuda in &row.cuda {
            minor(matrix, row, cuda, faults);
        }
        let hex = row.fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit());
        faults.require(
            hex && row.fingerprint.len() == FINGERPRINT,
            row,
            "key with fingerprint",
            &row.fingerprint,
        );
        if row.machines.is_empty() {
            faults.add(row, Problem::Empty { field: "machines" });
        }
    }
    for row in &matrix.nvcc_vendor {
        parts(matrix, row, &row.headers, faults);
        if row.packages.is_empty() {
            faults.add(row, Problem::Empty { field: "packages" });
        }
    }
    for row in &matrix.profilers {
        let known = matrix.toolkits.iter().any(|toolkit| toolkit.cuda == row.cuda);
        faults.require(known, row, "toolkit", &row.cuda);
    }
}

fn base(matrix: &Matrix, row: &dyn Row, name: &str, faults: &mut Faults) {
    faults.require(matrix.bases.iter().any(|base| base.name == name), row, "base", name);
}

fn minor(matrix: &Matrix, row: &dyn Row, cuda: &ToolkitVersion, faults: &mut Faults) {
    let known = matrix.toolkits.iter().any(|toolkit| same_minor(&toolkit.cuda, cuda));
    faults.require(known, row, "toolkit", cuda);
}

fn parts(matrix: &Matrix, row: &dyn Row, names: &[String], faults: &mut Faults) {
    for name in names {
        let known = matrix.component_wheels.iter().any(|wheel| wheel.part == *name);
        faults.require(known, row, "component", name);
    }
}

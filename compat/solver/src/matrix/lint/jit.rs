//! Consistency of the compilers that frameworks call at run time.

use super::super::tables::{JitCompiler, Matrix};
use super::code::known;
use super::fault::{Faults, Problem};

pub(super) fn check(matrix: &Matrix, faults: &mut Faults) {
    for (at, row) in matrix.jit.iter().enumerate() {
        known(matrix, row, row.newest.iter().chain(&row.missing), faults);
        if row.framework.is_some() == row.triton.is_some() {
            faults.add(row, Problem::Missing { wanted: "either `framework` or `triton` is required" });
        }
        if row.newest.is_none() && row.toolkit.is_none() {
            faults.add(row, Problem::Empty { field: "newest" });
        }
        if let Some(framework) = &row.framework {
            let product = matrix.products.iter().any(|product| product.framework == *framework);
            faults.require(product, row, "product of framework", framework);
        }
        if let (Some(first), Some(last)) = (&row.first, &row.last)
            && first > last
        {
            faults.contradiction(row, format!("from {first}"), row, format!("to {last}"));
        }
        for missing in
            row.missing.iter().filter(|missing| row.newest.is_some_and(|newest| **missing >= newest))
        {
            faults.contradiction(row, format!("missing {missing}"), row, "an older `newest`".to_owned());
        }
        if let Some(other) = matrix.jit[..at].iter().find(|other| overlaps(row, other)) {
            let says = |row: &JitCompiler| row.newest.map_or("the toolkit".to_owned(), |cc| cc.to_string());
            faults.contradiction(row, says(row), other, says(other));
        }
        pythons(matrix, row, faults);
        other_ptxas(matrix, row, faults);
    }
}

/// Whether two rows of a framework are about one release.
fn overlaps(row: &JitCompiler, other: &JitCompiler) -> bool {
    let before = |row: &JitCompiler, other: &JitCompiler| {
        row.last.as_ref().zip(other.first.as_ref()).is_some_and(|(last, first)| last < first)
    };
    let majors = row.cuda_major.zip(other.cuda_major).is_none_or(|(major, other)| major == other);
    row.framework.is_some()
        && row.framework == other.framework
        && majors
        && !before(row, other)
        && !before(other, row)
}

/// Checks that Triton has a wheel for every Python of the variants that require it.
fn pythons(matrix: &Matrix, row: &JitCompiler, faults: &mut Faults) {
    let Some(triton) = &row.triton else { return };
    if row.python.is_empty() {
        faults.add(row, Problem::Empty { field: "python" });
        return;
    }
    for variant in matrix.variants.iter().filter(|variant| variant.triton.as_ref() == Some(triton)) {
        let required = |python: &&_| variant.triton_for(**python).is_some();
        if let Some(python) =
            variant.python.iter().filter(required).find(|python| !row.python.contains(python))
        {
            let says = format!("triton {triton} for Python {python}");
            faults.contradiction(variant, says, row, "no such wheel".to_owned());
        }
    }
}

/// Checks that another ptxas is for a Triton, for GPUs that its own lacks, and of a major whose wheels are known.
fn other_ptxas(matrix: &Matrix, row: &JitCompiler, faults: &mut Faults) {
    let Some(other) = &row.other_ptxas else { return };
    known(matrix, row, other.gpus.iter(), faults);
    if row.triton.is_none() {
        faults.add(row, Problem::Missing { wanted: "`other_ptxas` is for rows with `triton`" });
    }
    if other.gpus.is_empty() {
        faults.add(row, Problem::Empty { field: "other_ptxas.gpus" });
    }
    let has = |gpu: &&_| row.newest.is_some_and(|newest| **gpu <= newest) && !row.missing.contains(gpu);
    for gpu in other.gpus.iter().filter(has) {
        faults.contradiction(row, format!("another ptxas for {gpu}"), row, "a target for it".to_owned());
    }
    let wheels = matrix.ptxas_wheels.iter().any(|wheels| wheels.cuda_major == other.newest_cuda_major);
    faults.require(wheels, row, "ptxas wheels of CUDA", other.newest_cuda_major);
}

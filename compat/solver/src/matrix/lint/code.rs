//! Consistency of capabilities, compilers, GPUs and the GPU code of libraries.

use std::collections::BTreeMap;

use super::super::rows::Row;
use super::super::tables::{Capability, Matrix, Variant};
use super::fault::{Faults, Problem};
use crate::versions::{ComputeCapability, ToolkitVersion};

pub(super) fn check(matrix: &Matrix, faults: &mut Faults) {
    compilers(matrix, faults);
    for row in &matrix.gpus {
        architecture(matrix, row, row.compute_capability, &row.arch, faults);
    }
    for row in &matrix.chips {
        architecture(matrix, row, row.compute_capability, &row.arch, faults);
        if row.names.is_empty() && row.vgpu_boards.is_empty() {
            faults.add(row, Problem::Empty { field: "names" });
        }
    }
    names(matrix, faults);
    for row in &matrix.cudnn {
        known(matrix, row, row.code.sass.iter().chain(&row.code.ptx), faults);
    }
    for row in &matrix.nccl {
        known(matrix, row, row.code.sass.iter().chain(&row.code.ptx), faults);
    }
    for row in &matrix.components {
        let compiler = matrix.compilers.iter().any(|compiler| same_minor(&compiler.cuda, &row.cuda));
        faults.require(compiler, row, "compiler", &row.cuda);
    }
}

pub(super) fn same_minor(left: &ToolkitVersion, right: &ToolkitVersion) -> bool {
    left.major() == right.major() && left.minor() == right.minor()
}

pub(super) fn capability(matrix: &Matrix, cc: ComputeCapability) -> Option<&Capability> {
    matrix.capabilities.iter().find(|row| row.cc == cc)
}

/// Checks that every capability has a row.
pub(super) fn known<'a>(
    matrix: &Matrix,
    row: &dyn Row,
    named: impl Iterator<Item = &'a ComputeCapability>,
    faults: &mut Faults,
) {
    for cc in named {
        faults.require(capability(matrix, *cc).is_some(), row, "compute capability", cc);
    }
}

/// Checks that a compiler targets a capability exactly from its first to its last CUDA.
fn compilers(matrix: &Matrix, faults: &mut Faults) {
    for compiler in &matrix.compilers {
        known(matrix, compiler, compiler.targets.iter(), faults);
        for capability in &matrix.capabilities {
            let alive = capability.first_cuda <= compiler.cuda
                && capability.last_cuda.as_ref().is_none_or(|last| compiler.cuda <= *last);
            let targeted = compiler.targets.contains(&capability.cc);
            if alive != targeted {
                let says = format!("{} {}", if targeted { "target" } else { "no target" }, capability.cc);
                let last = capability.last_cuda.as_ref().map_or("now".to_owned(), ToString::to_string);
                let differs = format!("CUDA {} to {last}", capability.first_cuda);
                faults.contradiction(compiler, says, capability, differs);
            }
        }
    }
}

fn architecture(matrix: &Matrix, row: &dyn Row, cc: ComputeCapability, arch: &str, faults: &mut Faults) {
    match capability(matrix, cc) {
        None => faults.unknown(row, "compute capability", cc),
        Some(capability) if capability.arch != arch => {
            let differs = format!("architecture {}", capability.arch);
            faults.contradiction(row, format!("architecture {arch}"), capability, differs);
        }
        Some(_) => {}
    }
}

/// Checks that a GPU row matches one of its chips, and that no two GPU rows share a name.
fn names(matrix: &Matrix, faults: &mut Faults) {
    let lower = |name: &str| name.to_lowercase();
    let mut by_name: BTreeMap<String, &dyn Row> = BTreeMap::new();
    for gpu in &matrix.gpus {
        for name in std::iter::once(&gpu.name).chain(&gpu.aliases) {
            if let Some(other) = by_name.insert(lower(name), gpu) {
                faults.contradiction(gpu, format!("name `{name}`"), other, "the same name".to_owned());
            }
        }
        let chips: Vec<_> = matrix
            .chips
            .iter()
            .filter(|chip| chip.names.iter().any(|name| lower(name) == lower(&gpu.name)))
            .collect();
        if let Some(chip) = chips.first()
            && chips.iter().all(|chip| chip.compute_capability != gpu.compute_capability)
        {
            let says = format!("capability {}", gpu.compute_capability.dotted());
            faults.contradiction(gpu, says, *chip, chip.compute_capability.dotted());
        }
    }
}

/// Checks that the CUDA of a variant's PTX is known or unknown, and older than its toolkit where it is named.
pub(super) fn ptx(variant: &Variant, faults: &mut Faults) {
    if variant.unknown_ptx && !variant.ptx.is_empty() {
        faults.contradiction(variant, "`ptx`".to_owned(), variant, "`unknown_ptx`".to_owned());
    }
    let Some(cuda) = &variant.ptx_cuda else { return };
    let (major, minor) = (variant.toolkit.major(), variant.toolkit.minor());
    if variant.ptx.is_empty() || cuda.major() != major || cuda.minor() >= minor {
        let toolkit = format!("toolkit {}", variant.toolkit);
        faults.contradiction(variant, format!("`ptx_cuda` {cuda}"), variant, toolkit);
    }
}

//! The toolkit as a product: one row for each release with known parts, drivers and compiler.
//!
//! Contains no facts: every field follows from a row of another table.

use super::tables::{Channel, Components, Matrix, Status, Variant};
use crate::versions::{CudaVariant, GlibcVersion, Machine, PythonVersion};

/// The framework of the toolkit product.
pub const TOOLKIT: &str = "cuda";

/// Adds the rows of the toolkit to the variants.
pub(super) fn add(matrix: &mut Matrix) {
    if !matrix.products.iter().any(|product| product.framework == TOOLKIT && product.package.is_none()) {
        return;
    }
    let rows: Vec<_> =
        matrix.components.iter().filter_map(|components| variant(matrix, components)).collect();
    for machine in [Machine::X86_64, Machine::Aarch64] {
        matrix.variants.extend(rows.iter().map(|row| Variant { machine, ..row.clone() }));
    }
}

fn variant(matrix: &Matrix, components: &Components) -> Option<Variant> {
    let cuda = &components.cuda;
    matrix.toolkits.iter().find(|row| row.cuda == *cuda)?;
    let same =
        |row: &&super::tables::Compiler| row.cuda.major() == cuda.major() && row.cuda.minor() == cuda.minor();
    let compiler = matrix.compilers.iter().find(same)?;
    let libraries = matrix.component_wheels.iter().filter(|wheel| wheel.library);
    let min_glibc: GlibcVersion = libraries.map(|wheel| &wheel.glibc).max()?.clone();
    let mut python: Vec<PythonVersion> = matrix.bases.iter().map(|base| base.python).collect();
    python.sort_unstable();
    python.dedup();
    let (major, minor) = (u8::try_from(cuda.major()).ok()?, u8::try_from(cuda.minor()).ok()?);
    Some(Variant {
        framework: TOOLKIT.to_owned(),
        version: cuda.to_string().parse().ok()?,
        cuda: CudaVariant { major, minor: Some(minor) },
        machine: Machine::X86_64,
        released: String::new(),
        toolkit: cuda.clone(),
        package: None,
        install: Vec::new(),
        parts: Vec::new(),
        shared: Vec::new(),
        cudart: components.versions.get("runtime").cloned(),
        cudnn: None,
        nccl: None,
        triton: None,
        triton_before: None,
        companions: std::collections::BTreeMap::new(),
        python,
        python_freethreaded: Vec::new(),
        python_preview: Vec::new(),
        arch: Some(compiler.targets.clone()),
        ptx: Vec::new(),
        ptx_cuda: None,
        unknown_ptx: false,
        channel: Channel::Default,
        status: Status::Stable,
        min_glibc,
        cxx11_abi: None,
        verified: true,
        evidence: "components".to_owned(),
        notes: None,
        source: components.source.clone(),
    })
}

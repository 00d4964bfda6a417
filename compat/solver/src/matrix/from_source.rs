//! Source builds as variants, so that the rules check them like published ones.
//!
//! Contains no facts: every field follows from a row of another table.

use super::tables::{Channel, Matrix, SourceBuild, Status, Variant};
use crate::versions::GlibcVersion;

/// Adds the variant of every source build.
pub(super) fn add(matrix: &mut Matrix) {
    let rows: Vec<_> = matrix.source_builds.iter().filter_map(|build| variant(matrix, build)).collect();
    matrix.source_variants.extend(rows);
}

fn variant(matrix: &Matrix, build: &SourceBuild) -> Option<Variant> {
    let versions = &matrix.components.iter().find(|row| row.cuda == build.toolkit)?.versions;
    // The CUDA libraries are wheels, the rest is compiled on the base.
    let linked = matrix.component_wheels.iter().filter(|wheel| build.parts.contains(&wheel.part));
    let min_glibc: GlibcVersion = linked.map(|wheel| &wheel.glibc).max()?.clone();
    Some(Variant {
        framework: build.framework.clone(),
        version: build.version.clone(),
        cuda: build.cuda,
        machine: build.machine,
        released: String::new(),
        toolkit: build.toolkit.clone(),
        package: None,
        install: Vec::new(),
        parts: build.parts.clone(),
        shared: Vec::new(),
        cudart: versions.get("runtime").cloned(),
        cudnn: Some(build.cudnn.clone()),
        nccl: Some(build.nccl.clone()),
        triton: build.triton.clone(),
        triton_before: None,
        companions: build.companions.clone(),
        python: build.python.clone(),
        python_freethreaded: Vec::new(),
        python_preview: Vec::new(),
        arch: Some(build.arch.clone()),
        ptx: Vec::new(),
        ptx_cuda: None,
        unknown_ptx: false,
        channel: Channel::Source,
        status: Status::Experimental,
        min_glibc,
        cxx11_abi: None,
        verified: true,
        evidence: "source".to_owned(),
        notes: None,
        source: build.source.clone(),
    })
}

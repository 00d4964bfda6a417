//! The ptxas that an image brings for Triton, whose own has no target for a GPU.

use std::cmp::Reverse;

use super::toolkit::nvcc;
use crate::matrix::tables::{Components, JitCompiler, OtherPtxas, PtxasVariable, PtxasWheels};
use crate::resolve::candidate::Candidate;
use crate::spec::Flavour;
use crate::stack::PtxasChoice;
use crate::versions::{ComputeCapability, ToolkitVersion};

/// A ptxas for Triton, and the rows that prove it.
pub(crate) struct PtxasFound<'a> {
    pub(crate) choice: PtxasChoice,
    /// The Triton whose own ptxas lacks the GPUs.
    pub(crate) triton: &'a JitCompiler,
    /// The wheels with ptxas.
    pub(crate) wheels: &'a PtxasWheels,
}

/// Why a Triton gets no other ptxas.
pub(super) enum NoPtxas {
    /// This Triton takes none, or does not compile for these GPUs with one.
    NotTaken,
    /// No release has one that this Triton takes and that drivers of the variant's CUDA major load.
    NoRelease,
    /// The image has nvcc or parts of it in another release than this one.
    OtherRelease(ToolkitVersion),
}

/// Returns the ptxas of the nvcc wheels with which a Triton compiles for these GPUs, or why there is none.
///
/// It is of the variant's CUDA major, of the toolkit's own release if that has the GPUs, else of the next minor that has
/// them. The driver loads what it makes: machine code of any minor runs on every driver from the major's lowest on ("CUDA
/// minor version compatibility", docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html; PTX is the
/// exception, and Triton loads machine code). The rules `driver-too-old` and `driver-drops-gpu` hold the driver to that
/// lowest one and to the GPU. A ptxas of another major would need another driver.
pub(super) fn ptxas_for<'a>(
    candidate: &Candidate<'a>,
    triton: &'a JitCompiler,
    gpus: &[ComputeCapability],
) -> Result<PtxasFound<'a>, NoPtxas> {
    let matrix = candidate.question.matrix;
    let helps = |other: &&OtherPtxas| gpus.iter().all(|gpu| other.gpus.contains(gpu));
    let other = triton.other_ptxas.as_ref().filter(helps).ok_or(NoPtxas::NotTaken)?;
    let release = release_with(candidate, other, gpus).ok_or(NoPtxas::NoRelease)?;
    let of_major = |row: &&PtxasWheels| row.cuda_major == release.cuda.major();
    let wheels = matrix.ptxas_wheels.iter().find(of_major).ok_or(NoPtxas::NoRelease)?;
    if has_other_release(candidate, &wheels.parts, &release.cuda) {
        return Err(NoPtxas::OtherRelease(release.cuda.clone()));
    }
    let parts = matrix.wheels_of(&release.cuda, |wheel| wheels.parts.contains(&wheel.part));
    let choice = PtxasChoice {
        cuda: release.cuda.clone(),
        parts: parts.ok_or(NoPtxas::NoRelease)?,
        file: wheels.file.clone(),
        variable: other.variable,
        gpus: gpus.to_vec(),
    };
    Ok(PtxasFound { choice, triton, wheels })
}

/// Returns the release of the variant's major, not older than its toolkit, whose ptxas has the GPUs.
fn release_with<'a>(
    candidate: &Candidate<'a>,
    other: &OtherPtxas,
    gpus: &[ComputeCapability],
) -> Option<&'a Components> {
    let matrix = candidate.question.matrix;
    let toolkit = &candidate.variant.toolkit;
    // To Triton 3.5 it replaces Triton's own for every GPU.
    let all = match other.variable {
        PtxasVariable::EveryGpu => candidate.question.target.capabilities(),
        PtxasVariable::Blackwell => gpus.to_vec(),
    };
    let has_gpus = |row: &&Components| {
        let compiler = matrix.compiler(&row.cuda);
        compiler.is_some_and(|compiler| all.iter().all(|gpu| compiler.targets.contains(gpu)))
    };
    let of_major = |row: &&Components| {
        row.cuda.major() == toolkit.major()
            && row.cuda.minor() >= toolkit.minor()
            && row.cuda.major() <= other.newest_cuda_major
    };
    let rows = matrix.components.iter().filter(of_major).filter(has_gpus);
    rows.min_by_key(|row| (row.cuda.minor(), row.cuda != *toolkit, Reverse(&row.cuda)))
}

/// Whether the image has one of these parts in another release: for nvcc, or because the variant pins it.
fn has_other_release(candidate: &Candidate<'_>, parts: &[String], release: &ToolkitVersion) -> bool {
    let is_devel = candidate.question.spec.flavour == Flavour::Devel;
    let of_nvcc = is_devel.then(|| nvcc(candidate)).flatten().map_or(&[][..], |choice| choice.parts);
    let mut pinned = candidate.variant.parts.iter().chain(of_nvcc);
    *release != candidate.variant.toolkit && pinned.any(|part| parts.contains(part))
}

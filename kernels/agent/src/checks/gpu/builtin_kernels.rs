//! The kernels of this program, compiled by the image's own NVRTC for the GPU at hand.

use super::{CheckFailure, library};
use crate::checks::Options;
use crate::gpu::device::Device;
use crate::kernels::{self, Capability, Kernel};
use crate::libraries::{self, SearchPaths};
use crate::nvrtc::{Nvrtc, Target, load_builtins};

/// Code of one source file for one GPU.
pub(crate) struct Code {
    pub(crate) bytes: Vec<u8>,
    /// `sm_90`, or `compute_90` if the toolkit does not know the GPU and the driver has to compile.
    pub(crate) target: String,
}

/// Compiles a kernel's source.
pub(crate) fn code(options: &Options, device: &Device, name: &str) -> Result<Code, CheckFailure> {
    let chip = device.facts.capability;
    let kernel =
        kernels::kernel(name).ok_or_else(|| CheckFailure::error(format!("unknown kernel {name}")))?;
    if libraries::first(&SearchPaths::of(&options.root).search(), "nvrtc").is_none() {
        return made_ahead(kernel, chip);
    }
    let path = library(options, "nvrtc", &[])?;
    load_builtins(&path);
    let nvrtc =
        Nvrtc::open(&path).map_err(|problem| CheckFailure::fail(format!("{}: {problem}", path.display())))?;
    let known = nvrtc.architectures().map_err(CheckFailure::fail)?;
    if known.is_empty() {
        return made_ahead(kernel, chip);
    }
    let target = Target::for_chip(chip, &known).ok_or_else(|| {
        let text = format!("{} no longer makes code for sm_{}{}", path.display(), chip.0, chip.1);
        CheckFailure::fail(text).hint("use an older CUDA, which supports this GPU (see `envforge list`)")
    })?;
    let bytes = nvrtc
        .compile(name, kernel.source, target)
        .map_err(|failure| CheckFailure::fail(format!("{name}: {}", failure.text())).hint(failure.hint()))?;
    Ok(Code { bytes, target: target.name() })
}

/// The PTX that this program contains for images without NVRTC, or with one before 11.2; the driver compiles it.
fn made_ahead(kernel: &Kernel, chip: Capability) -> Result<Code, CheckFailure> {
    let ptx = kernel.ptx_for(chip).ok_or_else(|| {
        CheckFailure::fail(format!(
            "NVRTC 11.2 or later is not in the image, and no PTX of {} supports this GPU",
            kernel.name
        ))
    })?;
    let target = format!("{}, made ahead", Target::Ptx(ptx.lowest).name());
    Ok(Code { bytes: [ptx.text.as_bytes(), &[0]].concat(), target })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_without_nvrtc_uses_the_prebuilt_ptx() {
        let wmma = kernels::kernel("gemm_wmma").expect("in the table");
        let Ok(code) = made_ahead(wmma, (9, 0)) else { panic!("there is one") };
        assert_eq!(code.target, "compute_80, made ahead");
        assert!(code.bytes.ends_with(b"\0") && !code.bytes[..code.bytes.len() - 1].contains(&0));
        assert!(made_ahead(wmma, (6, 1)).is_err(), "no tensor cores there");
    }
}

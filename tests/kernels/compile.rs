//! Every kernel compiles with NVRTC 11.8, 12.4, 12.8 and the newest 13, for every architecture they know, and uses the
//! tensor cores where it should.

use crate::kernels::{Capability, KERNELS, kernel};
use crate::nvrtc::{Nvrtc, Target, load_builtins};
use crate::real::{file, unpacked};

fn open(requirement: &str) -> Nvrtc {
    Nvrtc::open(&file(&unpacked(requirement), "libnvrtc.so.")).expect("it loads")
}

/// Compiles everything, and gives the architectures it was compiled for.
fn compile_all(requirement: &str) -> Vec<Capability> {
    let nvrtc = open(requirement);
    let known = nvrtc.architectures().expect("a list");
    for kernel in KERNELS {
        for chip in &known {
            let target = Target::Cubin(*chip);
            let image = nvrtc
                .compile(kernel.name, kernel.source, target)
                .unwrap_or_else(|failure| panic!("{} {}: {}", kernel.name, target.name(), failure.log));
            assert_eq!(image.get(..4), Some(&b"\x7fELF"[..]), "{} {}", kernel.name, target.name());
            let has = |name: &str| {
                let symbol = format!(".text.{name}\0");
                image.windows(symbol.len()).any(|window| window == symbol.as_bytes())
            };
            for entry in kernel.entries {
                assert_eq!(has(entry.name), entry.lowest <= *chip, "{} {}", entry.name, target.name());
            }
        }
    }
    known
}

#[test]
#[ignore = "needs the package index: gigabytes of wheels"]
fn nvrtc_13_0_compiles_after_its_built_in_functions_were_loaded() {
    let library = file(&unpacked("nvidia-cuda-nvrtc==13.0.88"), "libnvrtc.so.");
    load_builtins(&library);
    let kernel = &KERNELS[0];
    let nvrtc = Nvrtc::open(&library).expect("it loads");
    let image = nvrtc.compile(kernel.name, kernel.source, Target::Cubin((9, 0)));
    assert!(image.is_ok_and(|image| image.starts_with(b"\x7fELF")));
}

/// The tensor-core instructions that must stand in the PTX of a chip.
fn instructions(chip: Capability) -> Vec<&'static str> {
    let mut wanted = Vec::new();
    if chip >= (7, 0) {
        wanted.push("wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32");
    }
    if chip >= (8, 0) {
        wanted.push("wmma.mma.sync.aligned.row.row.m16n16k16.f32.bf16.bf16.f32");
        wanted.push("wmma.mma.sync.aligned.row.row.m16n16k8.f32.tf32.tf32.f32");
    }
    wanted
}

fn look_at_ptx(requirement: &str, known: &[Capability]) {
    let nvrtc = open(requirement);
    let wmma = kernel("gemm_wmma").expect("in the table");
    for chip in known {
        let ptx = nvrtc.compile(wmma.name, wmma.source, Target::Ptx(*chip)).expect("it compiles");
        let ptx = String::from_utf8_lossy(&ptx);
        let wanted = instructions(*chip);
        for instruction in &wanted {
            assert!(ptx.contains(instruction), "{chip:?} lacks {instruction}");
        }
        assert_eq!(ptx.matches("wmma.mma").count(), wanted.len(), "{chip:?}");
    }
}

fn check(requirement: &str, some: &[Capability], none: &[Capability]) {
    let known = compile_all(requirement);
    for chip in some {
        assert!(known.contains(chip), "{requirement} knows {chip:?}: {known:?}");
    }
    for chip in none {
        assert!(!known.contains(chip), "{requirement} does not know {chip:?}: {known:?}");
        let kernel = kernel("gemm_f32").expect("in the table");
        let failure = open(requirement).compile("x", kernel.source, Target::Cubin(*chip)).unwrap_err();
        assert_eq!(failure.status, 5, "{}", failure.text());
        assert!(failure.hint().contains("does not know the architecture"));
    }
    look_at_ptx(requirement, &known);
}

#[test]
#[ignore = "needs the package index: gigabytes of wheels"]
fn nvrtc_11_8_compiles_every_kernel_for_every_architecture() {
    check("nvidia-cuda-nvrtc-cu11==11.8.89", &[(3, 5), (7, 0), (8, 0), (8, 9), (9, 0)], &[(10, 0), (12, 0)]);
}

#[test]
#[ignore = "needs the package index: gigabytes of wheels"]
fn nvrtc_12_4_compiles_every_kernel_for_every_architecture() {
    check("nvidia-cuda-nvrtc-cu12==12.4.127", &[(5, 0), (7, 0), (9, 0)], &[(3, 5), (12, 0)]);
}

#[test]
#[ignore = "needs the package index: gigabytes of wheels"]
fn nvrtc_12_8_compiles_every_kernel_for_every_architecture() {
    check("nvidia-cuda-nvrtc-cu12==12.8.93", &[(5, 0), (7, 0), (9, 0), (10, 0), (12, 0)], &[(3, 5)]);
}

#[test]
#[ignore = "needs the package index: gigabytes of wheels"]
fn the_newest_nvrtc_13_compiles_every_kernel_for_every_architecture() {
    check("nvidia-cuda-nvrtc>=13,<14", &[(7, 5), (9, 0), (10, 0), (12, 0)], &[(7, 0)]);
}

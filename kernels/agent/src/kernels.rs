//! The kernels of `kernels/cuda/`: their sources and entry points. Each file's head says how to launch and verify it.

/// A compute capability: major and minor.
pub(crate) type Capability = (u32, u32);

/// One source file.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// Name of the file without its ending.
    pub(crate) name: &'static str,
    /// CUDA C++ without any `#include`.
    pub(crate) source: &'static str,
    /// What it defines.
    pub(crate) entries: &'static [Entry],
    /// Made ahead by `kernels/ptx/make.py`, for images without NVRTC; ascending.
    pub(crate) ptx: &'static [Ptx],
}

/// PTX of a source file, which the driver of this or any later chip compiles.
#[derive(Debug)]
pub(crate) struct Ptx {
    pub(crate) lowest: Capability,
    pub(crate) text: &'static str,
}

/// The PTX of a kernel that needs nothing newer than the oldest chip of CUDA 11.8.
macro_rules! oldest {
    ($name:literal) => {
        &[Ptx { lowest: (3, 5), text: include_str!(concat!("../../ptx/", $name, ".compute_35.ptx")) }]
    };
}

/// One `extern "C"` kernel of a source file.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// The lowest compute capability it exists for.
    pub(crate) lowest: Capability,
}

/// An entry point for every chip that any toolkit of 11.8 or later compiles for.
const fn everywhere(name: &'static str) -> Entry {
    Entry { name, lowest: (3, 5) }
}

/// All kernels.
pub(crate) const KERNELS: &[Kernel] = &[
    Kernel {
        name: "gemm_f32",
        source: include_str!("../../cuda/gemm_f32.cu"),
        entries: &[everywhere("gemm_f32")],
        ptx: oldest!("gemm_f32"),
    },
    Kernel {
        name: "gemm_wmma",
        source: include_str!("../../cuda/gemm_wmma.cu"),
        entries: &[
            Entry { name: "gemm_wmma_f16", lowest: (7, 0) },
            Entry { name: "gemm_wmma_bf16", lowest: (8, 0) },
            Entry { name: "gemm_wmma_tf32", lowest: (8, 0) },
        ],
        ptx: &[
            Ptx { lowest: (7, 0), text: include_str!("../../ptx/gemm_wmma.compute_70.ptx") },
            Ptx { lowest: (8, 0), text: include_str!("../../ptx/gemm_wmma.compute_80.ptx") },
        ],
    },
    Kernel {
        name: "conv_direct",
        source: include_str!("../../cuda/conv_direct.cu"),
        entries: &[everywhere("conv_direct")],
        ptx: oldest!("conv_direct"),
    },
    Kernel {
        name: "conv_implicit",
        source: include_str!("../../cuda/conv_implicit.cu"),
        entries: &[everywhere("conv_implicit")],
        ptx: oldest!("conv_implicit"),
    },
    Kernel {
        name: "elementwise",
        source: include_str!("../../cuda/elementwise.cu"),
        entries: &[everywhere("axpy_f32"), everywhere("divide_sqrt_f32")],
        ptx: oldest!("elementwise"),
    },
    Kernel {
        name: "reduce",
        source: include_str!("../../cuda/reduce.cu"),
        entries: &[everywhere("sum_u32"), everywhere("sum_f32")],
        ptx: oldest!("reduce"),
    },
    Kernel {
        name: "memory_pattern",
        source: include_str!("../../cuda/memory_pattern.cu"),
        entries: &[everywhere("pattern_write"), everywhere("pattern_invert"), everywhere("pattern_verify")],
        ptx: oldest!("memory_pattern"),
    },
];

/// The kernel of that name.
pub(crate) fn kernel(name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}

impl Kernel {
    /// The entry points that a chip has.
    pub(crate) fn entries_for(&self, capability: Capability) -> impl Iterator<Item = &'static Entry> {
        self.entries.iter().filter(move |entry| entry.lowest <= capability)
    }

    /// The PTX made ahead that serves a chip best; `None` if the chip is older than all.
    pub(crate) fn ptx_for(&self, capability: Capability) -> Option<&'static Ptx> {
        self.ptx.iter().rfind(|ptx| ptx.lowest <= capability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_is_header_free_and_its_head_names_every_entry() {
        // The root package's tests include this file, too.
        let manifest = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let directory = ["../cuda", "kernels/cuda"].map(|path| manifest.join(path));
        let directory = directory.into_iter().find(|path| path.is_dir()).expect("kernels/cuda");
        assert_eq!(
            std::fs::read_dir(directory).expect("a directory").count(),
            KERNELS.len(),
            "a file without a row"
        );
        for kernel in KERNELS {
            assert!(!kernel.source.contains("#include"), "{}", kernel.name);
            let (head, code) = kernel.source.split_once("\n\n").expect("a head");
            assert!(head.lines().all(|line| line.starts_with("//")), "{}", kernel.name);
            for word in ["Proves:", "Entry:", "Launch:", "Verify:"] {
                assert!(head.contains(word), "{} lacks {word}", kernel.name);
            }
            for entry in kernel.entries {
                assert!(head.replace(' ', "").contains(&format!("{}(", entry.name)), "{}", entry.name);
            }
            assert_eq!(
                code.matches("extern \"C\" __global__").count(),
                kernel.entries.len(),
                "{}",
                kernel.name
            );
        }
    }

    #[test]
    fn the_ptx_of_a_chip_has_every_entry_it_can_have() {
        for kernel in KERNELS {
            for chip in [(3, 5), (6, 1), (7, 0), (7, 5), (8, 0), (9, 0), (12, 1)] {
                let text = kernel.ptx_for(chip).map_or("", |ptx| ptx.text);
                for entry in kernel.entries_for(chip) {
                    let line = format!(".visible .entry {}(", entry.name);
                    assert!(text.contains(&line), "{} for {chip:?}", entry.name);
                }
            }
            for ptx in kernel.ptx {
                let (major, minor) = ptx.lowest;
                assert!(
                    ptx.text.contains(&format!(".version 7.8\n.target sm_{major}{minor}\n")),
                    "{}",
                    kernel.name
                );
            }
        }
    }

    #[test]
    fn bf16_needs_capability_8() {
        let wmma = kernel("gemm_wmma").expect("in the table");
        let names = |capability| wmma.entries_for(capability).map(|entry| entry.name).collect::<Vec<_>>();
        assert_eq!(names((6, 1)), [""; 0]);
        assert_eq!(names((7, 5)), ["gemm_wmma_f16"]);
        assert_eq!(names((9, 0)).len(), 3);
    }
}

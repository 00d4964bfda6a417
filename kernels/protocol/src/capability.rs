//! Which machine code runs on which GPU.

use crate::expectation::Capability;

/// GPUs that are one chip with an Arm processor (Tegra). Their machine code runs on no other GPU, and that of other GPUs does
/// not run on them: NVIDIA's CUDA C++ programming guide, "binary compatibility"; the same list is `DEVICE_REQUIREMENT` in
/// PyTorch's `torch/cuda/__init__.py`.
const INTEGRATED: [Capability; 6] = [(3, 2), (5, 3), (6, 2), (7, 2), (8, 7), (10, 1)];

/// The two names of one integrated GPU: CUDA 13 renamed 10.1.
const RENAMED: [Capability; 2] = [(10, 1), (11, 0)];

/// Whether a GPU is one chip with an Arm processor: no machine with another processor has it.
pub fn is_integrated(gpu: Capability) -> bool {
    INTEGRATED.contains(&gpu) || RENAMED.contains(&gpu)
}

/// Whether machine code for `code` runs on a GPU of capability `gpu`: the same major version and no newer minor.
pub fn cubin_runs_on(code: Capability, gpu: Capability) -> bool {
    if RENAMED.contains(&code) && RENAMED.contains(&gpu) {
        return true;
    }
    let apart = |capability| INTEGRATED.contains(&capability);
    code == gpu || (!apart(code) && !apart(gpu) && code.0 == gpu.0 && code.1 <= gpu.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrated_gpus_are_those_of_jetson_boards() {
        assert!([(8, 7), (10, 1), (11, 0)].into_iter().all(is_integrated));
        assert!(![(8, 0), (8, 9), (9, 0), (10, 0), (12, 1)].into_iter().any(is_integrated));
    }

    #[test]
    fn code_runs_upward_within_its_major_version_and_not_across_tegra() {
        for (code, gpu, runs) in [
            ((8, 0), (8, 9), true),
            ((8, 6), (8, 9), true),
            ((8, 9), (8, 6), false),
            ((8, 0), (9, 0), false),
            ((8, 6), (8, 7), false),
            ((8, 7), (8, 7), true),
            ((8, 7), (8, 9), false),
            ((7, 0), (7, 2), false),
            ((7, 2), (7, 5), false),
            ((7, 0), (7, 5), true),
            ((10, 1), (11, 0), true),
            ((11, 0), (10, 1), true),
            ((10, 0), (10, 1), false),
            ((10, 0), (10, 3), true),
            ((12, 0), (12, 1), true),
        ] {
            assert_eq!(cubin_runs_on(code, gpu), runs, "{code:?} on {gpu:?}");
        }
    }
}

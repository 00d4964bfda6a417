//! The checks without which an image of a stack gets no tag, by the stage that runs them.
//!
//! Pure. Names the checks of the agent: a name it does not know never passes.

use crate::lock::Lock;
use crate::stack::Stack;

/// Checks of every image, without a GPU.
const STATIC: [&str; 11] = [
    "distributions",
    "pip-check",
    "linker-closure",
    "one-cuda",
    "loader-path",
    "user",
    "compiler",
    "leftovers",
    "secrets",
    "image-user",
    "image-addresses",
];
/// And of one with a framework.
const FRAMEWORK: [&str; 2] = ["framework-version", "framework-cuda"];
/// NVIDIA's wheels by their name without the CUDA major, and the checks of what is in them.
const LIBRARIES: [(&str, &[&str]); 5] = [
    ("nvidia-cuda-runtime", &["cudart-load"]),
    ("nvidia-cublas", &["cublas-load", "cublaslt-load"]),
    ("nvidia-cudnn", &["cudnn-load", "cudnn-sublibraries"]),
    ("nvidia-nccl", &["nccl-load"]),
    ("nvidia-cuda-nvrtc", &["nvrtc"]),
];
/// Frameworks that name the GPUs they have code for; of the others `code-for-target` reads the files.
const TELLS_ITS_GPUS: [&str; 2] = ["pytorch", "tensorflow"];
/// Frameworks whose checks on a GPU are PyTorch's: they bring it.
const ON_TORCH: [&str; 2] = ["pytorch", "vllm"];
/// Checks of a compiler.
const NVCC: [&str; 2] = ["nvcc-version", "nvcc"];

/// Checks of every GPU.
const GPU: [&str; 17] = [
    "driver",
    "device",
    "memory-copies",
    "memory-pattern",
    "memory-peers",
    "arithmetic-own",
    "gemm-fp32-own",
    "gemm-tf32-own",
    "gemm-fp16-own",
    "gemm-bf16-own",
    "gemm-fp64-cublas",
    "gemm-fp32-cublas",
    "gemm-tf32-cublas",
    "gemm-fp16-cublas",
    "gemm-bf16-cublas",
    "gemm-large",
    "conv-own",
];
/// What each framework must compute; what it cannot is not asked of it.
fn framework_on_gpu(framework: &str) -> &'static [&'static str] {
    match framework {
        "cupy" | "numba" | "onnxruntime" => &["framework-matmul"],
        "tensorflow" | "jax" => &["framework-matmul", "framework-conv"],
        _ => &["framework-matmul", "framework-conv", "framework-autocast"],
    }
}

const CUDNN: [&str; 3] = ["conv-cudnn-forward", "conv-cudnn-backward-data", "conv-cudnn-backward-filter"];
const NCCL: [&str; 5] =
    ["nccl-all-reduce", "nccl-all-gather", "nccl-reduce-scatter", "nccl-broadcast", "nccl-send-recv"];
/// What level quick leaves out.
const FULL: [&str; 1] = ["framework-ddp"];

/// The required checks that need no GPU.
pub fn static_checks(lock: &Lock) -> Vec<String> {
    let stack = &lock.stack;
    let mut all = STATIC.to_vec();
    for wheel in &lock.wheels {
        let part = wheel.name.rsplit_once("-cu").map_or(&*wheel.name, |(part, _)| part);
        let checks = LIBRARIES.iter().filter(|(name, _)| [part, &wheel.name].contains(name));
        all.extend(checks.flat_map(|(_, checks)| *checks));
    }
    if stack.nvcc.is_some() {
        all.extend(NVCC);
    }
    if stack.is_toolkit() {
        return all.into_iter().map(str::to_owned).collect();
    }
    all.extend(FRAMEWORK);
    all.extend(stack.cudnn.as_ref().map(|_| "cudnn-version"));
    all.extend(stack.nccl.as_ref().map(|_| "nccl-version"));
    all.extend(stack.triton.as_ref().map(|_| "triton-version"));
    if !stack.requires.gpu.is_empty() && TELLS_ITS_GPUS.contains(&stack.framework.as_str()) {
        all.push("framework-architectures");
    }
    all.into_iter().map(str::to_owned).collect()
}

/// The required checks that run on a GPU; `full`: those that level quick leaves out, too.
pub fn gpu_checks(stack: &Stack, full: bool) -> Vec<String> {
    let mut all = GPU.to_vec();
    all.extend(stack.cudnn.iter().flat_map(|_| CUDNN));
    all.extend(stack.nccl.iter().flat_map(|_| NCCL));
    if !stack.is_toolkit() {
        all.extend(framework_on_gpu(&stack.framework));
    }
    if full && ON_TORCH.contains(&stack.framework.as_str()) {
        all.extend(FULL);
        all.extend(stack.triton.as_ref().map(|_| "framework-compile"));
    }
    all.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::sample;

    fn has(lock: &Lock, id: &str) -> bool {
        static_checks(lock).iter().chain(&gpu_checks(&lock.stack, true)).any(|known| known == id)
    }

    #[test]
    fn what_is_not_in_the_stack_is_not_required() {
        let mut lock = sample::lock();
        assert!(has(&lock, "cudnn-version") && has(&lock, "conv-cudnn-forward"));
        lock.stack.cudnn = None;
        assert!(!has(&lock, "cudnn-version") && !has(&lock, "conv-cudnn-forward"));
        lock.stack.nccl = None;
        lock.stack.triton = None;
        assert!(!has(&lock, "nccl-all-reduce") && !has(&lock, "framework-compile") && has(&lock, "conv-own"));
    }

    #[test]
    fn each_locked_library_must_load_whatever_its_wheel_is_called() {
        let mut lock = sample::lock();
        lock.wheels.truncate(1);
        for name in ["nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-cudnn"] {
            name.clone_into(&mut lock.wheels[0].name);
            assert!(has(&lock, "cudnn-load") && has(&lock, "cudnn-sublibraries"), "{name}");
            assert!(!has(&lock, "nccl-load") && !has(&lock, "nvrtc"), "{name}");
        }
        "nvidia-cudnn-frontend".clone_into(&mut lock.wheels[0].name);
        assert!(!has(&lock, "cudnn-load"));
    }

    #[test]
    fn no_framework_is_asked_for_what_it_has_not() {
        let mut lock = sample::lock();
        for framework in ["cupy", "numba", "jax", "tensorflow", "onnxruntime"] {
            framework.clone_into(&mut lock.stack.framework);
            let all = gpu_checks(&lock.stack, true);
            assert!(all.iter().any(|id| id == "framework-matmul"), "{framework}");
            assert!(!all.iter().any(|id| id == "framework-ddp" || id == "framework-autocast"), "{framework}");
            let told = static_checks(&lock).iter().any(|id| id == "framework-architectures");
            assert_eq!(told, framework == "tensorflow");
        }
    }

    #[test]
    fn level_quick_leaves_out_only_what_is_slow() {
        let stack = sample::lock().stack;
        let (quick, full) = (gpu_checks(&stack, false), gpu_checks(&stack, true));
        assert!(full.len() > quick.len() && full.starts_with(&quick));
    }

    #[test]
    fn every_check_is_named_once() {
        let lock = sample::lock();
        let all: Vec<_> = static_checks(&lock).into_iter().chain(gpu_checks(&lock.stack, true)).collect();
        let once: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(once.len(), all.len());
    }
}

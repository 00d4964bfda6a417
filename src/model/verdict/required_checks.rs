//! The checks that an image of a stack must pass to get its tags, by the stage that runs them.
//!
//! Pure. Each check's condition is in `envforge_protocol`; this module applies it to a lock.

use envforge_protocol::{CheckId, Level, Requirement, Stage};

use crate::model::lock::Lock;
use crate::model::stack::Stack;

/// Returns the required checks that need no GPU.
pub fn static_checks(lock: &Lock) -> Vec<String> {
    let stack = &lock.stack;
    let checks = || of_stage(Stage::Static);
    let mut all: Vec<_> = checks().filter(|check| check.requirement() == Requirement::EveryImage).collect();
    for wheel in &lock.wheels {
        all.extend(checks().filter(|check| is_in_wheel(*check, &wheel.name)));
    }
    if stack.nvcc.is_some() {
        all.extend(checks().filter(|check| check.requirement() == Requirement::Nvcc));
    }
    if !stack.is_toolkit() {
        all.extend(
            checks().filter(|check| is_for_framework(*check, stack) || is_for_component(*check, stack)),
        );
    }
    ids(all)
}

/// Returns the required checks that run on a GPU; `full`: with those that level quick leaves out.
pub fn gpu_checks(stack: &Stack, full: bool) -> Vec<String> {
    let quick = || of_stage(Stage::Gpu).filter(|check| check.level() <= Level::Quick);
    let mut all: Vec<_> = quick().filter(|check| check.requirement() == Requirement::EveryImage).collect();
    all.extend(quick().filter(|check| is_for_component(*check, stack)));
    all.extend(quick().filter(|check| is_for_framework(*check, stack)));
    if full {
        let full = || of_stage(Stage::Gpu).filter(|check| check.level() == Level::Full);
        all.extend(full().filter(|check| is_for_framework(*check, stack)));
        all.extend(full().filter(|check| is_for_component(*check, stack)));
    }
    ids(all)
}

fn of_stage(stage: Stage) -> impl Iterator<Item = CheckId> {
    CheckId::ALL.iter().copied().filter(move |check| check.stage() == stage)
}

fn ids(checks: Vec<CheckId>) -> Vec<String> {
    checks.into_iter().map(|check| check.as_str().to_owned()).collect()
}

/// Whether a check is required because of that wheel, whose name may end in `-cu` and the CUDA major version.
fn is_in_wheel(check: CheckId, wheel: &str) -> bool {
    let part = wheel.rsplit_once("-cu").map_or(wheel, |(part, _)| part);
    matches!(check.requirement(), Requirement::Wheel(name) if [part, wheel].contains(&name))
}

/// Whether a check is required because of the stack's framework.
fn is_for_framework(check: CheckId, stack: &Stack) -> bool {
    let is_one_of = |names: &[&str]| names.contains(&stack.framework.as_str());
    match check.requirement() {
        Requirement::FrameworkExcept(names) => !stack.is_toolkit() && !is_one_of(names),
        Requirement::FrameworkIn(names) => is_one_of(names),
        Requirement::ListedGpus(names) => !stack.requires.gpu.is_empty() && is_one_of(names),
        _ => false,
    }
}

/// Whether a check is required because of a component of the stack.
fn is_for_component(check: CheckId, stack: &Stack) -> bool {
    match check.requirement() {
        Requirement::Cudnn => stack.cudnn.is_some(),
        Requirement::Nccl => stack.nccl.is_some(),
        Requirement::Triton => !stack.is_toolkit() && stack.triton.is_some(),
        Requirement::TritonIn(names) => stack.triton.is_some() && names.contains(&stack.framework.as_str()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;

    fn has(lock: &Lock, id: &str) -> bool {
        static_checks(lock).iter().chain(&gpu_checks(&lock.stack, true)).any(|known| known == id)
    }

    #[test]
    fn missing_component_is_not_required() {
        let mut lock = sample::lock();
        assert!(has(&lock, "cudnn-version") && has(&lock, "conv-cudnn-forward"));
        lock.stack.cudnn = None;
        assert!(!has(&lock, "cudnn-version") && !has(&lock, "conv-cudnn-forward"));
        lock.stack.nccl = None;
        lock.stack.triton = None;
        assert!(!has(&lock, "nccl-all-reduce") && !has(&lock, "framework-compile") && has(&lock, "conv-own"));
    }

    #[test]
    fn locked_library_must_load_regardless_of_its_wheel_name() {
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
    fn framework_is_not_required_to_do_unsupported_operations() {
        let mut lock = sample::lock();
        for framework in ["cupy", "numba", "jax", "tensorflow", "onnxruntime"] {
            framework.clone_into(&mut lock.stack.framework);
            let all = gpu_checks(&lock.stack, true);
            assert!(all.iter().any(|id| id == "framework-matmul"), "{framework}");
            assert!(!all.iter().any(|id| id == "framework-ddp" || id == "framework-autocast"), "{framework}");
            let listed = static_checks(&lock).iter().any(|id| id == "framework-architectures");
            assert_eq!(listed, framework == "tensorflow");
        }
    }

    #[test]
    fn level_quick_leaves_out_slow_checks() {
        let stack = sample::lock().stack;
        let (quick, full) = (gpu_checks(&stack, false), gpu_checks(&stack, true));
        assert!(full.len() > quick.len() && full.starts_with(&quick));
    }

    #[test]
    fn every_check_is_listed_once() {
        let lock = sample::lock();
        let all: Vec<_> = static_checks(&lock).into_iter().chain(gpu_checks(&lock.stack, true)).collect();
        let once: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(once.len(), all.len());
    }

    #[test]
    fn order_of_the_lists_is_stable() {
        let mut lock = sample::lock();
        lock.wheels.truncate(1);
        "nvidia-cublas-cu12".clone_into(&mut lock.wheels[0].name);
        assert_eq!(
            static_checks(&lock).join(" "),
            "distributions pip-check linker-closure one-cuda loader-path user compiler leftovers secrets image-user \
             image-addresses cublas-load cublaslt-load framework-version framework-cuda cudnn-version nccl-version \
             triton-version framework-architectures"
        );
        assert_eq!(
            gpu_checks(&lock.stack, true).join(" "),
            "driver device memory-copies memory-pattern memory-peers arithmetic-own gemm-fp32-own gemm-tf32-own \
             gemm-fp16-own gemm-bf16-own gemm-fp64-cublas gemm-fp32-cublas gemm-tf32-cublas gemm-fp16-cublas \
             gemm-bf16-cublas gemm-large conv-own conv-cudnn-forward conv-cudnn-backward-data \
             conv-cudnn-backward-filter nccl-all-reduce nccl-all-gather nccl-reduce-scatter nccl-broadcast \
             nccl-send-recv framework-matmul framework-conv framework-autocast framework-ddp framework-compile"
        );
    }
}

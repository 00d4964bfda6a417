//! Errors that say only that something failed: a specific one near them is the reason.

/// Ids of general errors.
const GENERAL: &[&str] = &[
    "bitsandbytes-setup",
    "cuda-not-visible",
    "jax-no-gpu",
    "tensorflow-libraries",
    "tensorflow-no-driver",
    "jax-without-cuda",
    "onnxruntime-no-cuda",
    "nccl-system-error",
    "apptainer-failed",
    "nccl-no-infiniband",
    "nccl-remote-exit",
    "nccl-timeout",
    "xid",
    "wheel-build-failed",
    "extension-build-failed",
    "image-pull-failed",
    "pod-crash-loop",
    "toolkit-hook-failed",
    "enroot-hook",
    "process-killed",
    "package-not-found",
    "compile-backend-failed",
    "ptxas-failed",
    "gpu-library-load-failed",
    "torch-import-failed",
    "worker-exited",
    "engine-failed",
    "index-unreachable",
    "tensorrt-engine-failed",
    "flash-attention-missing",
    "requirements-conflict",
    "segfault",
    "no-gpu-found",
    "package-for-option",
];

/// Ids of statuses that say less than any row.
const LEAST: &[&str] = &["nccl-call-refused", "cuda-call-refused", "kernel-crashed"];

/// Ids of warnings that are no more than a hint at the cause of whatever else a text contains.
const WARNINGS: &[&str] = &["gpu-newer-than-build"];

/// Returns how general an error is: 0 is specific.
pub(super) fn generality(id: &str) -> u8 {
    if WARNINGS.contains(&id) {
        return 3;
    }
    if LEAST.contains(&id) { 2 } else { u8::from(GENERAL.contains(&id)) }
}

/// Ids of lines that healthy programs print too: errors only where a text is about little else, or contains another error.
const NOTES: &[&str] = &[
    "nccl-no-infiniband",
    "nccl-no-libibverbs",
    "tensorflow-no-tensorrt",
    "vllm-no-peer-access",
    "libaio-missing",
    "gpu-newer-than-build",
];

/// Whether healthy programs print the line too.
pub(super) fn is_note(id: &str) -> bool {
    NOTES.contains(&id)
}

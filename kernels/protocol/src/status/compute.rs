//! Statuses of NVRTC and cuBLAS.

use super::{Library, MEMORY, MIXED, REPORT, StatusGroup, explained, group, plain};

pub(super) const GROUPS: &[StatusGroup] = &[
    group(
        Library::Nvrtc,
        "host-memory-full",
        ["NVRTC ran out of memory", "the container's memory limit is too low", "raise it (`--memory`)"],
        &[plain(1, "NVRTC_ERROR_OUT_OF_MEMORY"), plain(14, "NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED")],
    ),
    group(
        Library::Nvrtc,
        "nvrtc-builtins",
        [
            "NVRTC cannot load its builtins",
            "libnvrtc-builtins is missing next to libnvrtc or has a different version, or libstdc++.so.6 or libgcc_s.so.1 is missing, which gives the same message",
            "install the complete nvidia-cuda-nvrtc package of one version, and libstdc++6",
        ],
        &[plain(7, "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE")],
    ),
    group(
        Library::Nvrtc,
        "nvrtc-unknown-gpu",
        [
            "this NVRTC does not support that GPU architecture or option",
            "the GPU is newer than the toolkit, or older than it supports",
            "use a CUDA that supports this GPU: `envforge plan SPEC --gpu NAME`",
        ],
        &[plain(5, "NVRTC_ERROR_INVALID_OPTION")],
    ),
    group(
        Library::Nvrtc,
        "nvrtc-compilation",
        ["NVRTC could not compile the kernel", "its log above shows the line", REPORT],
        &[plain(6, "NVRTC_ERROR_COMPILATION")],
    ),
    group(
        Library::Nvrtc,
        "nvrtc-failed",
        ["NVRTC failed internally", "its files are damaged, or the call was invalid", REPORT],
        &[
            plain(2, "NVRTC_ERROR_PROGRAM_CREATION_FAILURE"),
            plain(3, "NVRTC_ERROR_INVALID_INPUT"),
            plain(4, "NVRTC_ERROR_INVALID_PROGRAM"),
            plain(8, "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION"),
            plain(9, "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION"),
            plain(10, "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID"),
            plain(11, "NVRTC_ERROR_INTERNAL_ERROR"),
            plain(12, "NVRTC_ERROR_TIME_FILE_WRITE_FAILED"),
            plain(13, "NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED"),
            plain(15, "NVRTC_ERROR_PCH_CREATE"),
            plain(16, "NVRTC_ERROR_CANCELLED"),
            plain(17, "NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED"),
        ],
    ),
    group(
        Library::Cublas,
        "cublas-not-initialized",
        ["", "", ""],
        &[explained(
            1,
            "CUBLAS_STATUS_NOT_INITIALIZED",
            "cuBLAS found no usable GPU or driver",
            "the driver is older than this cuBLAS needs, or the GPU's memory is full",
        )],
    ),
    group(
        Library::Cublas,
        "gpu-memory-full",
        ["cuBLAS could not allocate memory on the GPU", "another program uses it", MEMORY],
        &[explained(
            3,
            "CUBLAS_STATUS_ALLOC_FAILED",
            "cuBLAS could not allocate memory",
            "another process holds the GPU's memory",
        )],
    ),
    group(
        Library::Cublas,
        "not-supported-here",
        [
            "cuBLAS does not support this operation on this GPU",
            "the GPU lacks the precision, or cuBLAS dropped the GPU",
            "use a CUDA that has code for this GPU: `envforge plan SPEC --gpu NAME`",
        ],
        &[
            explained(8, "CUBLAS_STATUS_ARCH_MISMATCH", "this GPU lacks the operation", ""),
            explained(15, "CUBLAS_STATUS_NOT_SUPPORTED", "cuBLAS does not offer this on this GPU", ""),
        ],
    ),
    group(
        Library::Cublas,
        "kernel-crashed",
        [
            "a kernel of cuBLAS failed",
            "an earlier error surfaced late, library versions are mixed, or the GPU is faulty",
            "run the program with CUDA_LAUNCH_BLOCKING=1, clear LD_LIBRARY_PATH, search for Xid in `dmesg`",
        ],
        &[
            explained(11, "CUBLAS_STATUS_MAPPING_ERROR", "GPU memory could not be reached", ""),
            explained(
                13,
                "CUBLAS_STATUS_EXECUTION_FAILED",
                "a kernel of cuBLAS failed",
                "cuBLAS has no code for this GPU, or the GPU failed: search for an Xid in the host's kernel log",
            ),
            explained(
                14,
                "CUBLAS_STATUS_INTERNAL_ERROR",
                "cuBLAS failed internally",
                "libcublas and libcublasLt have different versions, or the GPU failed",
            ),
        ],
    ),
    group(
        Library::Cublas,
        "cuda-call-refused",
        [
            "cuBLAS rejected a call as invalid",
            "the calling program has a bug, or cuBLAS and cuBLASLt have different versions",
            MIXED,
        ],
        &[
            explained(7, "CUBLAS_STATUS_INVALID_VALUE", "a parameter is invalid", ""),
            explained(16, "CUBLAS_STATUS_LICENSE_ERROR", "a license is missing", ""),
        ],
    ),
];

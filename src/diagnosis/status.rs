//! Status codes of the driver, NVRTC, cuBLAS, cuDNN and NCCL, by number and by name.
//!
//! Codes that mean the same to a user share a row.

use super::{Finding, entries};

/// Whose status it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// The CUDA driver (`CUresult`); the runtime's codes are the same from 34 on.
    Driver,
    /// NVRTC.
    Nvrtc,
    /// cuBLAS.
    Cublas,
    /// cuDNN 8 and 9.
    Cudnn,
    /// NCCL.
    Nccl,
}

/// Statuses of one library that mean the same to a user.
struct Group {
    library: Library,
    statuses: Statuses,
    meaning: Meaning,
}

type Statuses = &'static [(i32, &'static str)];

/// What a status means: a row of the texts, or words of its own.
enum Meaning {
    Row(&'static str),
    Own(Finding),
}

impl Group {
    fn finding(&self) -> Option<Finding> {
        match self.meaning {
            Meaning::Own(finding) => Some(finding),
            Meaning::Row(id) => entries().find(|entry| entry.id == id).map(Finding::from),
        }
    }
}

const fn known(library: Library, statuses: Statuses, id: &'static str) -> Group {
    Group { library, statuses, meaning: Meaning::Row(id) }
}

const fn group(library: Library, statuses: Statuses, words: [&'static str; 4]) -> Group {
    let [id, what, why, cure] = words;
    let source = match library {
        Library::Driver => "cuda.h of CUDA 12.8 (nvidia-cuda-runtime-cu12 12.8.90)",
        Library::Nvrtc => "nvrtc.h, nvrtcResult of CUDA 13",
        Library::Cublas => "cublas_api.h, cublasStatus_t",
        Library::Cudnn => "cudnn_graph.h, cudnnStatus_t of cuDNN 9; 1 to 15: cuDNN 8",
        Library::Nccl => "nccl.h, ncclResult_t",
    };
    Group { library, statuses, meaning: Meaning::Own(Finding { id, what, why, cure, source }) }
}

const REPORT: &str = "keep `envforge verify --json` of it and report it with the image's lock";
const MIXED: &str = "keep one copy of CUDA on the loader's path, and take a build for this driver and GPU";
const MEMORY: &str = "end other programs on that GPU (`nvidia-smi` lists them) or take another with --gpus";

/// The finding for a status; `None` for success and for codes that are not known.
pub fn of_status(library: Library, code: i32) -> Option<Finding> {
    let of_library = |group: &&Group| group.library == library;
    let has_code = |group: &&Group| group.statuses.iter().any(|(known, _)| *known == code);
    GROUPS.iter().filter(of_library).find(has_code)?.finding()
}

/// The finding for the longest status name in a text of lower case.
pub(super) fn named_in(text: &str) -> Option<Finding> {
    let names = GROUPS.iter().flat_map(|group| group.statuses.iter().map(move |(_, name)| (group, *name)));
    let found = names.filter(|(_, name)| has_word(text, &name.to_ascii_lowercase()));
    found.max_by_key(|(_, name)| name.len())?.0.finding()
}

/// True if the word stands in the text on its own.
fn has_word(text: &str, word: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(inside) && !text[at + word.len()..].starts_with(inside))
}

const GROUPS: &[Group] = &[
    group(
        Library::Driver,
        &[(2, "CUDA_ERROR_OUT_OF_MEMORY")],
        [
            "gpu-memory-full",
            "the GPU's memory is full",
            "another program uses it, or the work is too large for this GPU",
            MEMORY,
        ],
    ),
    known(Library::Driver, &[(222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION")], "ptx-too-new"),
    known(Library::Driver, &[(34, "CUDA_ERROR_STUB_LIBRARY")], "stub-library"),
    group(
        Library::Driver,
        &[
            (46, "CUDA_ERROR_DEVICE_UNAVAILABLE"),
            (101, "CUDA_ERROR_INVALID_DEVICE"),
            (102, "CUDA_ERROR_DEVICE_NOT_LICENSED"),
        ],
        [
            "gpu-unavailable",
            "the driver does not give this GPU",
            "it is in exclusive mode and taken, is no GPU of this container, or its vGPU has no licence",
            "look at the compute mode and processes in `nvidia-smi -q`, or take another with --gpus",
        ],
    ),
    known(Library::Driver, &[(100, "CUDA_ERROR_NO_DEVICE")], "no-device"),
    known(Library::Driver, &[(209, "CUDA_ERROR_NO_BINARY_FOR_GPU")], "no-code-for-gpu"),
    group(
        Library::Driver,
        &[
            (200, "CUDA_ERROR_INVALID_IMAGE"),
            (218, "CUDA_ERROR_INVALID_PTX"),
            (221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"),
            (223, "CUDA_ERROR_JIT_COMPILATION_DISABLED"),
            (225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC"),
            (300, "CUDA_ERROR_INVALID_SOURCE"),
        ],
        [
            "code-not-loaded",
            "the driver cannot load or compile the program's GPU code",
            "the code is damaged or newer than the driver, or the driver's PTX compiler is not in the container",
            "take a build with machine code for this GPU, or a newer driver; start it with NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        ],
    ),
    group(
        Library::Driver,
        &[
            (214, "CUDA_ERROR_ECC_UNCORRECTABLE"),
            (220, "CUDA_ERROR_NVLINK_UNCORRECTABLE"),
            (226, "CUDA_ERROR_CONTAINED"),
            (714, "CUDA_ERROR_HARDWARE_STACK_ERROR"),
        ],
        [
            "gpu-broken",
            "the GPU reported a hardware error",
            "its memory or a link had an error that could not be corrected",
            "look at `nvidia-smi -q -d ECC` and for Xid in `dmesg`; reset the GPU or have it replaced",
        ],
    ),
    group(
        Library::Driver,
        &[
            (217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"),
            (704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"),
            (705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"),
            (711, "CUDA_ERROR_TOO_MANY_PEERS"),
        ],
        [
            "no-peer-access",
            "these GPUs cannot reach each other's memory",
            "the board, a virtual machine or MIG does not allow it",
            "set NCCL_P2P_DISABLE=1 and give the container `--shm-size=1g` or more",
        ],
    ),
    group(
        Library::Driver,
        &[
            (700, "CUDA_ERROR_ILLEGAL_ADDRESS"),
            (710, "CUDA_ERROR_ASSERT"),
            (715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"),
            (716, "CUDA_ERROR_MISALIGNED_ADDRESS"),
            (717, "CUDA_ERROR_INVALID_ADDRESS_SPACE"),
            (718, "CUDA_ERROR_INVALID_PC"),
            (719, "CUDA_ERROR_LAUNCH_FAILED"),
            (721, "CUDA_ERROR_TENSOR_MEMORY_LEAK"),
        ],
        [
            "kernel-crashed",
            "a kernel crashed on the GPU",
            "it touched memory that is not its own, failed an assertion, or the GPU is faulty",
            "run it again with CUDA_LAUNCH_BLOCKING=1; if our own kernels crash too, look for Xid in `dmesg`",
        ],
    ),
    group(
        Library::Driver,
        &[(702, "CUDA_ERROR_LAUNCH_TIMEOUT"), (909, "CUDA_ERROR_TIMEOUT")],
        [
            "kernel-too-slow",
            "a kernel did not end in time",
            "the GPU also drives a display, or hangs",
            "take a GPU without display; look for Xid in `dmesg`",
        ],
    ),
    group(
        Library::Driver,
        &[
            (701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
            (720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"),
            (912, "CUDA_ERROR_INVALID_CLUSTER_SIZE"),
        ],
        [
            "launch-too-large",
            "the GPU is too small for this kernel",
            "it asks for more registers, shared memory or blocks than this GPU has",
            REPORT,
        ],
    ),
    group(
        Library::Driver,
        &[
            (302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND"),
            (303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"),
            (500, "CUDA_ERROR_NOT_FOUND"),
            (301, "CUDA_ERROR_FILE_NOT_FOUND"),
        ],
        [
            "cuda-part-missing",
            "a part of CUDA was not found",
            "libraries of two versions are mixed, or the driver is older than the library",
            MIXED,
        ],
    ),
    group(
        Library::Driver,
        &[(304, "CUDA_ERROR_OPERATING_SYSTEM"), (800, "CUDA_ERROR_NOT_PERMITTED")],
        [
            "system-refused",
            "the system refused the driver's call",
            "the container lacks a device node, a right or locked memory (seccomp, cgroup, ulimit)",
            "start it with the GPU by CDI or the nvidia runtime rather than by --device; raise `--ulimit memlock`",
        ],
    ),
    group(
        Library::Driver,
        &[
            (801, "CUDA_ERROR_NOT_SUPPORTED"),
            (215, "CUDA_ERROR_UNSUPPORTED_LIMIT"),
            (224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY"),
            (811, "CUDA_ERROR_CDP_NOT_SUPPORTED"),
            (812, "CUDA_ERROR_CDP_VERSION_MISMATCH"),
        ],
        [
            "not-supported-here",
            "this GPU or driver does not have the function",
            "it is newer than the driver, or this kind of GPU never had it",
            MIXED,
        ],
    ),
    known(Library::Driver, &[(802, "CUDA_ERROR_SYSTEM_NOT_READY")], "fabric-not-ready"),
    known(Library::Driver, &[(803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH")], "driver-combination"),
    known(
        Library::Driver,
        &[(804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE")],
        "forward-compat-not-allowed",
    ),
    group(
        Library::Driver,
        &[
            (805, "CUDA_ERROR_MPS_CONNECTION_FAILED"),
            (806, "CUDA_ERROR_MPS_RPC_FAILURE"),
            (807, "CUDA_ERROR_MPS_SERVER_NOT_READY"),
            (808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"),
            (809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED"),
            (810, "CUDA_ERROR_MPS_CLIENT_TERMINATED"),
        ],
        [
            "mps-failed",
            "the multi-process service did not serve this program",
            "its control daemon is not reachable from the container, is full, or ended",
            "share its pipe folder and `--ipc=host` with the container, or unset CUDA_MPS_PIPE_DIRECTORY",
        ],
    ),
    known(Library::Driver, &[(999, "CUDA_ERROR_UNKNOWN")], "uvm-missing"),
    group(
        Library::Driver,
        &[
            (1, "CUDA_ERROR_INVALID_VALUE"),
            (3, "CUDA_ERROR_NOT_INITIALIZED"),
            (4, "CUDA_ERROR_DEINITIALIZED"),
            (5, "CUDA_ERROR_PROFILER_DISABLED"),
            (6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED"),
            (7, "CUDA_ERROR_PROFILER_ALREADY_STARTED"),
            (8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED"),
            (201, "CUDA_ERROR_INVALID_CONTEXT"),
            (202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT"),
            (205, "CUDA_ERROR_MAP_FAILED"),
            (206, "CUDA_ERROR_UNMAP_FAILED"),
            (207, "CUDA_ERROR_ARRAY_IS_MAPPED"),
            (208, "CUDA_ERROR_ALREADY_MAPPED"),
            (210, "CUDA_ERROR_ALREADY_ACQUIRED"),
            (211, "CUDA_ERROR_NOT_MAPPED"),
            (212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY"),
            (213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER"),
            (216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE"),
            (219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"),
            (400, "CUDA_ERROR_INVALID_HANDLE"),
            (401, "CUDA_ERROR_ILLEGAL_STATE"),
            (402, "CUDA_ERROR_LOSSY_QUERY"),
            (600, "CUDA_ERROR_NOT_READY"),
            (703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING"),
            (708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE"),
            (709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"),
            (712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"),
            (713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"),
            (900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
            (901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"),
            (902, "CUDA_ERROR_STREAM_CAPTURE_MERGE"),
            (903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"),
            (904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"),
            (905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"),
            (906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"),
            (907, "CUDA_ERROR_CAPTURED_EVENT"),
            (908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"),
            (910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"),
            (911, "CUDA_ERROR_EXTERNAL_DEVICE"),
            (913, "CUDA_ERROR_FUNCTION_NOT_LOADED"),
            (914, "CUDA_ERROR_INVALID_RESOURCE_TYPE"),
            (915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"),
            (916, "CUDA_ERROR_KEY_ROTATION"),
        ],
        [
            "cuda-call-refused",
            "CUDA refused a call as wrong",
            "the calling program has a fault, or library and driver do not belong together",
            REPORT,
        ],
    ),
    group(
        Library::Nvrtc,
        &[(1, "NVRTC_ERROR_OUT_OF_MEMORY"), (14, "NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED")],
        [
            "host-memory-full",
            "NVRTC ran out of memory",
            "the container's memory limit is too low",
            "raise it (`--memory`)",
        ],
    ),
    group(
        Library::Nvrtc,
        &[(7, "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE")],
        [
            "nvrtc-builtins",
            "NVRTC cannot load its builtins",
            "libnvrtc-builtins is missing beside libnvrtc or of another version, or libstdc++.so.6 or libgcc_s.so.1 is missing, which it says in the same words",
            "install the whole nvidia-cuda-nvrtc package of one version, and libstdc++6",
        ],
    ),
    group(
        Library::Nvrtc,
        &[(5, "NVRTC_ERROR_INVALID_OPTION")],
        [
            "nvrtc-unknown-gpu",
            "this NVRTC does not know that GPU architecture or option",
            "the GPU is newer than the toolkit, or older than its floor",
            "take a CUDA that knows this GPU: `envforge plan SPEC --gpu NAME`",
        ],
    ),
    group(
        Library::Nvrtc,
        &[(6, "NVRTC_ERROR_COMPILATION")],
        ["nvrtc-compilation", "NVRTC could not compile the kernel", "its log, above, names the line", REPORT],
    ),
    group(
        Library::Nvrtc,
        &[
            (2, "NVRTC_ERROR_PROGRAM_CREATION_FAILURE"),
            (3, "NVRTC_ERROR_INVALID_INPUT"),
            (4, "NVRTC_ERROR_INVALID_PROGRAM"),
            (8, "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION"),
            (9, "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION"),
            (10, "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID"),
            (11, "NVRTC_ERROR_INTERNAL_ERROR"),
            (12, "NVRTC_ERROR_TIME_FILE_WRITE_FAILED"),
            (13, "NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED"),
            (15, "NVRTC_ERROR_PCH_CREATE"),
            (16, "NVRTC_ERROR_CANCELLED"),
            (17, "NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED"),
        ],
        ["nvrtc-failed", "NVRTC failed inside", "its files are damaged, or the call was wrong", REPORT],
    ),
    known(Library::Cublas, &[(1, "CUBLAS_STATUS_NOT_INITIALIZED")], "cublas-not-initialized"),
    group(
        Library::Cublas,
        &[(3, "CUBLAS_STATUS_ALLOC_FAILED")],
        ["gpu-memory-full", "cuBLAS got no memory on the GPU", "another program uses it", MEMORY],
    ),
    group(
        Library::Cublas,
        &[(8, "CUBLAS_STATUS_ARCH_MISMATCH"), (15, "CUBLAS_STATUS_NOT_SUPPORTED")],
        [
            "not-supported-here",
            "cuBLAS does not have this for this GPU",
            "the GPU lacks the precision, or cuBLAS dropped the GPU",
            "take a CUDA that has code for this GPU: `envforge plan SPEC --gpu NAME`",
        ],
    ),
    group(
        Library::Cublas,
        &[
            (11, "CUBLAS_STATUS_MAPPING_ERROR"),
            (13, "CUBLAS_STATUS_EXECUTION_FAILED"),
            (14, "CUBLAS_STATUS_INTERNAL_ERROR"),
        ],
        [
            "kernel-crashed",
            "a kernel of cuBLAS failed",
            "an earlier error shows only now, libraries of two versions are mixed, or the GPU is faulty",
            "run it with CUDA_LAUNCH_BLOCKING=1, clear LD_LIBRARY_PATH, look for Xid in `dmesg`",
        ],
    ),
    group(
        Library::Cublas,
        &[(7, "CUBLAS_STATUS_INVALID_VALUE"), (16, "CUBLAS_STATUS_LICENSE_ERROR")],
        [
            "cuda-call-refused",
            "cuBLAS refused a call as wrong",
            "the calling program has a fault, or cuBLAS and cuBLASLt are of two versions",
            MIXED,
        ],
    ),
    known(
        Library::Cudnn,
        &[(1001, "CUDNN_STATUS_NOT_INITIALIZED"), (1, "CUDNN_STATUS_NOT_INITIALIZED")],
        "cudnn-not-initialized",
    ),
    known(
        Library::Cudnn,
        &[
            (1002, "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"),
            (1003, "CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH"),
            (14, "CUDNN_STATUS_VERSION_MISMATCH"),
        ],
        "cudnn-mixed",
    ),
    group(
        Library::Cudnn,
        &[
            (1008, "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED"),
            (3009, "CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE"),
            (11, "CUDNN_STATUS_RUNTIME_PREREQUISITE_MISSING"),
            (3008, "CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING"),
        ],
        [
            "cudnn-part-missing",
            "cuDNN cannot load one of its parts",
            "a sub-library is missing or damaged, comes from another version, or NVRTC or cuBLAS is missing",
            "install the whole nvidia-cudnn package again, and take other copies off the loader's path",
        ],
    ),
    known(
        Library::Cudnn,
        &[
            (3005, "CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER"),
            (3006, "CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART"),
        ],
        "driver-too-old",
    ),
    known(
        Library::Cudnn,
        &[
            (3007, "CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH"),
            (6, "CUDNN_STATUS_ARCH_MISMATCH"),
            (5003, "CUDNN_STATUS_EXECUTION_FAILED_CUDART"),
        ],
        "cudnn-drops-gpu",
    ),
    group(
        Library::Cudnn,
        &[
            (4003, "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"),
            (4004, "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
            (2, "CUDNN_STATUS_ALLOC_FAILED"),
        ],
        ["gpu-memory-full", "cuDNN got no memory", "another program uses it", MEMORY],
    ),
    group(
        Library::Cudnn,
        &[
            (3000, "CUDNN_STATUS_NOT_SUPPORTED"),
            (3001, "CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN"),
            (3002, "CUDNN_STATUS_NOT_SUPPORTED_SHAPE"),
            (3003, "CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE"),
            (3004, "CUDNN_STATUS_NOT_SUPPORTED_LAYOUT"),
            (3010, "CUDNN_STATUS_NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT"),
            (3011, "CUDNN_STATUS_NOT_SUPPORTED_PADDING"),
            (3012, "CUDNN_STATUS_NOT_SUPPORTED_BAD_LAUNCH_PARAM"),
            (3013, "CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API"),
            (9, "CUDNN_STATUS_NOT_SUPPORTED"),
        ],
        [
            "not-supported-here",
            "cuDNN does not have this on this GPU",
            "the GPU or this cuDNN lacks the type, layout or shape",
            "take a cuDNN that has it, or another layout",
        ],
    ),
    group(
        Library::Cudnn,
        &[
            (5000, "CUDNN_STATUS_EXECUTION_FAILED"),
            (5001, "CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER"),
            (5002, "CUDNN_STATUS_EXECUTION_FAILED_CUBLAS"),
            (5004, "CUDNN_STATUS_EXECUTION_FAILED_CURAND"),
            (8, "CUDNN_STATUS_EXECUTION_FAILED"),
            (7, "CUDNN_STATUS_MAPPING_ERROR"),
            (4000, "CUDNN_STATUS_INTERNAL_ERROR"),
            (4001, "CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED"),
            (4002, "CUDNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE"),
            (4005, "CUDNN_STATUS_INTERNAL_ERROR_BAD_LAUNCH_PARAM"),
            (4006, "CUDNN_STATUS_INTERNAL_ERROR_TEXTURE_CREATION_FAILED"),
            (4, "CUDNN_STATUS_INTERNAL_ERROR"),
        ],
        [
            "kernel-crashed",
            "a kernel of cuDNN failed",
            "an earlier error shows only now, libraries of two versions are mixed, or the GPU is faulty",
            "run it with CUDA_LAUNCH_BLOCKING=1 and CUDNN_LOGLEVEL_DBG=2, clear LD_LIBRARY_PATH, look for Xid in `dmesg`",
        ],
    ),
    group(
        Library::Cudnn,
        &[
            (2000, "CUDNN_STATUS_BAD_PARAM"),
            (2002, "CUDNN_STATUS_BAD_PARAM_NULL_POINTER"),
            (2003, "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER"),
            (2004, "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED"),
            (2005, "CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND"),
            (2006, "CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT"),
            (2007, "CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH"),
            (2008, "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH"),
            (2009, "CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES"),
            (2010, "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE"),
            (2011, "CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH"),
            (2012, "CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE"),
            (3, "CUDNN_STATUS_BAD_PARAM"),
            (5, "CUDNN_STATUS_INVALID_VALUE"),
            (1004, "CUDNN_STATUS_DEPRECATED"),
            (1005, "CUDNN_STATUS_LICENSE_ERROR"),
            (1006, "CUDNN_STATUS_RUNTIME_IN_PROGRESS"),
            (1007, "CUDNN_STATUS_RUNTIME_FP_OVERFLOW"),
            (10, "CUDNN_STATUS_LICENSE_ERROR"),
            (12, "CUDNN_STATUS_RUNTIME_IN_PROGRESS"),
            (13, "CUDNN_STATUS_RUNTIME_FP_OVERFLOW"),
        ],
        [
            "cuda-call-refused",
            "cuDNN refused a call as wrong",
            "the calling program has a fault, or was built for another cuDNN",
            MIXED,
        ],
    ),
    group(
        Library::Nccl,
        &[(1, "ncclUnhandledCudaError")],
        [
            "nccl-cuda-error",
            "a CUDA call of NCCL failed",
            "the driver is too old for this NCCL, memory is full, or a GPU is faulty",
            "set NCCL_DEBUG=INFO: it names the call; then look at what the driver said",
        ],
    ),
    known(Library::Nccl, &[(2, "ncclSystemError")], "nccl-system-error"),
    group(
        Library::Nccl,
        &[(6, "ncclRemoteError"), (7, "ncclInProgress")],
        [
            "nccl-peer-lost",
            "another rank of NCCL does not answer",
            "its process ended, or the network between them is not open",
            "look at the other ranks' output first; NCCL_SOCKET_IFNAME names the interface",
        ],
    ),
    group(
        Library::Nccl,
        &[(3, "ncclInternalError"), (4, "ncclInvalidArgument"), (5, "ncclInvalidUsage")],
        [
            "nccl-call-refused",
            "NCCL refused a call as wrong or failed inside",
            "two ranks share a GPU, the ranks have different NCCL versions, or NCCL has a fault",
            "give each rank a GPU of its own and all the same image; NCCL_DEBUG=INFO says more",
        ],
    ),
];

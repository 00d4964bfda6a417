//! The agent's signatures, constants and status codes against NVIDIA's headers: `g++` evaluates static assertions that are
//! made from the agent's own tables.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use envforge_protocol::status::{Library, groups};

use crate::real::{file, unpacked};

/// Gives each C parameter a letter: `P` for a pointer, `U` for the id of a communicator, `I` for the handle of shared memory, else its size in bytes.
const SHAPES: &str = r"
#include <type_traits>
template <typename T> constexpr char letter = std::is_pointer_v<T> ? 'P' : sizeof(T) == 128 ? 'U' : sizeof(T) == 64 ? 'I' : char('0' + sizeof(T));
template <typename T> struct shape;
template <typename R, typename... A> struct shape<R(A...)> {
    static constexpr char own[] = {letter<R>, letter<A>..., 0};
};
template <typename F> constexpr bool matches(const char *other)
{
    const char *own = shape<std::remove_reference_t<F>>::own;
    for (; *own && *other; ++own, ++other)
        // The address of a GPU is a pointer for the libraries and a number for the driver.
        if (*own != *other && !(*other == 'A' && (*own == 'P' || *own == '8')))
            return false;
    return *own == *other;
}
";

/// Returns the letter of a parameter in the agent's tables.
fn letter(parameter: &str) -> char {
    match parameter {
        "Handle" | "Stream" | "Comm" => 'P',
        pointer if pointer.starts_with('*') => 'P',
        "Address" => 'A',
        "UniqueId" => 'U',
        "IpcHandle" => 'I',
        "u64" | "usize" | "i64" | "Part" => '8',
        "c_int" | "c_uint" | "u32" => '4',
        "u8" => '1',
        other => panic!("unknown type `{other}` in the agent's tables"),
    }
}

/// Returns symbol and shape of every function of the tables of one file: `functions! { Calls { … } }`.
fn functions(source: &str) -> Vec<(String, String)> {
    let entries = source.split(" = c\"").skip(1).filter_map(|rest| {
        let (symbol, rest) = rest.split_once("\"(")?;
        let (parameters, _) = rest.split_once(");")?;
        let letters = parameters.split(',').map(str::trim).filter(|text| !text.is_empty()).map(letter);
        Some((symbol.to_owned(), std::iter::once('4').chain(letters).collect()))
    });
    entries.collect()
}

/// The statuses of a library with that prefix, as constants.
fn statuses(library: Library, prefix: &str) -> Vec<(&'static str, i64)> {
    let all = groups().filter(|group| group.library == library).flat_map(|group| group.statuses);
    all.filter(|status| status.name.starts_with(prefix))
        .map(|status| (status.name, status.code.into()))
        .collect()
}

/// Evaluates the assertions with these headers of wheels; the error is the compiler's.
fn check(
    headers: &[(&str, &str)],
    functions: &[(String, String)],
    constants: &[(&str, i64)],
) -> Result<(), String> {
    assert!(!functions.is_empty() && !constants.is_empty(), "the tables were found");
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("headers.cpp");
    let mut text = String::new();
    for (_, header) in headers {
        let _ = writeln!(text, "#include <{header}>");
    }
    text.push_str(SHAPES);
    for (symbol, shape) in functions {
        let _ = writeln!(text, "static_assert(matches<decltype({symbol})>(\"{shape}\"), \"{symbol}\");");
    }
    for (name, value) in constants {
        let _ = writeln!(text, "static_assert((long long)({name}) == {value}, \"{name}\");");
    }
    fs_err::write(&source, text).expect("written");
    let mut command = Command::new("g++");
    command.args(["-std=c++17", "-fsyntax-only", "-w"]).arg(&source);
    for (wheel, header) in headers {
        let found = file(&unpacked(wheel), header.rsplit('/').next().unwrap_or(header));
        let folder = found.ancestors().nth(Path::new(header).components().count());
        command.arg("-isystem").arg(folder.expect("the header is below a directory"));
    }
    let output = command.output().expect("g++ runs");
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

const DRIVER: [&str; 4] = [
    include_str!("../../kernels/agent/src/gpu/driver.rs"),
    include_str!("../../kernels/agent/src/gpu/device.rs"),
    include_str!("../../kernels/agent/src/gpu/mapped.rs"),
    include_str!("../../kernels/agent/src/gpu/ipc.rs"),
];

/// The numbers that the agent passes to the driver or expects from it.
const DRIVER_CONSTANTS: &[(&str, i64)] = &[
    ("CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR", 75),
    ("CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR", 76),
    ("CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT", 16),
    ("CU_DEVICE_ATTRIBUTE_COMPUTE_MODE", 20),
    ("CU_DEVICE_ATTRIBUTE_ECC_ENABLED", 32),
    ("CU_DEVICE_ATTRIBUTE_PCI_BUS_ID", 33),
    ("CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID", 34),
    ("CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID", 50),
    ("CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED", 102),
    ("CU_STREAM_NON_BLOCKING", 1),
    ("CU_MEM_ALLOCATION_TYPE_PINNED", 1),
    ("CU_MEM_HANDLE_TYPE_NONE", 0),
    ("CU_MEM_LOCATION_TYPE_DEVICE", 1),
    ("CU_MEM_ALLOC_GRANULARITY_MINIMUM", 0),
    ("CU_MEM_ACCESS_FLAGS_PROT_READWRITE", 3),
    ("CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS", 1),
    ("sizeof(CUmemAllocationProp)", 32),
    ("__builtin_offsetof(CUmemAllocationProp, requestedHandleTypes)", 4),
    ("__builtin_offsetof(CUmemAllocationProp, location)", 8),
    ("__builtin_offsetof(CUmemAllocationProp, allocFlags)", 24),
    ("sizeof(CUmemAccessDesc)", 12),
    ("__builtin_offsetof(CUmemAccessDesc, flags)", 8),
    ("sizeof(CUmemLocation)", 8),
    ("__builtin_offsetof(CUmemLocation, id)", 4),
    ("CUDA_ERROR_NOT_SUPPORTED", 801),
    ("CUDA_ERROR_NOT_FOUND", 500),
    ("CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", 704),
];

const NVML: [&str; 2] = [
    include_str!("../../kernels/agent/src/gpu/nvml.rs"),
    include_str!("../../kernels/agent/src/gpu/health.rs"),
];
const NVML_CONSTANTS: &[(&str, i64)] = &[
    ("sizeof(nvmlMemory_t)", 24),
    ("sizeof(nvmlPciInfo_t)", 68),
    ("NVML_CLOCK_SM", 1),
    ("NVML_CLOCK_MEM", 2),
    ("NVML_TEMPERATURE_GPU", 0),
    ("NVML_MEMORY_ERROR_TYPE_CORRECTED", 0),
    ("NVML_MEMORY_ERROR_TYPE_UNCORRECTED", 1),
    ("NVML_VOLATILE_ECC", 0),
    ("sizeof(nvmlEnableState_t)", 4),
    ("nvmlClocksThrottleReasonApplicationsClocksSetting", 0x2),
    ("nvmlClocksThrottleReasonSwPowerCap", 0x4),
    ("nvmlClocksThrottleReasonHwSlowdown", 0x8),
    ("nvmlClocksThrottleReasonSyncBoost", 0x10),
    ("nvmlClocksThrottleReasonSwThermalSlowdown", 0x20),
    ("nvmlClocksThrottleReasonHwThermalSlowdown", 0x40),
    ("nvmlClocksThrottleReasonHwPowerBrakeSlowdown", 0x80),
];

const RUNTIMES: [&str; 4] = [
    "nvidia-cuda-runtime-cu11==11.8.89",
    "nvidia-cuda-runtime-cu12==12.4.127",
    "nvidia-cuda-runtime-cu12==12.8.90",
    "nvidia-cuda-runtime==13.0.48",
];

fn driver_functions() -> Vec<(String, String)> {
    DRIVER.iter().flat_map(|source| functions(source)).collect()
}

#[test]
#[ignore = "needs the package index: 15 MB of wheels"]
fn driver_matches_its_headers() {
    for wheel in RUNTIMES {
        check(&[(wheel, "cuda.h")], &driver_functions(), DRIVER_CONSTANTS)
            .unwrap_or_else(|error| panic!("{wheel}: {error}"));
    }
    // The newest names all statuses.
    let statuses = statuses(Library::Driver, "CUDA_ERROR_");
    assert!(statuses.len() > 50, "{}", statuses.len());
    check(&[(RUNTIMES[3], "cuda.h")], &driver_functions(), &statuses)
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
#[ignore = "needs the package index: 15 MB of wheels"]
fn wrong_signature_or_constant_is_reported() {
    let wrong = |functions: &[(String, String)], constants: &[(&str, i64)]| {
        check(&[(RUNTIMES[2], "cuda.h")], functions, constants).expect_err("the assertion fails")
    };
    let one = |symbol: &str, shape: &str| vec![(symbol.to_owned(), shape.to_owned())];
    for shape in ["4P4", "44P", "4P8P", "4"] {
        assert!(wrong(&one("cuMemAlloc_v2", shape), DRIVER_CONSTANTS).contains("cuMemAlloc_v2"), "{shape}");
    }
    assert!(wrong(&one("cuMemAlloc_v2", "4P8"), &[("CU_STREAM_NON_BLOCKING", 2)]).contains("NON_BLOCKING"));
}

#[test]
#[ignore = "needs the package index: 1 MB of wheels"]
fn nvml_matches_its_headers() {
    for wheel in
        ["nvidia-nvml-dev-cu11==11.8.86", "nvidia-nvml-dev-cu12==12.8.90", "nvidia-nvml-dev==13.0.87"]
    {
        let constants = [NVML_CONSTANTS, &statuses(Library::Nvml, "NVML_ERROR_")].concat();
        let functions: Vec<_> = NVML.iter().flat_map(|source| functions(source)).collect();
        check(&[(wheel, "nvml.h")], &functions, &constants)
            .unwrap_or_else(|error| panic!("{wheel}: {error}"));
    }
}

/// The runtime's headers, which those of the libraries include, and theirs.
const RUNTIME: [(&str, &str); 3] = [
    (RUNTIMES[2], "cuda_runtime_api.h"),
    ("nvidia-cuda-nvcc-cu12==12.8.93", "crt/host_config.h"),
    ("nvidia-cuda-cccl-cu12==12.8.90", "nv/detail/__target_macros"),
];

const CUBLAS: &str = include_str!("../../kernels/agent/src/gpu/cublas.rs");
/// In C++ the function has an overload for callers of cuBLAS 10.
const GEMM_EX: &str = "*static_cast<cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, \
    const void *, const void *, cudaDataType, int, const void *, cudaDataType, int, const void *, void *, cudaDataType, int, \
    cublasComputeType_t, cublasGemmAlgo_t)>(cublasGemmEx)";
const CUBLAS_CONSTANTS: &[(&str, i64)] = &[
    ("sizeof(cublasLtMatmulHeuristicResult_t)", 96),
    ("CUBLAS_COMPUTE_32F", 68),
    ("CUBLAS_COMPUTE_64F", 70),
    ("CUBLAS_COMPUTE_32I", 72),
    ("CUBLAS_COMPUTE_32F_FAST_TF32", 77),
    ("CUBLAS_GEMM_DEFAULT", -1),
    ("CUBLAS_OP_T", 1),
    ("CUBLAS_STATUS_NOT_SUPPORTED", 15),
    ("CUBLASLT_MATMUL_DESC_TRANSA", 3),
    ("CUBLASLT_MATMUL_DESC_FAST_ACCUM", 25),
    ("CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES", 1),
    ("CUDA_R_32F", 0),
    ("CUDA_R_64F", 1),
    ("CUDA_R_16F", 2),
    ("CUDA_R_8I", 3),
    ("CUDA_R_32I", 10),
    ("CUDA_R_16BF", 14),
    ("CUDA_R_8F_E4M3", 28),
    ("CUDA_R_8F_E5M2", 29),
];

#[test]
#[ignore = "needs the package index: gigabytes of wheels"]
fn cublas_matches_its_headers() {
    const WHEEL: &str = "nvidia-cublas-cu12==12.8.4.1";
    let own = [(WHEEL, "cublas_v2.h"), (WHEEL, "cublasLt.h")];
    let mut functions = functions(CUBLAS);
    for (symbol, _) in functions.iter_mut().filter(|(symbol, _)| symbol == "cublasGemmEx") {
        GEMM_EX.clone_into(symbol);
    }
    let constants = [CUBLAS_CONSTANTS, &statuses(Library::Cublas, "CUBLAS_STATUS_")].concat();
    check(&[&own, RUNTIME.as_slice()].concat(), &functions, &constants)
        .unwrap_or_else(|error| panic!("{error}"));
}

const CUDNN: &str = include_str!("../../kernels/agent/src/gpu/cudnn.rs");
const CUDNN_CONSTANTS: &[(&str, i64)] = &[
    ("CUDNN_TENSOR_NCHW", 0),
    ("CUDNN_TENSOR_NHWC", 1),
    ("CUDNN_DATA_FLOAT", 0),
    ("CUDNN_DATA_HALF", 2),
    ("CUDNN_DATA_BFLOAT16", 9),
    ("CUDNN_CROSS_CORRELATION", 1),
    ("CUDNN_TENSOR_OP_MATH", 1),
    ("CUDNN_FMA_MATH", 3),
    ("CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM", 0),
    ("CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM", 1),
    ("CUDNN_CONVOLUTION_BWD_DATA_ALGO_1", 1),
    ("CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1", 1),
];

#[test]
#[ignore = "needs the package index: gigabytes of wheels"]
fn cudnn_matches_its_headers() {
    let own = [("nvidia-cudnn-cu12==9.10.2.21", "cudnn.h")];
    check(&[&own, RUNTIME.as_slice()].concat(), &functions(CUDNN), CUDNN_CONSTANTS)
        .unwrap_or_else(|error| panic!("{error}"));
}

const NCCL: &str = include_str!("../../kernels/agent/src/gpu/nccl.rs");

#[test]
#[ignore = "needs the package index: gigabytes of wheels"]
fn nccl_matches_its_headers() {
    let own = [("nvidia-nccl-cu12==2.27.3", "nccl.h")];
    let named = [
        ("ncclFloat16", 6),
        ("ncclFloat32", 7),
        ("ncclBfloat16", 9),
        ("ncclSum", 0),
        ("ncclScalarHostImmediate", 1),
        ("sizeof(ncclUniqueId)", 128),
    ];
    let constants = [named.as_slice(), &statuses(Library::Nccl, "nccl")].concat();
    check(&[&own, RUNTIME.as_slice()].concat(), &functions(NCCL), &constants)
        .unwrap_or_else(|error| panic!("{error}"));
}

/// The libraries of mathematics: wheel, header, the agent's table and the numbers it passes or expects.
type Header = (&'static str, &'static str, &'static str, &'static [(&'static str, i64)]);
const MATH: [Header; 4] = [
    (
        "nvidia-cufft-cu12==11.0.2.54",
        "cufft.h",
        include_str!("../../kernels/agent/src/gpu/cufft.rs"),
        &[
            ("CUFFT_C2C", 0x29),
            ("CUFFT_Z2Z", 0x69),
            ("CUFFT_FORWARD", -1),
            ("CUFFT_INVERSE", 1),
            ("CUFFT_ALLOC_FAILED", 2),
        ],
    ),
    (
        "nvidia-cusolver-cu12==11.4.5.107",
        "cusolverDn.h",
        include_str!("../../kernels/agent/src/gpu/cusolver.rs"),
        &[("CUBLAS_FILL_MODE_LOWER", 0), ("CUSOLVER_STATUS_ALLOC_FAILED", 2)],
    ),
    (
        "nvidia-cusparse-cu12==12.1.0.106",
        "cusparse.h",
        include_str!("../../kernels/agent/src/gpu/cusparse.rs"),
        &[
            ("CUSPARSE_INDEX_32I", 2),
            ("CUSPARSE_INDEX_BASE_ZERO", 0),
            ("CUSPARSE_OPERATION_NON_TRANSPOSE", 0),
            ("CUSPARSE_SPMV_ALG_DEFAULT", 0),
            ("CUSPARSE_STATUS_ALLOC_FAILED", 2),
        ],
    ),
    (
        "nvidia-curand-cu12==10.3.2.106",
        "curand.h",
        include_str!("../../kernels/agent/src/gpu/curand.rs"),
        &[
            ("CURAND_RNG_PSEUDO_PHILOX4_32_10", 161),
            ("CURAND_RNG_QUASI_SOBOL32", 201),
            ("CURAND_STATUS_ALLOCATION_FAILED", 102),
        ],
    ),
];

#[test]
#[ignore = "needs the package index: gigabytes of wheels"]
fn libraries_of_mathematics_match_their_headers() {
    for (wheel, header, source, constants) in MATH {
        let own = [(wheel, header), ("nvidia-cublas-cu12==12.8.4.1", "cublas_v2.h")];
        check(&[&own, RUNTIME.as_slice()].concat(), &functions(source), constants)
            .unwrap_or_else(|error| panic!("{wheel}: {error}"));
    }
}

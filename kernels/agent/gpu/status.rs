//! What a status of a CUDA library means: its name, why it came, what to do. Numbers nobody knows are kept as numbers.

/// A library whose calls return a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    Driver,
    Cublas,
    Cudnn,
    Nccl,
    Nvml,
}

/// A call that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) library: Library,
    pub(crate) call: String,
    pub(crate) code: i32,
    /// What the library itself says of it, if it was asked.
    pub(crate) said: String,
}

/// One known status.
struct Known(i32, &'static str, &'static str, &'static str);

const DRIVER: &[Known] = &[
    Known(1, "CUDA_ERROR_INVALID_VALUE", "a parameter is wrong", ""),
    Known(
        2,
        "CUDA_ERROR_OUT_OF_MEMORY",
        "the GPU has too little free memory",
        "another process holds the GPU's memory: see `nvidia-smi` on the host",
    ),
    Known(3, "CUDA_ERROR_NOT_INITIALIZED", "the driver library is not initialised", ""),
    Known(
        34,
        "CUDA_ERROR_STUB_LIBRARY",
        "libcuda.so.1 is the toolkit's stub for linking, not the driver",
        "a `stubs` folder is on the loader path: take it out of LD_LIBRARY_PATH and of ld.so.conf",
    ),
    Known(
        36,
        "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER",
        "the driver is older than this call",
        "install a newer driver on the host",
    ),
    Known(
        46,
        "CUDA_ERROR_DEVICE_UNAVAILABLE",
        "the GPU is held by another process in exclusive mode, or is being reset",
        "end that process, or set `nvidia-smi -c DEFAULT` on the host",
    ),
    Known(
        100,
        "CUDA_ERROR_NO_DEVICE",
        "no GPU is visible in this container",
        "start it with `--gpus all` or a CDI device; look at NVIDIA_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES",
    ),
    Known(
        101,
        "CUDA_ERROR_INVALID_DEVICE",
        "there is no GPU of that number",
        "CUDA_VISIBLE_DEVICES names a GPU that is not there",
    ),
    Known(
        200,
        "CUDA_ERROR_INVALID_IMAGE",
        "the kernel's code is not what this driver reads",
        "the toolkit is newer than the driver: take an older CUDA, or install a newer driver",
    ),
    Known(201, "CUDA_ERROR_INVALID_CONTEXT", "no context is current", ""),
    Known(
        209,
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        "the code has no kernel for this GPU",
        "the image was built for other GPUs: build it for this one with `--gpu`",
    ),
    Known(
        214,
        "CUDA_ERROR_ECC_UNCORRECTABLE",
        "the GPU's memory has an error it cannot correct",
        "reset the GPU or restart the host; if it comes back, the GPU is broken",
    ),
    Known(
        218,
        "CUDA_ERROR_INVALID_PTX",
        "the driver cannot compile this PTX",
        "the toolkit is newer than the driver: install a newer driver",
    ),
    Known(
        220,
        "CUDA_ERROR_NVLINK_UNCORRECTABLE",
        "NVLink has an error it cannot correct",
        "see `nvidia-smi nvlink -e` and the kernel's log for Xid 74 on the host",
    ),
    Known(
        221,
        "CUDA_ERROR_JIT_COMPILER_NOT_FOUND",
        "the driver's PTX compiler is not in the container",
        "libnvidia-ptxjitcompiler.so.1 is not mounted: NVIDIA_DRIVER_CAPABILITIES must hold `compute`",
    ),
    Known(
        222,
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        "the PTX is of a newer CUDA than the driver knows",
        "install a newer driver, or take an older CUDA",
    ),
    Known(
        304,
        "CUDA_ERROR_OPERATING_SYSTEM",
        "a call to the operating system failed",
        "the container lacks a device file, a permission or locked memory: see the host's kernel log",
    ),
    Known(500, "CUDA_ERROR_NOT_FOUND", "a named symbol is not in the module", ""),
    Known(
        700,
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "a kernel touched memory that is not its own",
        "look for Xid 13, 31 or 43 in the host's kernel log",
    ),
    Known(
        701,
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        "a kernel needs more registers or memory than there are",
        "",
    ),
    Known(
        702,
        "CUDA_ERROR_LAUNCH_TIMEOUT",
        "a kernel ran longer than the host allows",
        "the GPU drives a display with a time limit: use another, or lift the limit",
    ),
    Known(715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "a kernel holds an instruction this GPU lacks", ""),
    Known(716, "CUDA_ERROR_MISALIGNED_ADDRESS", "a kernel touched a misaligned address", ""),
    Known(
        719,
        "CUDA_ERROR_LAUNCH_FAILED",
        "a kernel failed",
        "look for an Xid in the host's kernel log: `dmesg | grep Xid`",
    ),
    Known(
        800,
        "CUDA_ERROR_NOT_PERMITTED",
        "the operation is not permitted",
        "the container's rights are too few, or a debugger holds the GPU",
    ),
    Known(801, "CUDA_ERROR_NOT_SUPPORTED", "this GPU or system does not support the operation", ""),
    Known(
        802,
        "CUDA_ERROR_SYSTEM_NOT_READY",
        "the GPUs' fabric is not ready",
        "start the fabric manager on the host, of exactly the driver's version: `systemctl status nvidia-fabricmanager`",
    ),
    Known(
        803,
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        "libcuda.so.1 is of another version than the kernel's module",
        "the image brings its own libcuda (cuda-compat or a stale copy), or the host's driver was updated without a restart",
    ),
    Known(
        804,
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "the image's forward-compatibility library does not serve this GPU",
        "cuda-compat is for data-centre GPUs only: take it out of the loader path, or install a newer driver",
    ),
    Known(
        805,
        "CUDA_ERROR_MPS_CONNECTION_FAILED",
        "the MPS daemon does not answer",
        "start it, or unset CUDA_MPS_PIPE_DIRECTORY",
    ),
    Known(
        999,
        "CUDA_ERROR_UNKNOWN",
        "the driver failed without saying why",
        "load nvidia-uvm on the host (`modprobe nvidia-uvm`, `/dev/nvidia-uvm` must be in the container); look for Xid in its kernel log",
    ),
];

const CUBLAS: &[Known] = &[
    Known(
        1,
        "CUBLAS_STATUS_NOT_INITIALIZED",
        "cuBLAS found no usable GPU or driver",
        "the driver is older than this cuBLAS needs, or the GPU's memory is full",
    ),
    Known(3, "CUBLAS_STATUS_ALLOC_FAILED", "cuBLAS got no memory", "another process holds the GPU's memory"),
    Known(7, "CUBLAS_STATUS_INVALID_VALUE", "a parameter is wrong", ""),
    Known(8, "CUBLAS_STATUS_ARCH_MISMATCH", "this GPU lacks the operation", ""),
    Known(11, "CUBLAS_STATUS_MAPPING_ERROR", "GPU memory could not be reached", ""),
    Known(
        13,
        "CUBLAS_STATUS_EXECUTION_FAILED",
        "a kernel of cuBLAS failed",
        "cuBLAS has no code for this GPU, or the GPU failed: look for an Xid in the host's kernel log",
    ),
    Known(
        14,
        "CUBLAS_STATUS_INTERNAL_ERROR",
        "cuBLAS failed inside",
        "libcublas and libcublasLt are of different versions, or the GPU failed",
    ),
    Known(15, "CUBLAS_STATUS_NOT_SUPPORTED", "cuBLAS does not offer this on this GPU", ""),
    Known(16, "CUBLAS_STATUS_LICENSE_ERROR", "a licence is missing", ""),
];

const CUDNN: &[Known] = &[
    Known(
        1,
        "CUDNN_STATUS_NOT_INITIALIZED",
        "cuDNN could not start",
        "a sub-library or libnvrtc is missing, or the driver is too old",
    ),
    Known(
        1001,
        "CUDNN_STATUS_NOT_INITIALIZED",
        "cuDNN found no usable GPU or driver",
        "the driver is older than this cuDNN needs",
    ),
    Known(
        1002,
        "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
        "cuDNN's parts are of different versions",
        "two cuDNN are on the loader path: keep one",
    ),
    Known(2002, "CUDNN_STATUS_BAD_PARAM_NULL_POINTER", "a parameter is missing", ""),
    Known(2, "CUDNN_STATUS_ALLOC_FAILED", "cuDNN got no memory", "another process holds the GPU's memory"),
    Known(3, "CUDNN_STATUS_BAD_PARAM", "a parameter is wrong", ""),
    Known(4, "CUDNN_STATUS_INTERNAL_ERROR", "cuDNN failed inside", ""),
    Known(
        6,
        "CUDNN_STATUS_ARCH_MISMATCH",
        "cuDNN has no code for this GPU",
        "this GPU is older than this cuDNN supports: cuDNN 9.11 and later need compute capability 7.5",
    ),
    Known(
        8,
        "CUDNN_STATUS_EXECUTION_FAILED",
        "a kernel of cuDNN failed",
        "look for an Xid in the host's kernel log",
    ),
    Known(9, "CUDNN_STATUS_NOT_SUPPORTED", "cuDNN does not offer this", ""),
    Known(2000, "CUDNN_STATUS_BAD_PARAM", "a parameter is wrong", ""),
    Known(3000, "CUDNN_STATUS_NOT_SUPPORTED", "cuDNN does not offer this", ""),
    Known(4000, "CUDNN_STATUS_INTERNAL_ERROR", "cuDNN failed inside", ""),
    Known(
        5000,
        "CUDNN_STATUS_EXECUTION_FAILED",
        "a kernel of cuDNN failed",
        "look for an Xid in the host's kernel log",
    ),
];

const NCCL: &[Known] = &[
    Known(
        1,
        "ncclUnhandledCudaError",
        "a CUDA call inside NCCL failed",
        "the driver is older than this NCCL needs, or a GPU failed",
    ),
    Known(
        2,
        "ncclSystemError",
        "a call to the system failed",
        "/dev/shm may be too small (start the container with `--shm-size 1g` or `--ipc host`), or no network interface is usable",
    ),
    Known(3, "ncclInternalError", "NCCL failed inside", "run with NCCL_DEBUG=INFO to see where"),
    Known(4, "ncclInvalidArgument", "a parameter is wrong", ""),
    Known(
        5,
        "ncclInvalidUsage",
        "NCCL was called in a way it does not allow",
        "two ranks on one GPU need NCCL 2.30 and NCCL_MULTI_RANK_GPU_ENABLE=1",
    ),
    Known(6, "ncclRemoteError", "another rank failed", "look at the other rank's message"),
];

const NVML: &[Known] = &[
    Known(4, "NVML_ERROR_NO_PERMISSION", "the container may not talk to the driver", ""),
    Known(9, "NVML_ERROR_DRIVER_NOT_LOADED", "the driver's kernel module is not loaded", ""),
    Known(
        12,
        "NVML_ERROR_LIBRARY_NOT_FOUND",
        "NVML's library is not in the container",
        "NVIDIA_DRIVER_CAPABILITIES must hold `utility`",
    ),
    Known(15, "NVML_ERROR_GPU_IS_LOST", "a GPU fell off the bus", "restart the host"),
    Known(
        18,
        "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
        "the library is of another version than the kernel's module",
        "the host's driver was updated without a restart",
    ),
];

impl Fault {
    pub(crate) fn new(library: Library, call: &str, code: i32) -> Self {
        Self { library, call: call.to_owned(), code, said: String::new() }
    }

    fn known(&self) -> Option<&'static Known> {
        // cuDNN 9 counts within thousands: 2003 is a kind of 2000.
        let codes =
            [self.code, if self.library == Library::Cudnn { self.code / 1000 * 1000 } else { self.code }];
        let table = match self.library {
            Library::Driver => DRIVER,
            Library::Cublas => CUBLAS,
            Library::Cudnn => CUDNN,
            Library::Nccl => NCCL,
            Library::Nvml => NVML,
        };
        codes.iter().find_map(|code| table.iter().find(|known| known.0 == *code))
    }

    /// What to do, if anything is known to help.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        self.known().map(|known| known.3).filter(|hint| !hint.is_empty())
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} said {}", self.call, self.code)?;
        match self.known() {
            Some(Known(_, name, why, _)) => write!(f, " ({name}): {why}")?,
            None => f.write_str(", a status this agent does not know")?,
        }
        if self.said.is_empty() { Ok(()) } else { write!(f, ": {}", self.said) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_told_apart_and_those_of_the_start_have_a_cure() {
        for table in [DRIVER, CUBLAS, CUDNN, NCCL, NVML] {
            for (at, known) in table.iter().enumerate() {
                assert!(table[..at].iter().all(|other| other.0 != known.0), "{} twice", known.0);
            }
        }
        let hints: Vec<_> = [34, 46, 100, 802, 803, 804, 999]
            .map(|code| Fault::new(Library::Driver, "cuInit", code).hint().expect("a hint"))
            .into();
        for (at, hint) in hints.iter().enumerate() {
            assert!(hints[..at].iter().all(|other| other != hint), "{hint}");
        }
    }

    #[test]
    fn an_unknown_number_is_kept_and_a_kind_is_recognised() {
        let fault = Fault::new(Library::Driver, "cuInit", 12345);
        assert_eq!(fault.to_string(), "cuInit said 12345, a status this agent does not know");
        assert_eq!(fault.hint(), None);
        let fault = Fault::new(Library::Cudnn, "cudnnCreate", 3007);
        assert!(fault.to_string().contains("3007 (CUDNN_STATUS_NOT_SUPPORTED)"), "{fault}");
    }
}

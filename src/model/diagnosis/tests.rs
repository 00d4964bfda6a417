//! Every row against the exact text that users see, and texts unrelated to a GPU.

use std::collections::BTreeSet;

use super::status::{Library, of_status};
use super::{diagnose, entries};

/// Row and text, as daemon, toolkit, driver and libraries print it.
const TEXTS: &[(&str, &str)] = &[
    (
        "no-gpu-runtime",
        r#"docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]]."#,
    ),
    (
        "xid-bus",
        "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    ),
    ("xid-memory", "NVRM: Xid (PCI:0000:3b:00): 48, pid=2, name=python, An uncorrectable double bit error"),
    ("xid-memory", "NVRM: Xid (PCI:0000:3b:00): 94, pid=2, name=python, Contained: SM (0x1)."),
    ("xid-nvlink", "NVRM: Xid (PCI:0000:3b:00): 74, pid=2, NVLink: fatal error detected on link 4"),
    (
        "xid-firmware",
        "NVRM: Xid (PCI:0000:01:00): 119, pid=1, name=python, Timeout after 45s of waiting for RPC response from GPU0 GSP!",
    ),
    ("xid-firmware", "NVRM: Xid (PCI:0000:01:00): 62, 0000"),
    (
        "xid-program",
        "NVRM: Xid (PCI:0000:3b:00): 31, pid=812, name=python, Ch 00000008, intr 10000000. MMU Fault",
    ),
    ("xid-program", "NVRM: Xid (0000:01:00): 13, 0005 00000000 0000502d 00000104 00000000 00000100"),
    (
        "xid",
        "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
    ),
    ("no-gpu-runtime", r#"could not select device driver "nvidia" with capabilities: [[gpu]]"#),
    ("no-cdi-support", r#"could not select device driver "cdi" with capabilities: []"#),
    ("runtime-not-registered", "docker: Error response from daemon: Unknown runtime specified nvidia."),
    ("runtime-not-registered", "unknown or invalid runtime name: nvidia"),
    ("runtime-not-registered", r#"failed to get sandbox runtime: no runtime for "nvidia" is configured"#),
    ("cdi-device-unknown", "unresolvable CDI devices nvidia.com/gpu=all"),
    ("cdi-device-unknown", "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all"),
    ("cdi-device-unknown", "unresolvable CDI devices runtime.nvidia.com/gpu=all"),
    (
        "image-requires-newer-driver",
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver to a newer version, or use an earlier cuda container: unknown",
    ),
    (
        "image-requires-newer-driver",
        "nvidia-container-cli: requirement error: unsatisfied condition: driver>=525.60.13, please update your driver",
    ),
    (
        "toolkit-finds-no-driver",
        "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory: unknown",
    ),
    (
        "toolkit-driver-mismatch",
        "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown",
    ),
    (
        "toolkit-no-permission",
        "nvidia-container-cli: initialization error: nvml error: insufficient permissions",
    ),
    (
        "toolkit-no-gpu",
        "nvidia-container-cli: initialization error: cuda error: no cuda-capable device is detected",
    ),
    ("toolkit-driver-silent", "nvidia-container-cli: initialization error: cuda error: unknown error"),
    (
        "toolkit-driver-silent",
        "nvidia-container-cli: initialization error: driver error: failed to process request",
    ),
    (
        "toolkit-ldconfig",
        "nvidia-container-cli: ldcache error: open failed: /sbin/ldconfig.real: no such file or directory",
    ),
    (
        "toolkit-ldconfig",
        "nvidia-container-cli: ldcache error: process /sbin/ldconfig.real failed with error code: 1",
    ),
    (
        "rootless-cgroups",
        "nvidia-container-cli: mount error: failed to add device rules: unable to find any existing device filters attached to the cgroup: bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted",
    ),
    ("image-tag-gone", "manifest for nvidia/cuda:latest not found: manifest unknown: manifest unknown"),
    (
        "apt-key-rotated",
        "The following signatures couldn't be verified because the public key is not available: NO_PUBKEY A4B469963BF863CC",
    ),
    (
        "apt-key-rotated",
        "E: Conflicting values set for option Signed-By regarding source https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2004/x86_64/ /",
    ),
    ("gpu-lost", "Failed to initialize NVML: Unknown Error"),
    (
        "driver-library-mismatch",
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.124",
    ),
    ("no-nvidia-smi", r#"exec: "nvidia-smi": executable file not found in $PATH: unknown"#),
    ("driver-too-old", "CUDA driver version is insufficient for CUDA runtime version"),
    (
        "driver-combination",
        "ERROR: The NVIDIA Driver is present, but CUDA failed to initialize ... [[ System has unsupported display driver / cuda driver combination (error 803) ]]",
    ),
    ("forward-compat-not-allowed", "forward compatibility was attempted on non supported HW"),
    ("ptx-too-new", "the provided PTX was compiled with an unsupported toolchain."),
    ("no-code-for-gpu", "CUDA error: no kernel image is available for execution on the device"),
    (
        "no-code-for-gpu",
        "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
    ),
    (
        "fabric-not-ready",
        "Unexpected error from cudaGetDeviceCount() ... Error 802: system not yet initialized",
    ),
    ("no-device", "no CUDA-capable device is detected"),
    (
        "uvm-missing",
        "CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable CUDA_VISIBLE_DEVICES after program start.",
    ),
    ("uvm-missing", "lstat /dev/nvidia-uvm: no such file or directory"),
    ("stub-library", "CUDA driver is a stub library"),
    ("no-libcuda", "libcuda.so.1: cannot open shared object file: No such file or directory"),
    (
        "no-driver-in-build",
        "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver",
    ),
    (
        "cudnn8-missing",
        "Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: cannot open shared object file: No such file or directory",
    ),
    (
        "cudnn9-missing",
        "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9, libcudnn_ops.so}",
    ),
    ("cudnn9-missing", "Invalid handle. Cannot load symbol cudnnCreateTensorDescriptor"),
    ("cudnn-mixed", "RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"),
    ("cudnn-not-initialized", "cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"),
    ("cudnn-drops-gpu", "CUDNN failure 5003: CUDNN_STATUS_EXECUTION_FAILED_CUDART"),
    ("cudnn-drops-gpu", "CUDNN_STATUS_ARCH_MISMATCH"),
    (
        "cublas-not-initialized",
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling cublasCreate(handle)",
    ),
    (
        "nvjitlink-too-old",
        "libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1, version libnvJitLink.so.12",
    ),
    (
        "nvjitlink-too-old",
        "libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12",
    ),
    ("nvjitlink-too-old", "libcusparse.so.12: undefined symbol: _nvJitLinkGetErrorLogSize_12_9"),
    (
        "no-nvcc",
        "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
    ),
    ("no-nvcc", "flash_attn was requested, but nvcc was not found."),
    ("no-nvcc", "bash: nvcc: command not found"),
    ("nvcc-unknown-gpu", "nvcc fatal   : Unsupported gpu architecture 'compute_35'"),
    ("no-video-libraries", "libnvcuvid.so.1: cannot open shared object file: No such file or directory"),
    (
        "shm-too-small",
        "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-WU88OE (size 9637888), error: No space left on device (28)",
    ),
    ("shm-too-small", "NCCL WARN Call to posix_fallocate failed : No space left on device"),
    (
        "nccl-system-error",
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error",
    ),
    ("nccl-system-error", "unhandled system error (run with NCCL_DEBUG=INFO for details)"),
    (
        "shm-too-small",
        "RuntimeError: DataLoader worker (pid 13) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
    ),
    ("nccl-nvls", "transport/nvls.cc:254 NCCL WARN Cuda failure 1 'invalid argument'"),
    (
        "nccl-nvls",
        "transport/nvls.cc:598 NCCL WARN Cuda failure 401 'the operation cannot be performed in the present state'",
    ),
    (
        "nccl-imex",
        "NCCL WARN MNNVL (cliqueSize 72) is available but not working on this system. Check the IMEX channel configuration (/dev/nvidia-caps-imex-channels). Set NCCL_MNNVL_ENABLE=0 to ignore this issue.",
    ),
    ("mig-one-instance", "device >= 0 && device < num_gpus INTERNAL ASSERT FAILED"),
    ("nccl-usage", "ncclInvalidUsage: Duplicate GPU detected"),
    ("mig-one-instance", "invalid literal for int() with base 10: 'MIG-5c89852c'"),
    (
        "profiler-refused",
        "ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0.",
    ),
    ("profiler-refused", "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"),
    (
        "wsl-linux-driver",
        "nvidia-container-cli: mount error: stat failed: /usr/lib/wsl/lib/libcuda.so.1: no such file or directory",
    ),
    (
        "wsl-linux-driver",
        "nvidia-container-cli: mount error: file creation failed: /var/lib/docker/x/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1: file exists",
    ),
    ("wsl-libcuda-link", "/sbin/ldconfig.real: /usr/lib/wsl/lib/libcuda.so.1 is not a symbolic link"),
    ("wsl-libcuda-link", "libcuda.so: cannot open shared object file"),
    ("wsl-blocked", "Failed to initialize NVML: GPU access blocked by the operating system"),
    ("image-other-processor", "no matching manifest for linux/arm64/v8 in the manifest list entries"),
    ("image-other-processor", "exec /opt/env/bin/python: exec format error"),
    (
        "engine-disk-full",
        "failed to register layer: Error processing tar file(exit status 1): write /opt/env/lib/libtorch_cuda.so: no space left on device",
    ),
    (
        "engine-disk-full",
        "failed to register layer: ApplyLayer exit status 1 stdout:  stderr: mkdir /usr/lib/x: no space left on device",
    ),
    (
        "registry-pull-limit",
        "Error response from daemon: toomanyrequests: You have reached your unauthenticated pull rate limit.",
    ),
    ("apptainer-no-driver", "INFO:    Could not find any nv files on this host!"),
];

/// What engines, builds and programs print when no GPU is concerned.
const UNRELATED: &[&str] = &[
    "",
    "Error response from daemon: conflict: unable to remove repository reference",
    "error getting credentials - err: exec: \"docker-credential-desktop\": executable file not found in $PATH",
    "open /etc/resolv.conf: no such file or directory",
    "ModuleNotFoundError: No module named 'torchmetrics'",
    "srun: error: Unable to allocate resources: Job/step already completing or completed",
    "could not select a device",
    "libfoo.so.1: cannot open shared object file: No such file or directory",
    "ld: undefined symbol: main",
    "Bus error",
    "exec: \"./train\": permission denied",
    "libmycudart.so.1 loaded; libfoo.so: cannot open shared object file",
    "loaded libcudart.so.12, but libfoo.so.1: cannot open shared object file",
    "libfoo.so: undefined symbol: _ZN3foo3barEv",
    "libx.so: version `FOO_1.2' not found (required by ./x)",
    "fatal error: foo.h: No such file or directory",
    "ModuleNotFoundError: No module named 'torchvision'",
    "ValueError: operands could not be broadcast together",
    "CUDNN_STATUS_SUCCESS",
    "MY_CUDA_ERROR_UNKNOWNISH",
];

#[test]
fn every_text_matches_its_row() {
    for (id, text) in TEXTS {
        let found = diagnose(text).map(|finding| finding.id);
        assert_eq!(found, Some(*id), "{text}");
        let shouted = diagnose(&format!("12:00 ERROR {} (code 1)", text.to_uppercase()));
        assert_eq!(shouted.map(|finding| finding.id), Some(*id), "in capitals: {text}");
    }
}

#[test]
fn every_row_has_a_test_text_a_message_and_a_source() {
    let texts = TEXTS.iter().chain(super::package_tests::TEXTS).map(|(id, _)| *id);
    let reached: BTreeSet<_> = texts.chain(super::message_tests::ids_of_messages()).collect();
    let mut seen = BTreeSet::new();
    for entry in entries() {
        assert!(seen.insert(entry.id), "two rows `{}`", entry.id);
        assert!(reached.contains(entry.id), "no text leads to `{}`", entry.id);
        for words in [&[entry.what, entry.why, entry.source], entry.cures].concat() {
            assert!(words.len() > 10 && !words.ends_with('.'), "`{}`: {words}", entry.id);
        }
    }
}

#[test]
fn unrelated_texts_give_nothing() {
    for text in UNRELATED {
        assert_eq!(diagnose(text), None, "{text}");
    }
}

#[test]
fn driver_codes_are_distinguished() {
    let wanted = [
        (34, "stub-library"),
        (46, "gpu-unavailable"),
        (100, "no-device"),
        (209, "no-code-for-gpu"),
        (222, "ptx-too-new"),
        (802, "fabric-not-ready"),
        (803, "driver-combination"),
        (804, "forward-compat-not-allowed"),
        (999, "uvm-missing"),
    ];
    for (code, id) in wanted {
        assert_eq!(of_status(Library::Driver, code).map(|finding| finding.id), Some(id), "{code}");
    }
    assert_eq!(of_status(Library::Driver, 0), None);
    assert_eq!(of_status(Library::Driver, 12345), None);
}

#[test]
fn every_status_has_a_meaning() {
    for library in [Library::Driver, Library::Nvrtc, Library::Cublas, Library::Cudnn, Library::Nccl] {
        let known = (1..6000).filter(|code| of_status(library, *code).is_some()).count();
        let wanted = match library {
            Library::Driver => 99,
            Library::Nvrtc => 17,
            Library::Cublas => 9,
            // 14 of cuDNN 8, 46 of cuDNN 9.
            Library::Cudnn => 60,
            Library::Nccl => 7,
            Library::Nvml | Library::Math => 0,
        };
        assert_eq!(known, wanted, "{library:?}");
    }
}

#[test]
fn code_and_name_give_the_same_diagnosis() {
    for (library, code, name) in [
        (Library::Nvrtc, 7, "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"),
        (Library::Cublas, 13, "CUBLAS_STATUS_EXECUTION_FAILED"),
        (Library::Cudnn, 1008, "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED"),
        (Library::Cudnn, 5000, "CUDNN_STATUS_EXECUTION_FAILED"),
        (Library::Nccl, 2, "ncclSystemError"),
        (Library::Driver, 803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
    ] {
        let by_code = of_status(library, code).expect("known");
        assert_eq!(Some(by_code), diagnose(&format!("it said {name}: no")), "{name}");
    }
}

//! Failures of Python packages as people see them: variants of everyday messages.

use super::diagnose;

/// Row and text.
pub(super) const TEXTS: &[(&str, &str)] = &[
    (
        "cuda-library-missing",
        "OSError: libcudart.so.13: cannot open shared object file: No such file or directory",
    ),
    (
        "cuda-library-missing",
        "ImportError: libcusparseLt.so.0: cannot open shared object file: No such file or directory",
    ),
    (
        "cuda-library-missing",
        "Could not load dynamic library 'libcublas.so.11'; dlerror: libcublas.so.11: cannot open shared object file",
    ),
    (
        "cuda-library-missing",
        "RuntimeError: CuPy failed to load libnvrtc.so.11.2: OSError: libnvrtc.so.11.2: cannot open shared object file",
    ),
    ("cuda-library-missing", "import error: libnccl.so.2: cannot open shared object file"),
    (
        "cudnn9-missing",
        "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory",
    ),
    ("cudnn9-missing", "libcudnn_graph.so.9: cannot open shared object file: No such file or directory"),
    ("cudnn8-missing", "OSError: libcudnn.so.8: cannot open shared object file: No such file or directory"),
    (
        "extension-other-torch",
        "ImportError: /opt/env/lib/flash_attn_2_cuda.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEab",
    ),
    (
        "extension-other-torch",
        "OSError: _grid_cuda.so: undefined symbol: _ZNK3c104Type14isSubtypeOfExtESt10shared_ptrIS0_EPSo",
    ),
    ("extension-other-torch", "lltm_cpp.cpython-311-x86_64-linux-gnu.so: undefined symbol: THPVariableClass"),
    (
        "extension-other-torch",
        "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n    PyTorch 2.9.0+cu128 with CUDA 1208 (you have 2.8.0+cu128)",
    ),
    ("torchvision-other-torch", "RuntimeError: operator torchvision::nms does not exist"),
    ("torchvision-other-torch", "RuntimeError: No such operator torchvision::roi_align"),
    (
        "torchvision-other-torch",
        "RuntimeError: Couldn't load custom C++ ops. This can happen if your PyTorch and torchvision versions are incompatible",
    ),
    (
        "numpy-other-major",
        "ValueError: numpy.ufunc size changed, may indicate binary incompatibility. Expected 232 from C header, got 216 from PyObject",
    ),
    (
        "numpy-other-major",
        "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.3.1 as it may crash.",
    ),
    ("numpy-other-major", "AttributeError: _ARRAY_API not found"),
    ("numba-cuda-numpy", "AttributeError: module 'numpy' has no attribute 'row_stack'"),
    ("numpy-removed-name", "AttributeError: module 'numpy' has no attribute 'float'"),
    // As PyTorch 2.11 said it on an H100, in an image without /etc/ld.so.cache.
    (
        "triton-ldconfig",
        "InductorError: CalledProcessError: Command '['/sbin/ldconfig', '-p']' returned non-zero exit status 1. Set TORCHDYNAMO_VERBOSE=1",
    ),
    ("triton-ldconfig", "FileNotFoundError: [Errno 2] No such file or directory: 'ldconfig'"),
    (
        "glibc-too-old",
        "ImportError: /lib/x86_64-linux-gnu/libm.so.6: version `GLIBC_2.38' not found (required by ./x.so)",
    ),
    ("glibc-too-old", "version `GLIBC_2.34' not found"),
    ("libstdcxx-too-old", "/usr/lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by ops.so)"),
    ("libstdcxx-too-old", "ImportError: /usr/lib64/libstdc++.so.6: version `CXXABI_1.3.15' not found"),
    ("no-python-headers", "/tmp/tmp1/main.c:5:10: fatal error: Python.h: No such file or directory"),
    ("no-python-headers", "cuda_utils.c:13:10: fatal error: 'Python.h' file not found"),
    ("no-c-compiler", "RuntimeError: Failed to find C compiler. Please specify via CC environment variable."),
    ("no-c-compiler", "error: command 'gcc' failed: No such file or directory"),
    (
        "nvcc-other-cuda",
        "The detected CUDA version (12.4) mismatches the version that was used to compile\nPyTorch (13.0).",
    ),
    (
        "ptxas-too-old",
        "ptxas /tmp/tmpqgu1.ptx, line 5; fatal   : Unsupported .version 8.6; current version is '8.5'",
    ),
    ("ptxas-too-old", "ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'"),
    ("flash-attention-gpu", "RuntimeError: FlashAttention only supports Ampere GPUs or newer."),
    ("flash-attention-gpu", "RuntimeError: FlashAttention only supports Hopper GPUs or newer."),
    (
        "bitsandbytes-setup",
        "RuntimeError: CUDA Setup failed despite GPU being available. Inspect the CUDA SETUP outputs above",
    ),
    (
        "bitsandbytes-no-library",
        "libbitsandbytes_cuda130.so: cannot open shared object file: No such file or directory",
    ),
    ("bitsandbytes-no-library", "Configured CUDA binary not found at /x/libbitsandbytes_cuda128.so"),
    (
        "tensorflow-no-driver",
        "I external/local_xla/xla/tsl/cuda/cudart_stub.cc:32] Could not find cuda drivers on your machine, GPU will not be used.",
    ),
    (
        "jax-without-cuda",
        "WARNING:jax._src.xla_bridge:791: An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed.",
    ),
    (
        "cudnn-older-than-compiled",
        "Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.3.0.  CuDNN library needs to have matching major version",
    ),
    (
        "variant-not-published",
        "ERROR: Could not find a version that satisfies the requirement torchvision==0.22.1+cu121 (from versions: 0.15.0, 0.15.1)",
    ),
    (
        "variant-not-published",
        "Because there is no version of torch==2.7.1+cu121 and you require torch==2.7.1+cu121",
    ),
    (
        "gpu-memory-full",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has 4.00 GiB",
    ),
    (
        "gpu-memory-full",
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1073741824 bytes.",
    ),
    ("gpu-memory-full", "CUDA error: cudaErrorMemoryAllocation"),
];

#[test]
fn everyday_texts_match_their_rows() {
    for (id, text) in TEXTS {
        assert_eq!(diagnose(text).map(|finding| finding.id), Some(*id), "{text}");
        let shouted = diagnose(&format!("12:00 ERROR {} (code 1)", text.to_uppercase()));
        assert_eq!(shouted.map(|finding| finding.id), Some(*id), "in capitals: {text}");
    }
}

/// The same texts with what decides taken out: nothing is known of them.
#[test]
fn everyday_texts_without_their_cause_stay_unknown() {
    for text in [
        "OSError: libaudio.so.13: cannot open shared object file: No such file or directory",
        "libcudart.so.13 is loaded\nlibaudio.so.2: cannot open shared object file",
        "ImportError: /opt/env/lib/tool.so: undefined symbol: PyUnicode_FromFormat",
        "RuntimeError: operator mylib::nms does not exist",
        "ValueError: dtype size changed",
        "/lib/libfoo.so: version `FOO_2.38' not found",
        "main.c:5:10: fatal error: pybind11.h: No such file or directory",
        "The detected version (12.4) mismatches",
        "Unsupported .version",
        "attention only supports float16",
        "setup failed despite everything",
        "Could not find the driver of the database",
        "jaxlib is not installed",
    ] {
        assert_eq!(diagnose(text), None, "{text}");
    }
}

#[test]
fn star_stays_within_a_word() {
    assert!(diagnose("libcudart.so.12: cannot open shared object file").is_some());
    assert!(diagnose("libcudart.so: cannot open shared object file").is_some());
    assert!(diagnose("libcudart.so.12 é: cannot open shared object file").is_none());
    assert!(diagnose("libcudart.soé: cannot open shared object file").is_some());
}

//! Every check that the agent or the CLI knows, in one list: add a check here, and its function in the agent.

use crate::expectation::Speed;
use crate::outcome::{Level, Stage};

/// A condition under which a check is required for a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// Never: a machine, an image or a library may lack what it tries. A failure still fails the image; speeds and reports only warn.
    Optional,
    /// In every image that envforge built.
    EveryImage,
    /// If a wheel of that name is locked (up to CUDA 12 its name ends in `-cu` and the major version), or if the framework's
    /// own wheel has that library as a file. A library that is linked statically cannot be called.
    Wheel(&'static str),
    /// If the stack has nvcc.
    Nvcc,
    /// If the stack has a ptxas for Triton.
    Ptxas,
    /// If the stack has a framework.
    Framework,
    /// If the stack has PyTorch or one of these frameworks.
    TorchOr(&'static [&'static str]),
    /// If the stack has one of these frameworks, and the GPUs that its binary has code for are known.
    ListedGpus(&'static [&'static str]),
    /// If the stack has cuDNN.
    Cudnn,
    /// If the stack has NCCL.
    Nccl,
    /// If the image keeps its PATH in login shells: locks of schema 2 do not.
    LoginPath,
    /// If the stack has a framework and Triton.
    Triton,
    /// Never, until the check itself has passed on a GPU once: a failure says nothing about the image yet.
    Unproven,
    /// If the stack has PyTorch and Triton, and that PyTorch compiles with the stack's Python.
    TorchCompile,
}

use Requirement::{
    Cudnn, EveryImage, Framework, ListedGpus, LoginPath, Nccl, Nvcc, Optional, Ptxas, TorchCompile, TorchOr,
    Triton, Unproven, Wheel,
};

/// The images that a check applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Any image.
    Any,
    /// Images that envforge built: the check holds them to envforge's own layout.
    Own,
}

use Scope::{Any, Own};

/// Frameworks whose binary reports the GPUs it has code for.
const LISTS_GPUS: &[&str] = &["pytorch", "tensorflow"];
/// Frameworks besides PyTorch whose products of matrices the agent tests.
const MULTIPLIES: &[&str] = &["tensorflow", "jax", "cupy", "numba", "onnxruntime"];
/// Those whose convolution it tests, too.
const CONVOLVES: &[&str] = &["tensorflow", "jax"];

/// Declares groups and checks: `Group "name" Stage Level { Check "id" Scope Requirement, "proves", "bound"; }`.
macro_rules! checks {
    ($($(#[$doc:meta])* $group:ident $name:literal $stage:ident $level:ident {
        $($check:ident $id:literal $scope:ident $requirement:expr, $proves:expr, $bound:expr;)*
    })*) => {
        /// A group of checks: the agent runs each in one child process.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum CheckGroup { $($(#[$doc])* $group,)* }

        /// A check known to the agent or the CLI.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum CheckId { $($(#[doc = concat!("The check `", $id, "`.")] $check,)*)* }

        impl CheckGroup {
            /// Every group.
            pub const ALL: &[Self] = &[$(Self::$group,)*];

            /// The name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$group => $name,)* }
            }

            /// The stage in which the group runs.
            pub const fn stage(self) -> Stage {
                match self { $(Self::$group => Stage::$stage,)* }
            }

            /// The lowest level at which the group runs.
            pub const fn level(self) -> Level {
                match self { $(Self::$group => Level::$level,)* }
            }

            const fn own_checks(self) -> &'static [CheckId] {
                match self { $(Self::$group => &[$(CheckId::$check,)*],)* }
            }
        }

        impl CheckId {
            /// Every check.
            pub const ALL: &[Self] = &[$($(Self::$check,)*)*];

            /// The id.
            pub const fn as_str(self) -> &'static str {
                match self { $($(Self::$check => $id,)*)* }
            }

            /// The group.
            pub const fn group(self) -> CheckGroup {
                match self { $($(Self::$check => CheckGroup::$group,)*)* }
            }

            /// The images that the check applies to.
            pub const fn scope(self) -> Scope {
                match self { $($(Self::$check => $scope,)*)* }
            }

            /// The condition under which the check is required for a tag.
            pub const fn requirement(self) -> Requirement {
                match self { $($(Self::$check => $requirement,)*)* }
            }

            /// What the check proves, in one line.
            pub const fn proves(self) -> &'static str {
                match self { $($(Self::$check => $proves,)*)* }
            }

            /// The bound on a result's error, for the documentation; empty: none.
            pub const fn bound(self) -> &'static str {
                match self { $($(Self::$check => $bound,)*)* }
            }
        }
    };
}

const BUILD: &str = "the framework imports and is the build that the lock names";
const PACKAGES: &str = "exactly the locked Python packages are installed; without a lock: every module that the packages' RECORD files list is \
     there, and no library is cut short, while other differences are reported";
const PIP: &str = "the requirements of the Python packages are met; in an image from elsewhere a missing package fails, and another version \
     than the required one is reported";
const SHARED: &str = "files of Python packages have the listed sizes, and modules the listed hashes; a path that several packages bring holds \
     the file of the last of them by name, and each is reported; in an image from elsewhere such packages are reported";
const CLOSURE: &str = "every library that a binary needs is found; the driver's libraries are excluded, and those of `[verify] may-lack` may be \
     missing and are reported; without a lock those that a Python module loads must be found, and others are reported";
const VERSIONS: &str = "the libraries that the framework loads have the locked versions";
const LOADS: &str = "each library loads, in a process of its own, and reports the locked version";
const CUBLAS: &str = "matrix products of cuBLAS (fp8: cuBLASLt) are correct";
const CUBLAS_BOUND: &str = "whole numbers exact; random, relative Frobenius error: fp64 1e-13 (k times half a unit of the last \
     place), fp32 1e-5, tf32 and fp16 1e-3, bf16 8e-3 (about ten times each format's rounding error and distinct from each \
     other: a test computes it), fp8 8e-3 against the rounded inputs (estimated)";
const OWN_GEMM: &str = "the kernels of this directory, compiled by the image's NVRTC, compute correct products; the last three use tensor cores";
const COPIES: &str = "bytes arrive unchanged: to, within and from a GPU, and from each GPU to each other";
const CUDNN: &str = "cuDNN 8 and 9 convolve correctly with a forced algorithm that sums as the definition does \
     (`IMPLICIT_PRECOMP_GEMM`, `ALGO_1`), NCHW and NHWC, fp32 and fp16";
const NCCL: &str = "sums and moves over all GPUs are correct on every rank; one GPU: an all-reduce that scales first, so that a \
     kernel runs, and from NCCL 2.30 two ranks on it";
const MATH: &str = "cuFFT, cuSOLVER, cuSPARSE and cuRAND, where the image has them, each solve a small problem with a known answer";
const MATH_BOUND: &str = "exact; random transforms fp32 1e-6, fp64 1e-13; equations 1e-12";
const NCCL_MORE: &str = "on several GPUs: sums in half precision, and parts from each GPU to each, on every rank (not run on a GPU yet: as above)";
const FRAMEWORK: &str = "PyTorch in the image's Python computes correctly; TensorFlow, JAX, CuPy, Numba and ONNX Runtime are \
     tested with the first, second and fourth";
const FRAMEWORK_BOUND: &str = "exact; 1e-5; autocast 2e-2";
const FULL: &str = "one distributed step and `torch.compile` agree with one process in eager mode";
const SPEED: &str = "median, best and spread of nine tries, with clocks, temperature and the reasons for reduced clocks, by NVML; verdict `normal`, `slow`, `throttled` or `suspect`";
const WARNS: &str = "warns, never fails";

checks! {
    /// The framework's versions.
    Framework "framework" Static Static {
        FrameworkVersion "framework-version" Any Framework, BUILD, "";
        FrameworkCuda "framework-cuda" Any Framework, BUILD, "";
        CudnnVersion "cudnn-version" Any Cudnn, VERSIONS, "";
        NcclVersion "nccl-version" Any Nccl, VERSIONS, "";
        TritonVersion "triton-version" Any Triton, VERSIONS, "";
        FrameworkArchitectures "framework-architectures" Any ListedGpus(LISTS_GPUS), "the binary has code for exactly the GPUs that the matrix lists", "";
    }
    /// Installed Python packages.
    Distributions "distributions" Static Static {
        Distributions "distributions" Any EveryImage, PACKAGES, "";
    }
    /// Requirements of Python packages.
    PipCheck "pip-check" Static Static {
        PipCheck "pip-check" Any EveryImage, PIP, "";
    }
    /// Paths of several Python packages.
    SharedPaths "shared-paths" Static Static {
        SharedPaths "shared-paths" Any EveryImage, SHARED, "";
    }
    /// Dynamic linking.
    LinkerClosure "linker-closure" Static Static {
        LinkerClosure "linker-closure" Any EveryImage, CLOSURE, "";
    }
    /// Symbols of extensions of torch.
    ExtensionAbi "extension-abi" Static Static {
        ExtensionAbi "extension-abi" Any EveryImage, "every library that uses torch finds the symbols and versions that it asks for in torch, CUDA, the C++ library, Python and glibc; read from the symbol tables, nothing is loaded", "";
    }
    /// Copies of CUDA.
    OneCuda "one-cuda" Static Static {
        OneCuda "one-cuda" Own EveryImage, "the image has one copy of each CUDA library", "";
    }
    /// The CUDA runtime.
    CudartLoad "cudart-load" Static Static {
        CudartLoad "cudart-load" Any Wheel("nvidia-cuda-runtime"), LOADS, "";
    }
    /// cuBLAS.
    CublasLoad "cublas-load" Static Static {
        CublasLoad "cublas-load" Any Wheel("nvidia-cublas"), LOADS, "";
    }
    /// cuBLASLt.
    CublasltLoad "cublaslt-load" Static Static {
        CublasltLoad "cublaslt-load" Any Wheel("nvidia-cublas"), LOADS, "";
    }
    /// cuDNN.
    CudnnLoad "cudnn-load" Static Static {
        CudnnLoad "cudnn-load" Any Wheel("nvidia-cudnn"), LOADS, "";
    }
    /// NCCL.
    NcclLoad "nccl-load" Static Static {
        NcclLoad "nccl-load" Any Wheel("nvidia-nccl"), LOADS, "";
    }
    /// cuDNN's sub-libraries.
    CudnnSublibraries "cudnn-sublibraries" Static Static {
        CudnnSublibraries "cudnn-sublibraries" Any Wheel("nvidia-cudnn"), "cuDNN's sub-libraries are next to it, complete and of one version", "";
    }
    /// NVRTC, for the target's GPUs.
    Nvrtc "nvrtc" Static Static {
        Nvrtc "nvrtc" Any Wheel("nvidia-cuda-nvrtc"), "NVRTC compiles every kernel of `cuda/` for the target's GPUs (no target: the oldest and newest that toolkit and stack share)", "";
    }
    /// NVRTC, for every GPU of the stack: replaces [`CheckGroup::Nvrtc`].
    NvrtcAll "nvrtc-all" Static Full {}
    /// Machine code of the framework's files.
    CodeForTarget "code-for-target" Static Static {
        CodeForTarget "code-for-target" Any Optional, "the framework's and NCCL's files have code that runs on the target's GPUs; an unknown layout is reported as \"unknown\", and so is what packages of the user lack", "";
    }
    /// The loader's search path.
    LoaderPath "loader-path" Static Static {
        LoaderPath "loader-path" Any EveryImage, "no stub, no empty driver file and no second CUDA precedes the framework's own", "";
    }
    /// Login shells.
    LoginShell "login-shell" Static Static {
        LoginShell "login-shell" Own LoginPath, "a login shell (`bash -l`, ssh, enroot) finds the image's Python", "";
    }
    /// NCCL's network between nodes.
    NcclNetwork "nccl-network" Static Static {
        NcclNetwork "nccl-network" Any Optional, "names the network and net plug-in that NCCL could use between nodes: devices of the host (`/sys/class/infiniband`), whether `libibverbs.so.1` loads, `libnccl-net*.so`; \
             warns where the host has InfiniBand or RoCE and NCCL would use TCP; fails where the lock has the libraries and they do not load", "";
    }
    /// The image's user.
    User "user" Static Static {
        User "user" Own EveryImage, "the image's user is not root and cannot change /opt/env", "";
    }
    /// The C compiler.
    Compiler "compiler" Static Static {
        Compiler "compiler" Own EveryImage, "C code compiles against Python's headers, as Triton does at run time", "";
    }
    /// nvcc.
    Nvcc "nvcc" Static Static {
        NvccVersion "nvcc-version" Own Nvcc, "nvcc has the CUDA version of the lock (devel)", "";
        Nvcc "nvcc" Own Nvcc, "nvcc compiles for the target's GPUs (no target: the oldest and the newest), a program that it links runs, and its headers have that CUDA version", "";
    }
    /// The ptxas that the image brings for Triton.
    TritonPtxas "triton-ptxas" Static Static {
        TritonPtxas "triton-ptxas" Own Ptxas, "the ptxas that the image's variable gives to Triton compiles for the target's GPUs that Triton's own has no target for", "";
    }
    /// Files that differ from build to build.
    Leftovers "leftovers" Static Static {
        Leftovers "leftovers" Own EveryImage, "no log, package list, machine ID, host key or byte code with timestamps is left", "";
    }
    /// Credentials.
    Secrets "secrets" Static Static {
        Secrets "secrets" Own EveryImage, "no credential of the build host is in a file or variable", "";
    }
    /// The image's configuration, checked by the CLI.
    Image "image" Static Static {
        ImageUser "image-user" Own EveryImage, "the image's configuration sets the user 1000:1000 (checked by the CLI)", "";
        ImageAddresses "image-addresses" Own EveryImage, "labels, variables and history contain no address or credential (checked by the CLI)", "";
    }
    /// The report itself, checked by the CLI.
    Report "report" Static Static {
        Agent "agent" Any Optional, "the agent's report is complete (added by the CLI if it is not)", "";
    }
    /// The driver: must pass before the other groups on a GPU run.
    Driver "driver" Gpu Quick {
        Driver "driver" Any EveryImage, "libcuda loads, `cuInit` succeeds and at least one GPU is visible; each status has its own fix", "";
        Device "device" Any EveryImage, "NVML reports the same GPU and memory, the image has code for it, the driver supports the lock's CUDA", "memory: a sixteenth";
    }
    /// The health of the host's GPUs.
    Health "health" Gpu Quick {
        HostHealth "host-health" Any Optional, "reports by NVML what is wrong with the host's GPUs: lanes of PCIe, uncorrected memory errors, damaged rows of memory, NVLinks that are down", "warns, never fails";
    }
    /// GPU memory and plain arithmetic.
    Memory "memory" Gpu Quick {
        MemoryCopies "memory-copies" Any EveryImage, COPIES, "exact";
        MemoryPattern "memory-pattern" Any EveryImage, "up to 1 GiB holds a word that differs at every address, and its inverse; a word changed on purpose is detected", "exact";
        MemoryPeers "memory-peers" Any EveryImage, COPIES, "exact";
        ArithmeticOwn "arithmetic-own" Any EveryImage, "fma, division, square root, warp shuffles and atomics are correct", "exact (IEEE 754)";
    }
    /// Matrix products of the agent's kernels.
    GemmOwn "gemm-own" Gpu Quick {
        GemmFp32Own "gemm-fp32-own" Any EveryImage, OWN_GEMM, "as below";
        GemmTf32Own "gemm-tf32-own" Any EveryImage, OWN_GEMM, "as below";
        GemmFp16Own "gemm-fp16-own" Any EveryImage, OWN_GEMM, "as below";
        GemmBf16Own "gemm-bf16-own" Any EveryImage, OWN_GEMM, "as below";
    }
    /// Matrix products of cuBLAS.
    GemmCublas "gemm-cublas" Gpu Quick {
        GemmFp64Cublas "gemm-fp64-cublas" Any Wheel("nvidia-cublas"), CUBLAS, CUBLAS_BOUND;
        GemmFp32Cublas "gemm-fp32-cublas" Any Wheel("nvidia-cublas"), CUBLAS, CUBLAS_BOUND;
        GemmTf32Cublas "gemm-tf32-cublas" Any Wheel("nvidia-cublas"), CUBLAS, CUBLAS_BOUND;
        GemmFp16Cublas "gemm-fp16-cublas" Any Wheel("nvidia-cublas"), CUBLAS, CUBLAS_BOUND;
        GemmBf16Cublas "gemm-bf16-cublas" Any Wheel("nvidia-cublas"), CUBLAS, CUBLAS_BOUND;
        GemmInt8Cublas "gemm-int8-cublas" Any Optional, CUBLAS, CUBLAS_BOUND;
        GemmFp8Cublas "gemm-fp8-cublas" Any Optional, CUBLAS, CUBLAS_BOUND;
    }
    /// A large matrix product.
    GemmLarge "gemm-large" Gpu Quick {
        GemmLarge "gemm-large" Any Wheel("nvidia-cublas"), "8192 cubed by cuBLAS (smaller if memory is short): C·x = A·(B·x) with x from 1 to 997, which detects any single wrong element", "exact";
    }
    /// Convolutions of the agent's kernels.
    ConvOwn "conv-own" Gpu Quick {
        ConvOwn "conv-own" Any EveryImage, "two kernels convolve six shapes with groups, stride, padding and dilation correctly", "exact";
    }
    /// Convolutions of cuDNN.
    ConvCudnn "conv-cudnn" Gpu Quick {
        ConvCudnnForward "conv-cudnn-forward" Any Wheel("nvidia-cudnn"), CUDNN, "exact; random fp32 1e-5";
        ConvCudnnBackwardData "conv-cudnn-backward-data" Any Wheel("nvidia-cudnn"), CUDNN, "exact; random fp32 1e-5";
        ConvCudnnBackwardFilter "conv-cudnn-backward-filter" Any Wheel("nvidia-cudnn"), CUDNN, "exact; random fp32 1e-5";
    }
    /// Collectives of NCCL.
    Nccl "nccl" Gpu Quick {
        NcclAllReduce "nccl-all-reduce" Any Wheel("nvidia-nccl"), NCCL, "exact";
        NcclAllGather "nccl-all-gather" Any Wheel("nvidia-nccl"), NCCL, "exact";
        NcclReduceScatter "nccl-reduce-scatter" Any Wheel("nvidia-nccl"), NCCL, "exact";
        NcclBroadcast "nccl-broadcast" Any Wheel("nvidia-nccl"), NCCL, "exact";
        NcclSendRecv "nccl-send-recv" Any Wheel("nvidia-nccl"), NCCL, "exact";
        NcclTransport "nccl-transport" Any Optional, "reports the transport that NCCL's own log names", "";
    }
    /// The framework on a GPU.
    FrameworkGpu "framework-gpu" Gpu Quick {
        FrameworkMatmul "framework-matmul" Any TorchOr(MULTIPLIES), FRAMEWORK, FRAMEWORK_BOUND;
        FrameworkConv "framework-conv" Any TorchOr(CONVOLVES), FRAMEWORK, FRAMEWORK_BOUND;
        FrameworkAutocast "framework-autocast" Any TorchOr(&[]), FRAMEWORK, FRAMEWORK_BOUND;
        FrameworkGraph "framework-graph" Any Optional, FRAMEWORK, FRAMEWORK_BOUND;
        FrameworkMemory "framework-memory" Any Optional, FRAMEWORK, FRAMEWORK_BOUND;
    }
    /// A kernel of the product's own, for products that have a script in `agent/src/python/products/`. It has not run on a GPU.
    Product "product" Gpu Quick {
        ProductKernel "product-kernel" Any Unproven, "the product runs one of its own kernels, and the result is the processor's: each has a script in `agent/src/python/products/` (not run on a GPU yet: a failure is reported and fails no image)", "exact; 1e-5 where it rounds";
    }
    /// The further libraries of CUDA.
    MathLibraries "math-libraries" Gpu Full {
        FftCufft "fft-cufft" Any Optional, MATH, MATH_BOUND;
        SolveCusolver "solve-cusolver" Any Optional, MATH, MATH_BOUND;
        SparseCusparse "sparse-cusparse" Any Optional, MATH, MATH_BOUND;
        RandomCurand "random-curand" Any Optional, MATH, MATH_BOUND;
    }
    /// Further collectives of NCCL. No check of it has run on a GPU, nor of the next.
    NcclMore "nccl-more" Gpu Full {
        NcclAllReduceFp16 "nccl-all-reduce-fp16" Any Unproven, NCCL_MORE, "exact";
        NcclAllReduceBf16 "nccl-all-reduce-bf16" Any Unproven, NCCL_MORE, "exact";
        NcclAllToAll "nccl-all-to-all" Any Unproven, NCCL_MORE, "exact";
    }
    /// NCCL between processes: each is a rank.
    NcclProcesses "nccl-processes" Gpu Full {
        NcclProcesses "nccl-processes" Any Unproven, "one process for each GPU, as `torchrun` starts them: an all-reduce, right on every rank (not run on a GPU yet: as above)", "exact";
    }
    /// All of the GPUs' memory.
    MemoryAll "memory-all" Gpu Full {
        MemoryAll "memory-all" Any Optional, "all free memory but 512 MiB holds a word that differs at every address, and its inverse; all is written before it is read", "exact";
    }
    /// Physical memory at reserved addresses.
    MemoryMapped "memory-mapped" Gpu Full {
        MemoryMapped "memory-mapped" Any Optional, "two parts of physical memory at reserved addresses hold a pattern across their border, and keep their words when they change places: PyTorch's expandable segments and vLLM's sleep mode are made so", "exact";
    }
    /// Memory that two processes share.
    MemoryIpc "memory-ipc" Gpu Full {
        MemoryIpc "memory-ipc" Any Optional, "another process opens memory by its CUDA IPC handle, finds the pattern and inverts it, as `torch.multiprocessing` shares tensors", "exact";
    }
    /// The framework's compiler.
    FrameworkFull "framework-full" Gpu Full {
        FrameworkCompile "framework-compile" Any TorchCompile, FULL, "compiled 1e-3; gradients of DDP 1e-4";
    }
    /// Training and attention as users run them.
    FrameworkTrain "framework-train" Gpu Full {
        FrameworkAttention "framework-attention" Any Optional, "PyTorch's attention: flash, memory-efficient and cuDNN's, as far as the wheel has them, agree with the plain one, forward and backward", "2e-2";
        FrameworkTraining "framework-training" Any Optional, "PyTorch: steps in bfloat16 lower the loss; TensorFlow and JAX: a gradient is that of the processor", "gradients 1e-5";
        FrameworkFp8 "framework-fp8" Any Optional, "PyTorch's `_scaled_mm` multiplies in fp8", "1e-2";
        FrameworkTriton "framework-triton" Any Optional, "a kernel of this agent, written in Triton, multiplies matrices by `tl.dot`", "exact";
    }
    /// Distributed training: its ranks are processes of their own, so no other may hold a GPU in exclusive mode.
    FrameworkDdp "framework-ddp" Gpu Full {
        FrameworkDdp "framework-ddp" Any TorchOr(&[]), FULL, "compiled 1e-3; gradients of DDP 1e-4";
    }
    /// vLLM, which takes most of the memory.
    FrameworkGenerate "framework-generate" Gpu Full {
        FrameworkGenerate "framework-generate" Any Unproven, "vLLM generates with a small model that the check makes itself, whose next word is known (not run on a GPU yet: as above)", "exact";
    }
    /// Bandwidths of memory.
    SpeedMemory "speed-memory" Perf Perf {
        SpeedMemory "speed-memory" Any Optional, SPEED, WARNS;
        SpeedHostToDevice "speed-host-to-device" Any Optional, SPEED, WARNS;
        SpeedDeviceToHost "speed-device-to-host" Any Optional, SPEED, WARNS;
    }
    /// Bandwidth of an all-reduce.
    SpeedNccl "speed-nccl" Perf Perf {
        SpeedNccl "speed-nccl" Any Optional, SPEED, WARNS;
    }
    /// Speed of a convolution.
    SpeedConv "speed-conv" Perf Perf {
        SpeedConv "speed-conv" Any Optional, SPEED, WARNS;
    }
    /// Bandwidths between GPUs.
    SpeedPeers "speed-peers" Perf Perf {
        SpeedPeers "speed-peers" Any Unproven, "the bandwidth of copies from each GPU to each other, as a table: `0-1` in `measured` (not run on a GPU yet: as above)", WARNS;
    }
    /// Speeds of matrix products.
    SpeedGemm "speed-gemm" Perf Perf {
        SpeedGemmFp64 "speed-gemm-fp64" Any Optional, SPEED, WARNS;
        SpeedGemmFp32 "speed-gemm-fp32" Any Optional, SPEED, WARNS;
        SpeedGemmTf32 "speed-gemm-tf32" Any Optional, SPEED, WARNS;
        SpeedGemmFp16 "speed-gemm-fp16" Any Optional, SPEED, WARNS;
        SpeedGemmBf16 "speed-gemm-bf16" Any Optional, SPEED, WARNS;
        SpeedGemmInt8 "speed-gemm-int8" Any Optional, SPEED, WARNS;
        SpeedGemmFp8 "speed-gemm-fp8" Any Optional, SPEED, WARNS;
    }
    /// Products for a minute.
    SpeedSustained "speed-sustained" Perf Perf {
        SpeedSustained "speed-sustained" Any Optional, "products for a minute: speed at first and at last, clocks and temperature; the last result is the first one", "warns; another result fails";
    }
}

impl CheckGroup {
    /// The group with that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.as_str() == name)
    }

    /// The group's checks, in the order of the report.
    pub const fn checks(self) -> &'static [CheckId] {
        match self.replaces() {
            Some(replaced) => replaced.own_checks(),
            None => self.own_checks(),
        }
    }

    /// Whether the group looks at files only, so that no code of the image runs.
    pub const fn looks_at_files_only(self) -> bool {
        matches!(self, Self::User | Self::Leftovers | Self::Secrets)
    }

    /// The group whose checks this one runs more thoroughly, from its own level on.
    pub const fn replaces(self) -> Option<Self> {
        match self {
            Self::NvrtcAll => Some(Self::Nvrtc),
            _ => None,
        }
    }

    /// Whether the agent runs the group; the CLI runs the others.
    pub const fn is_run_by_agent(self) -> bool {
        !matches!(self, Self::Image | Self::Report)
    }
}

impl CheckId {
    /// The check with that id.
    pub fn parse(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.as_str() == id)
    }

    /// The stage in which the check runs.
    pub const fn stage(self) -> Stage {
        self.group().stage()
    }

    /// The lowest level at which the check runs.
    pub const fn level(self) -> Level {
        self.group().level()
    }

    /// Whether the check runs a kernel on a GPU; the groups of the driver and of the host's health read facts only.
    pub const fn runs_kernel(self) -> bool {
        matches!(self.stage(), Stage::Gpu | Stage::Perf)
            && !matches!(self.group(), CheckGroup::Driver | CheckGroup::Health)
    }

    /// Whether the check itself has never passed on a GPU.
    pub const fn is_unproven(self) -> bool {
        matches!(self.requirement(), Requirement::Unproven)
    }

    /// The speed that the check measures.
    pub const fn speed(self) -> Option<Speed> {
        Some(match self {
            Self::SpeedMemory => Speed::Memory,
            Self::SpeedHostToDevice => Speed::HostToDevice,
            Self::SpeedDeviceToHost => Speed::DeviceToHost,
            Self::SpeedNccl => Speed::Bus,
            Self::SpeedConv => Speed::Conv,
            Self::SpeedGemmFp64 => Speed::Fp64,
            Self::SpeedGemmFp32 => Speed::Fp32,
            Self::SpeedGemmTf32 => Speed::Tf32,
            Self::SpeedGemmFp16 => Speed::Fp16,
            Self::SpeedGemmBf16 => Speed::Bf16,
            Self::SpeedGemmInt8 => Speed::Int8,
            Self::SpeedGemmFp8 => Speed::Fp8,
            _ => return None,
        })
    }
}

impl std::fmt::Display for CheckId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::fmt::Display for CheckGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

const PROJECT: &str = "project-";

/// Returns the id of a check that the project defines.
pub fn project_check(name: &str) -> String {
    format!("{PROJECT}{name}")
}

/// Returns the name that the project gave a check, if it is one of the project's.
pub fn project_check_name(id: &str) -> Option<&str> {
    id.strip_prefix(PROJECT)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_parse_back() {
        let ids: BTreeSet<_> = CheckId::ALL.iter().map(|check| check.as_str()).collect();
        assert_eq!(ids.len(), CheckId::ALL.len());
        for check in CheckId::ALL {
            assert_eq!(CheckId::parse(check.as_str()), Some(*check));
            assert_eq!(project_check_name(check.as_str()), None, "{check} looks like a project's");
            assert!(
                check
                    .as_str()
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            );
            assert!(!check.proves().is_empty() && !check.proves().contains('\n'), "{check}");
        }
        assert_eq!(CheckId::parse("nothing"), None);
        assert_eq!(project_check_name(&project_check("smoke")), Some("smoke"));
    }

    #[test]
    fn every_group_has_checks_and_knows_them() {
        let names: BTreeSet<_> = CheckGroup::ALL.iter().map(|group| group.as_str()).collect();
        assert_eq!(names.len(), CheckGroup::ALL.len());
        for group in CheckGroup::ALL {
            assert_eq!(CheckGroup::parse(group.as_str()), Some(*group));
            assert!(!group.checks().is_empty(), "{group}");
            let own = group.replaces().unwrap_or(*group);
            assert!(group.checks().iter().all(|check| check.group() == own), "{group}");
            assert!(group.level() >= own.level(), "{group}");
        }
        let counted: usize = CheckGroup::ALL.iter().map(|group| group.own_checks().len()).sum();
        assert_eq!(counted, CheckId::ALL.len());
    }

    /// Its ranks are further processes: in exclusive-process mode they cannot open a GPU that another check holds.
    #[test]
    fn ddp_shares_its_process_with_no_other_check() {
        assert_eq!(CheckId::FrameworkDdp.group().checks(), [CheckId::FrameworkDdp]);
        assert_ne!(CheckId::FrameworkDdp.group(), CheckId::FrameworkCompile.group());
    }

    #[test]
    fn stage_and_level_agree() {
        for check in CheckId::ALL {
            match check.stage() {
                Stage::Static => assert_eq!(check.level(), Level::Static, "{check}"),
                Stage::Gpu => assert!([Level::Quick, Level::Full].contains(&check.level()), "{check}"),
                Stage::Perf => assert_eq!(check.level(), Level::Perf, "{check}"),
                Stage::Project => panic!("{check}: the project's checks have no fixed ids"),
            }
            // A table and a course of a minute are no single speed.
            let has_speed = check.stage() == Stage::Perf
                && !matches!(check, CheckId::SpeedPeers | CheckId::SpeedSustained);
            assert_eq!(check.speed().is_some(), has_speed, "{check}");
        }
        assert!(CheckId::GemmLarge.runs_kernel() && CheckId::SpeedConv.runs_kernel());
        assert!(!CheckId::HostHealth.runs_kernel(), "a GPU whose health was read is not proven");
        assert!(!CheckId::Device.runs_kernel() && !CheckId::Nvrtc.runs_kernel());
    }
}

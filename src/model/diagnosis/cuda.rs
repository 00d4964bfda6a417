//! Failures of the CUDA driver and runtime.

use super::entry::KnownError;

pub(super) const ENTRIES: &[KnownError] = &[
    KnownError {
        id: "driver-too-old",
        texts: &[
            &["CUDA driver version is insufficient for CUDA runtime version"],
            &["cudaErrorInsufficientDriver"],
            &["CUDA initialization failure with error: 35"],
            &["Detected that the installed NVIDIA driver is too old"],
            &["CUDA driver version is insufficient"],
            &["NVIDIA driver on your system is too old (found version {api#})"],
            &["NVIDIA driver on your system is too old"],
        ],
        what: "the driver is too old for this CUDA{supports|, or missing in the container}",
        why: "the host's driver is older than this CUDA requires{alike|, or the container was started without a GPU: CUDA reports both alike}",
        cures: &[
            "start it with a GPU first; then update the driver, or build with an older CUDA (`envforge list --for-this-machine`)",
            "build with a CUDA for this driver: `envforge plan {product|SPEC} --driver {driver|VERSION}` chooses one (`nvidia-smi` shows the driver's version), or update the driver on the host",
        ],
        source: "NVIDIA/nvidia-docker#700, #400, #747, #781; NVIDIA/cudf#328",
    },
    KnownError {
        id: "driver-combination",
        texts: &[
            &["unsupported display driver / cuda driver combination"],
            &["cudaErrorSystemDriverMismatch"],
        ],
        what: "libcuda in the container does not match the loaded driver (error 803)",
        why: "the image puts cuda-compat or its own libcuda first on the loader path, or the host's driver was upgraded without a reboot",
        cures: &[
            "remove /usr/local/cuda/compat from the loader path (`ldconfig -p | grep libcuda` must show the mounted library), or reboot the host",
        ],
        source: "NVIDIA/nvidia-docker#1256; llm-d/llm-d#706; ai-dynamo/nixl#441; CompVis/stable-diffusion#439; ggml-org/llama.cpp#23111; NVIDIA/nvidia-container-toolkit#1679",
    },
    KnownError {
        id: "forward-compat-not-allowed",
        texts: &[
            &["forward compatibility was attempted on non supported HW"],
            &["cudaErrorCompatNotSupportedOnDevice"],
        ],
        what: "cuda-compat does not work on this GPU (error 804)",
        why: "forward compatibility is for data-centre GPUs; the package was loaded on an unsupported GPU with an older driver",
        cures: &["update the driver or use an older CUDA, and remove cuda-compat from the loader path"],
        source: "NVIDIA/nvidia-docker#1515; mistralai/mistral-inference#144; Haidra-Org/horde-worker-reGen#349",
    },
    KnownError {
        id: "ptx-too-new",
        texts: &[&["PTX was compiled with an unsupported toolchain"], &["cudaErrorUnsupportedPtxVersion"]],
        what: "the driver cannot compile this PTX (error 222)",
        why: "the PTX is newer than the driver; minor-version compatibility covers machine code only",
        cures: &[
            "use a build with machine code for this GPU, a toolkit not newer than the driver's CUDA, or a newer driver",
        ],
        source: "NVIDIA/nvbandwidth#61, #40; vllm-project/vllm#28305; huggingface/candle#2237",
    },
    KnownError {
        id: "no-code-for-gpu",
        texts: &[
            &["no kernel image is available for execution on the device"],
            &["with CUDA capability {sm} is not compatible with the current PyTorch installation"],
            &["is not compatible with the current PyTorch installation"],
            &["which is of cuda capability", "PyTorch no longer supports this GPU"],
            &[
                "which is of cuda capability {own#}",
                "Minimum and Maximum cuda capability supported",
                "({least#}) - ({most#})",
            ],
            &["'cuLaunchKernel(", "failed with 'CUDA_ERROR_INVALID_HANDLE'"],
            &["'cuModuleGetFunction(", "failed with 'CUDA_ERROR_INVALID_HANDLE'"],
            &["'cuModuleLoadData(", "failed with 'CUDA_ERROR_INVALID_PTX'"],
            &["tf_gpu_runtime_wrappers.cc", "failed with 'CUDA_ERROR_INVALID_"],
            &["PyTorch no longer supports this GPU because it is too old"],
            &["GPU which is too old to be supported by this build of PyTorch"],
            &["no kernel image is available for execution"],
            &["CUDA error: invalid device function"],
            &["cudaErrorNoKernelImageForDevice"],
        ],
        what: "the program has no code for this GPU (error 209)",
        why: "it was built for other architectures: an old CUDA on a new GPU, or a new build that dropped an old GPU",
        cures: &[
            "build for this GPU: `envforge plan {product|SPEC} --gpu {gpu|NAME}` shows a compatible variant, or why there is none",
        ],
        source: "pytorch/pytorch#167244, #157517, #172352; HybridRobotics/berkeley-humanoid-lite#49; Comfy-Org/ComfyUI#16438",
    },
    KnownError {
        id: "gpu-newer-than-build",
        texts: &[
            &[
                "which is of cuda capability {own#}",
                "Minimum and Maximum cuda capability supported",
                "({least#}) - ({most#})",
            ],
            &["TensorFlow was not built with CUDA kernel binaries compatible with compute capability"],
            &["CUDA kernels will be jit-compiled from PTX, which could take"],
        ],
        what: "the GPU is newer than those that the framework was built for",
        why: "code of an earlier minor runs on it, or the driver compiles the framework's PTX at the first start, which takes minutes; as long as the program goes on the line is harmless",
        cures: &[
            "let the program go on; if it fails (`no kernel image`, `CUDA_ERROR_INVALID_HANDLE`) build for this GPU: `envforge plan {product|SPEC} --gpu {gpu|NAME}` shows a compatible variant, or why there is none",
        ],
        source: "tensorflow/tensorflow#62320, #97387; pytorch/pytorch#167244",
    },
    KnownError {
        id: "fabric-not-ready",
        texts: &[&["system not yet initialized"], &["cudaErrorSystemNotReady"]],
        what: "the NVSwitch fabric is not up (error 802)",
        why: "nvidia-fabricmanager is not running on the host or does not match the driver version",
        cures: &[
            "start the fabric manager of exactly the driver's version on the host; `nvidia-smi -q | grep -A2 Fabric` must show Completed and Success",
        ],
        source: "pytorch/pytorch#35710; huggingface/huggingface_hub#4128; dstackai/dstack#2348; NVIDIA/TensorRT-LLM#398; wilicc/gpu-burn#133",
    },
    KnownError {
        id: "no-device",
        texts: &[
            &["no CUDA-capable device is detected"],
            &["cudaErrorNoDevice"],
            &["CUDA initialization failure with error: 100"],
            &["error: no CUDA-capable device"],
        ],
        what: "CUDA sees no GPU (error 100)",
        why: "no GPU was assigned to the container (NVIDIA_VISIBLE_DEVICES, CDI, pod without the resource), or CUDA_VISIBLE_DEVICES lists an invisible GPU",
        cures: &[
            "run `nvidia-smi -L` in the container, unset CUDA_VISIBLE_DEVICES, start it with `--gpus all`",
        ],
        source: "NVIDIA/k8s-device-plugin#471; triton-inference-server/tensorrtllm_backend#336; elastisys/compliantkubernetes-apps#2473",
    },
    KnownError {
        id: "uvm-missing",
        texts: &[
            &["CUDA unknown error - this may be due to an incorrectly set up environment"],
            &["/dev/nvidia-uvm: no such file or directory"],
            &["unknown error 999"],
            &["Error 999: unknown error"],
            &["CUDA error: unknown error"],
            &["failed call to cuInit: CUDA_ERROR_UNKNOWN"],
        ],
        what: "the driver's unified-memory module does not respond (error 999)",
        why: "nvidia_uvm is not loaded on the host (headless boot, suspend, kernel update), or its device node is not in the container; an Xid in the kernel log indicates a GPU fault",
        cures: &[
            "run `nvidia-modprobe -u -c=0` on the host; after a suspend `rmmod nvidia_uvm && modprobe nvidia_uvm`; check `dmesg` for Xid",
        ],
        source: "NVIDIA/nvidia-docker#139, #471, #106; AbdBarho/stable-diffusion-webui-docker#388",
    },
    KnownError {
        id: "stub-library",
        texts: &[&["CUDA driver is a stub library"], &["cudaErrorStubLibrary"]],
        what: "the loader found the stub of libcuda, not the driver (error 34)",
        why: "a stubs directory is on LD_LIBRARY_PATH or in an rpath, or the stub was linked as libcuda.so.1",
        cures: &["remove the stubs directory from LD_LIBRARY_PATH; use LIBRARY_PATH for linking"],
        source: "xmake-io/xmake#4686; NVIDIA/warp#219; fboulnois/stable-diffusion-docker#13; NVIDIA/nvidia-container-toolkit#185",
    },
    KnownError {
        id: "no-libcuda",
        texts: &[
            &["libcuda.so.1: cannot open shared object file"],
            &["Couldn't open CUDA library libcuda.so"],
            &["unable to find libcuda.so DSO loaded into this program"],
        ],
        what: "the driver library is missing in the container",
        why: "it is mounted only into containers with a GPU and `compute` in NVIDIA_DRIVER_CAPABILITIES, not into builds",
        cures: &["start it with `--gpus all`; in a build link against the stub and do not load CUDA"],
        source: "NVIDIA/nvidia-docker#508, #76, #37; chelsea0x3b/cudarc#274; dmlc/decord#102",
    },
    KnownError {
        id: "no-driver-in-build",
        texts: &[&["Found no NVIDIA driver on your system"]],
        what: "the program found no NVIDIA driver",
        why: "builds and containers started without a GPU have no driver",
        cures: &[
            "in a build set TORCH_CUDA_ARCH_LIST (and FORCE_CUDA=1 where it is used); otherwise start the container with `--gpus all`",
        ],
        source: "NVIDIA/nvidia-docker#1734; pytorch/vision#1566; replicate/cog#1039; docker/buildx#3295",
    },
];

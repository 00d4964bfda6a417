//! Failures of the CUDA driver and runtime.

use super::Entry;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "driver-too-old",
        texts: &[
            &["CUDA driver version is insufficient for CUDA runtime version"],
            &["cudaErrorInsufficientDriver"],
            &["NVIDIA driver on your system is too old"],
        ],
        what: "the driver is too old for this CUDA, or there is none in the container",
        why: "the host's driver is below the floor of this CUDA, or the container was started without a GPU: CUDA says the same of both",
        cure: "start it with a GPU first; then update the driver, or build with an older CUDA (`envforge list --for-this-machine`)",
        source: "NVIDIA/nvidia-docker#700, #400, #747, #781; NVIDIA/cudf#328",
    },
    Entry {
        id: "driver-combination",
        texts: &[
            &["unsupported display driver / cuda driver combination"],
            &["cudaErrorSystemDriverMismatch"],
        ],
        what: "libcuda in the container is not the one of the loaded driver (error 803)",
        why: "the image puts cuda-compat or a libcuda of its own first on the loader's path, or the host's driver was upgraded without a reboot",
        cure: "take /usr/local/cuda/compat off the loader's path (`ldconfig -p | grep libcuda` must show the mounted library), or reboot the host",
        source: "NVIDIA/nvidia-docker#1256; llm-d/llm-d#706; ai-dynamo/nixl#441; CompVis/stable-diffusion#439; ggml-org/llama.cpp#23111; NVIDIA/nvidia-container-toolkit#1679",
    },
    Entry {
        id: "forward-compat-not-allowed",
        texts: &[
            &["forward compatibility was attempted on non supported HW"],
            &["cudaErrorCompatNotSupportedOnDevice"],
        ],
        what: "cuda-compat does not work on this GPU (error 804)",
        why: "forward compatibility is for data-centre GPUs; the package was found on a GPU without it and with an older driver",
        cure: "update the driver or take an older CUDA, and take cuda-compat off the loader's path",
        source: "NVIDIA/nvidia-docker#1515; mistralai/mistral-inference#144; Haidra-Org/horde-worker-reGen#349",
    },
    Entry {
        id: "ptx-too-new",
        texts: &[&["PTX was compiled with an unsupported toolchain"], &["cudaErrorUnsupportedPtxVersion"]],
        what: "the driver cannot compile this PTX (error 222)",
        why: "the PTX is newer than the driver; minor-version compatibility covers machine code only",
        cure: "take a build with machine code for this GPU, a toolkit not newer than the driver's CUDA, or a newer driver",
        source: "NVIDIA/nvbandwidth#61, #40; vllm-project/vllm#28305; huggingface/candle#2237",
    },
    Entry {
        id: "no-code-for-gpu",
        texts: &[
            &["no kernel image is available for execution on the device"],
            &["is not compatible with the current PyTorch installation"],
            &["cudaErrorNoKernelImageForDevice"],
        ],
        what: "the program has no code for this GPU (error 209)",
        why: "it was built for other architectures: an old CUDA on a new GPU, or a new build that dropped an old GPU",
        cure: "build for this GPU: `envforge plan SPEC --gpu NAME` names a variant that has code for it",
        source: "pytorch/pytorch#167244, #157517, #172352; HybridRobotics/berkeley-humanoid-lite#49; Comfy-Org/ComfyUI#16438",
    },
    Entry {
        id: "fabric-not-ready",
        texts: &[&["system not yet initialized"], &["cudaErrorSystemNotReady"]],
        what: "the NVSwitch fabric is not up (error 802)",
        why: "nvidia-fabricmanager does not run on the host or is of another version than the driver",
        cure: "start the fabric manager of exactly the driver's version on the host; `nvidia-smi -q | grep -A2 Fabric` must say Completed and Success",
        source: "pytorch/pytorch#35710; huggingface/huggingface_hub#4128; dstackai/dstack#2348; NVIDIA/TensorRT-LLM#398; wilicc/gpu-burn#133",
    },
    Entry {
        id: "no-device",
        texts: &[
            &["no CUDA-capable device is detected"],
            &["cudaErrorNoDevice"],
            &["error: no CUDA-capable device"],
        ],
        what: "CUDA sees no GPU (error 100)",
        why: "no GPU was given to the container (NVIDIA_VISIBLE_DEVICES, CDI, pod without the resource), or CUDA_VISIBLE_DEVICES names one that is not visible",
        cure: "look at `nvidia-smi -L` in the container, unset CUDA_VISIBLE_DEVICES, start it with `--gpus all`",
        source: "NVIDIA/k8s-device-plugin#471; triton-inference-server/tensorrtllm_backend#336; elastisys/compliantkubernetes-apps#2473",
    },
    Entry {
        id: "uvm-missing",
        texts: &[
            &["CUDA unknown error - this may be due to an incorrectly set up environment"],
            &["/dev/nvidia-uvm: no such file or directory"],
        ],
        what: "the driver's unified-memory module does not answer (error 999)",
        why: "nvidia_uvm is not loaded on the host (headless boot, suspend, kernel update), or its device node is not in the container; an Xid in the kernel log means the GPU itself",
        cure: "run `nvidia-modprobe -u -c=0` on the host; after a suspend `rmmod nvidia_uvm && modprobe nvidia_uvm`; look for Xid in `dmesg`",
        source: "NVIDIA/nvidia-docker#139, #471, #106; AbdBarho/stable-diffusion-webui-docker#388",
    },
    Entry {
        id: "stub-library",
        texts: &[&["CUDA driver is a stub library"], &["cudaErrorStubLibrary"]],
        what: "the loader found the stub of libcuda, not the driver (error 34)",
        why: "a stubs folder is on LD_LIBRARY_PATH or in a run path, or the stub was linked as libcuda.so.1",
        cure: "take the stubs folder off LD_LIBRARY_PATH; it belongs in LIBRARY_PATH while linking",
        source: "xmake-io/xmake#4686; NVIDIA/warp#219; fboulnois/stable-diffusion-docker#13; NVIDIA/nvidia-container-toolkit#185",
    },
    Entry {
        id: "no-libcuda",
        texts: &[&["libcuda.so.1: cannot open shared object file"]],
        what: "the driver's library is not in the container",
        why: "it is mounted only when a container starts with a GPU and NVIDIA_DRIVER_CAPABILITIES has `compute`: it is missing in builds and in runs without a GPU",
        cure: "start it with `--gpus all`; in a build link against the stub and load nothing of CUDA",
        source: "NVIDIA/nvidia-docker#508, #76, #37; chelsea0x3b/cudarc#274; dmlc/decord#102",
    },
    Entry {
        id: "no-driver-in-build",
        texts: &[&["Found no NVIDIA driver on your system"]],
        what: "the program found no NVIDIA driver",
        why: "a build has no GPU, and neither has a container started without one",
        cure: "in a build set TORCH_CUDA_ARCH_LIST (and FORCE_CUDA=1 where it is used); else start the container with `--gpus all`",
        source: "NVIDIA/nvidia-docker#1734; pytorch/vision#1566; replicate/cog#1039; docker/buildx#3295",
    },
];

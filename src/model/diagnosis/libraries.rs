//! Failures of the CUDA libraries and compilers.

use super::entry::KnownError;

pub(super) const ENTRIES: &[KnownError] = &[
    KnownError {
        id: "cudnn8-missing",
        texts: &[
            &["Could not load library libcudnn_", ".so.8"],
            &["libcudnn*.so.8: cannot open shared object file"],
        ],
        what: "cuDNN 8 library not found",
        why: "the program was built for cuDNN 8 and the environment has cuDNN 9, or the wheel directories are not on the loader path",
        cure: "use a build for cuDNN 9, or install nvidia-cudnn-cu12 8.9.*; put site-packages/nvidia/{cudnn,cublas}/lib on LD_LIBRARY_PATH if the program has no rpath for it",
        source: "SYSTRAN/faster-whisper#516, #729",
    },
    KnownError {
        id: "cudnn9-missing",
        texts: &[
            &["Unable to load any of {libcudnn_"],
            &["Invalid handle. Cannot load symbol cudnn"],
            &["libcudnn*.so.9: cannot open shared object file"],
        ],
        what: "cuDNN 9 library not found",
        why: "the environment has another cuDNN, or the wheel directory is not on the loader path",
        cure: "install nvidia-cudnn of the program's CUDA major, version 9, and put its lib directory on the loader path",
        source: "daswer123/xtts-finetune-webui#18; SYSTRAN/faster-whisper#729",
    },
    KnownError {
        id: "cudnn-mixed",
        texts: &[&["CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"]],
        what: "libraries of two cuDNN versions were loaded together",
        why: "libcudnn.so.9 came from one place (a wheel) and its parts from another (the image, LD_LIBRARY_PATH, ldconfig)",
        cure: "keep only one cuDNN: use a base without cuDNN if wheels provide it, and unset LD_LIBRARY_PATH; /proc/PID/maps shows the loaded files",
        source: "pytorch/pytorch#188892, #185512, #185746; koharu-rs/koharu#694",
    },
    KnownError {
        id: "cudnn-not-initialized",
        texts: &[&["CUDNN_STATUS_NOT_INITIALIZED"]],
        what: "cuDNN could not start",
        why: "usually GPU memory is full; otherwise cuDNN is for another CUDA major, two copies of CUDA are loaded, or the user has no access to the device nodes",
        cure: "free memory on the GPU, then run one small convolution to see the real error; compare versions with `python -m torch.utils.collect_env`",
        source: "haotian-liu/LLaVA#392, #458; ceccocats/tkDNN#282; NVIDIA/TensorRT#2911; pytorch/pytorch#1171",
    },
    KnownError {
        id: "cudnn-drops-gpu",
        texts: &[&["CUDNN_STATUS_EXECUTION_FAILED_CUDART"], &["CUDNN_STATUS_ARCH_MISMATCH"]],
        what: "cuDNN has no code for this GPU",
        why: "cuDNN 9.11 and newer need compute capability 7.5",
        cure: "on Maxwell, Pascal and Volta use nvidia-cudnn-cu12<=9.10.2.21",
        source: "immich-app/immich#22982, #23110; Quansight/open-gpu-server#69; conda-forge/cudnn-feedstock#124",
    },
    KnownError {
        id: "cublas-not-initialized",
        texts: &[&["CUBLAS_STATUS_NOT_INITIALIZED"]],
        what: "cuBLAS could not start",
        why: "the GPU's memory is full, an earlier failed assertion on the device shows only now, or cuBLAS of another CUDA is on LD_LIBRARY_PATH",
        cure: "set CUDA_LAUNCH_BLOCKING=1 for the real error, use less memory, clear LD_LIBRARY_PATH",
        source: "OpenBMB/VisCPM#3; karpathy/llama2.c#279; SkyworkAI/Skywork#38; qq456cvb/Point-Transformers#26",
    },
    KnownError {
        id: "nvjitlink-too-old",
        texts: &[
            &["undefined symbol: __nvJitLink"],
            &["undefined symbol: _nvJitLink"],
            &["undefined symbol: nvJitLink"],
            &["_nvJitLinkGetErrorLogSize"],
        ],
        what: "nvJitLink is older than the library that needs it",
        why: "an older CUDA on LD_LIBRARY_PATH overrides the wheel, or pip kept an older nvidia-nvjitlink",
        cure: "unset LD_LIBRARY_PATH; pin nvidia-nvjitlink at or above the toolkit of cuSPARSE",
        source: "pytorch/pytorch#111469, #134929; infiniflow/ragflow#4466; jax-ml/jax#30050; NVIDIA/raft#2948",
    },
    KnownError {
        id: "no-nvcc",
        texts: &[
            &["CUDA_HOME environment variable is not set"],
            &["nvcc was not found"],
            &["nvcc: command not found"],
            &["nvcc: not found"],
        ],
        what: "CUDA compiler not found",
        why: "a runtime image has no nvcc, and the nvcc wheels of CUDA 11 and 12 contain only ptxas",
        cure: "use the devel flavour for the step that compiles, or a prebuilt wheel of the extension",
        source: "sgl-project/sglang#3952; Dao-AILab/flash-attention#1736, #1229; NVIDIA/nvidia-docker#1160",
    },
    KnownError {
        id: "nvcc-unknown-gpu",
        texts: &[&["nvcc fatal", "Unsupported gpu architecture"]],
        what: "nvcc does not support this GPU architecture",
        why: "the project's list and the toolkit do not overlap; `native` without a GPU gives an empty architecture",
        cure: "set the architectures: TORCH_CUDA_ARCH_LIST, or -gencode with those of `envforge plan`",
        source: "k2-fsa/k2#1199; sonots/cumo#156; arrayfire/arrayfire#2976; NVlabs/FoundationPose#30; colmap/colmap#1822",
    },
    KnownError {
        id: "no-video-libraries",
        texts: &[
            &["libnvcuvid.so.1: cannot open shared object file"],
            &["libnvidia-encode.so.1: cannot open shared object file"],
        ],
        what: "the driver's video libraries are missing in the container",
        why: "NVIDIA_DRIVER_CAPABILITIES lacks `video`",
        cure: "start it with NVIDIA_DRIVER_CAPABILITIES=compute,utility,video; never copy the library from a host or SDK",
        source: "NVIDIA/nvidia-docker#1001, #1103; NVIDIA/VideoProcessingFramework#29, #61; blakeblackshear/frigate#5166",
    },
];

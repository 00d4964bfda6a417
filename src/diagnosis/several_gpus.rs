//! Failures with several GPUs, MIG instances and profilers.

use super::Entry;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "nccl-nvls",
        texts: &[&["transport/nvls.cc", "NCCL WARN Cuda failure"]],
        what: "NCCL cannot set up NVLink SHARP",
        why: "the fabric manager is in a bad state after a restart, only a part of a board's GPUs is visible, or library and driver have a known fault together",
        cure: "restart the fabric manager on the host while no job runs; to go around it: NCCL_NVLS_ENABLE=0",
        source: "NVIDIA/nccl#976, #1338, #1672",
    },
    Entry {
        id: "nccl-imex",
        texts: &[
            &["NCCL WARN MNNVL", "not working on this system"],
            &["Check the IMEX channel configuration"],
        ],
        what: "NCCL cannot use NVLink across nodes",
        why: "nvidia-imex does not run on all nodes, or /dev/nvidia-caps-imex-channels/channel0 is not in the container",
        cure: "run nvidia-imex of the driver's version on every node and set NVIDIA_IMEX_CHANNELS=0 for the container; on one node NCCL_MNNVL_ENABLE=0 is enough",
        source: "NVIDIA/nccl#1925, #1483, #1632, #2186; NVIDIA/nvbandwidth#39; microsoft/mscclpp#477",
    },
    Entry {
        id: "mig-one-instance",
        texts: &[
            &["device >= 0 && device < num_gpus INTERNAL ASSERT FAILED"],
            &["Duplicate GPU detected"],
            &["invalid literal for int() with base 10: 'MIG-"],
        ],
        what: "the program expects whole GPUs and got MIG instances",
        why: "a process sees only one MIG instance, whatever is visible; there is no peer access between them",
        cure: "run one process per instance with CUDA_VISIBLE_DEVICES=MIG-<uuid>",
        source: "NVIDIA/nccl#1716, #103; pytorch/pytorch#130181; vllm-project/vllm#6582; rapidsai/dask-cuda#674",
    },
    Entry {
        id: "profiler-refused",
        texts: &[&["ERR_NVGPUCTRPERM"], &["CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"]],
        what: "the driver refuses the GPU's performance counters",
        why: "it keeps them for administrators, and a container has not that right",
        cure: "start the container with `--cap-add SYS_ADMIN`, or set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module on the host and reboot",
        source: "HazyResearch/ThunderKittens#73; deepseek-ai/DeepGEMM#46; NVIDIA/dcgm-exporter#427; openxla/xprof#63",
    },
    Entry {
        id: "nccl-system-error",
        texts: &[&["ncclSystemError"], &["unhandled system error", "NCCL_DEBUG=INFO"]],
        what: "a call of NCCL to the system failed",
        why: "often /dev/shm is too small (64 MB in a container), else the network interface or a limit",
        cure: "start the container with `--shm-size=1g` or more; NCCL_DEBUG=INFO names the call",
        source: "NVIDIA/nccl#342, #290",
    },
];

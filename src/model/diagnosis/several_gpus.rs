//! Failures with several GPUs, MIG instances and profilers.

use super::entry::KnownError;

pub(super) const ENTRIES: &[KnownError] = &[
    KnownError {
        id: "nccl-nvls",
        texts: &[&["transport/nvls.cc", "NCCL WARN Cuda failure"]],
        what: "NCCL cannot set up NVLink SHARP",
        why: "the fabric manager is in a bad state after a restart, only a part of a board's GPUs is visible, or library and driver have a known incompatibility",
        cures: &["restart the fabric manager on the host while no job runs; workaround: NCCL_NVLS_ENABLE=0"],
        source: "NVIDIA/nccl#976, #1338, #1672",
    },
    KnownError {
        id: "nccl-imex",
        texts: &[
            &["NCCL WARN MNNVL", "not working on this system"],
            &["Check the IMEX channel configuration"],
        ],
        what: "NCCL cannot use NVLink across nodes",
        why: "nvidia-imex is not running on all nodes, or /dev/nvidia-caps-imex-channels/channel0 is not in the container",
        cures: &[
            "run nvidia-imex of the driver's version on every node and set NVIDIA_IMEX_CHANNELS=0 for the container; on a single node set NCCL_MNNVL_ENABLE=0",
        ],
        source: "NVIDIA/nccl#1925, #1483, #1632, #2186; NVIDIA/nvbandwidth#39; microsoft/mscclpp#477",
    },
    KnownError {
        id: "mig-one-instance",
        texts: &[
            &["device >= 0 && device < num_gpus INTERNAL ASSERT FAILED"],
            &["invalid literal for int() with base 10: 'MIG-"],
        ],
        what: "the program expects full GPUs and got MIG instances",
        why: "a process can use only one MIG instance; instances have no peer access",
        cures: &["run one process per instance with CUDA_VISIBLE_DEVICES=MIG-<uuid>"],
        source: "NVIDIA/nccl#1716, #103; pytorch/pytorch#130181; vllm-project/vllm#6582; rapidsai/dask-cuda#674",
    },
    KnownError {
        id: "profiler-refused",
        texts: &[&["ERR_NVGPUCTRPERM"], &["CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"]],
        what: "the driver refuses the GPU's performance counters",
        why: "they are restricted to administrators, and the container lacks this capability",
        cures: &[
            "start the container with `--cap-add SYS_ADMIN`, or set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module on the host and reboot",
        ],
        source: "HazyResearch/ThunderKittens#73; deepseek-ai/DeepGEMM#46; NVIDIA/dcgm-exporter#427; openxla/xprof#63",
    },
    KnownError {
        id: "nccl-system-error",
        texts: &[&["ncclSystemError"], &["unhandled system error"]],
        what: "a system call of NCCL failed",
        why: "the `NCCL WARN` line before it names the call: shared memory (64 MB in a container), the network interface, InfiniBand or a limit",
        cures: &[
            "set NCCL_DEBUG=INFO, which prints the call, and explain that log: `envforge doctor --explain -`; without such a line start the container with `--shm-size=1g` or more",
            "check the network: NCCL_SOCKET_IFNAME must name an interface of the container (`ip addr`)",
        ],
        source: "NVIDIA/nccl#342, #290",
    },
];

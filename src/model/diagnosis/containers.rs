//! Failures of NVML, nvidia-smi, shared memory and open files inside a running container.

use super::entry::KnownError;

pub(super) const ENTRIES: &[KnownError] = &[
    KnownError {
        id: "gpu-lost",
        texts: &[&["Failed to initialize NVML: Unknown Error"]],
        what: "the container lost its GPU",
        why: "`systemctl daemon-reload` on the host made systemd rewrite the container's device rules, which did not include the GPU",
        cures: &[
            "restart the container; permanent fix: use CDI, or `nvidia-ctk system create-dev-char-symlinks` on the host",
        ],
        source: "NVIDIA/nvidia-container-toolkit#48, #251, #1227; NVIDIA/nvidia-docker#1730, #1671; NVIDIA/gpu-operator#485",
    },
    KnownError {
        id: "driver-library-mismatch",
        texts: &[
            &["Driver/library version mismatch"],
            &["NVRM: API mismatch"],
            &["NVML_ERROR_LIB_RM_VERSION_MISMATCH"],
        ],
        what: "the driver libraries and the loaded kernel module have different versions",
        why: "the host's driver was upgraded under the running module, or the image contains driver libraries that hide the mounted ones",
        cures: &[
            "reboot the host or reload the nvidia modules, then restart the container; never install libnvidia-*, nvidia-utils or cuda-drivers in an image",
        ],
        source: "NVIDIA/nvidia-container-toolkit#171; NVIDIA/nvidia-docker#365, #737, #584; k4yt3x/video2x#1226; lyulyul/shine-cluster#30",
    },
    KnownError {
        id: "no-nvidia-smi",
        texts: &[&["\"nvidia-smi\": executable file not found"]],
        what: "nvidia-smi is not in the container",
        why: "the container was started without a GPU, or NVIDIA_DRIVER_CAPABILITIES lacks `utility`",
        cures: &["start it with `--gpus all` and NVIDIA_DRIVER_CAPABILITIES=compute,utility"],
        source: "NVIDIA/nvidia-docker#1482; weaviate/weaviate-helm#101",
    },
    KnownError {
        id: "file-limit",
        texts: &[
            &["unable to open shared memory object", "Too many open files"],
            &["Too many open files"],
            &["received 0 items of ancdata"],
        ],
        what: "the limit of open files is reached",
        why: "each DataLoader worker passes tensors through open files, and the limit (`ulimit -n`) is low in shells and containers",
        cures: &[
            "raise it (`ulimit -n 65536`, `--ulimit nofile=65536`), or share tensors by name: `torch.multiprocessing.set_sharing_strategy(\"file_system\")`",
        ],
        source: "https://docs.pytorch.org/docs/stable/multiprocessing.html",
    },
    KnownError {
        id: "shm-too-small",
        texts: &[
            &["Error while creating shared memory segment", "No space left on device"],
            &["Error while creating shared memory segment /dev/shm/nccl"],
            &["Error: failed to extend /dev/shm/nccl"],
            &["failed to extend /dev/shm"],
            &["Call to posix_fallocate failed", "No space left on device"],
            &["DataLoader worker", "killed by signal: Bus error"],
            &["out of shared memory", "shared memory limit"],
            &["unable to open shared memory object"],
            &["unable to write to file </torch_"],
            &["unable to mmap * bytes from file </torch_"],
            &["Unexpected bus error encountered in worker"],
            &["insufficient shared memory (shm)"],
            &["The object store is using /tmp instead of /dev/shm"],
            &["/dev/shm", "No space left on device"],
            &["No space left on device: '/dev/shm"],
        ],
        what: "/dev/shm is full",
        why: "its default size is 64 MB; NCCL uses it for GPUs without peer access, DataLoader workers pass tensors through it",
        cures: &[
            "start the container with `--shm-size=1g` or more (`envforge shell --shm-size 8g`; Kubernetes: an emptyDir of medium Memory at /dev/shm)",
            "use fewer workers (`num_workers=0` shows whether they are the reason), pass tensors through files (`torch.multiprocessing.set_sharing_strategy(\"file_system\")`), or set NCCL_SHM_DISABLE=1",
        ],
        source: "NVIDIA/nccl#342, #290, #525; pytorch/ci-infra#490; pytorch/pytorch#5040, #108861; vllm-project/vllm#1710",
    },
];

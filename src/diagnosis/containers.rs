//! Failures of NVML, nvidia-smi and shared memory inside a running container.

use super::Entry;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "gpu-lost",
        texts: &[&["Failed to initialize NVML: Unknown Error"]],
        what: "the container lost its GPU",
        why: "`systemctl daemon-reload` on the host made systemd rewrite the container's device rules, which did not know the GPU",
        cure: "start the container anew; for good: use CDI, or `nvidia-ctk system create-dev-char-symlinks` on the host",
        source: "NVIDIA/nvidia-container-toolkit#48, #251, #1227; NVIDIA/nvidia-docker#1730, #1671; NVIDIA/gpu-operator#485",
    },
    Entry {
        id: "driver-library-mismatch",
        texts: &[&["Driver/library version mismatch"], &["NVML_ERROR_LIB_RM_VERSION_MISMATCH"]],
        what: "the driver's libraries and the loaded kernel module are of two versions",
        why: "the host's driver was upgraded under the running module, or the image has driver libraries of its own that hide the mounted ones",
        cure: "reboot the host or reload the nvidia modules, then start the container anew; never install libnvidia-*, nvidia-utils or cuda-drivers in an image",
        source: "NVIDIA/nvidia-container-toolkit#171; NVIDIA/nvidia-docker#365, #737, #584; k4yt3x/video2x#1226; lyulyul/shine-cluster#30",
    },
    Entry {
        id: "no-nvidia-smi",
        texts: &[&["\"nvidia-smi\": executable file not found"]],
        what: "nvidia-smi is not in the container",
        why: "the container was started without a GPU, or NVIDIA_DRIVER_CAPABILITIES lacks `utility`",
        cure: "start it with `--gpus all` and NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        source: "NVIDIA/nvidia-docker#1482; weaviate/weaviate-helm#101",
    },
    Entry {
        id: "shm-too-small",
        texts: &[
            &["Error while creating shared memory segment", "No space left on device"],
            &["Call to posix_fallocate failed", "No space left on device"],
            &["DataLoader worker", "killed by signal: Bus error"],
            &["out of shared memory", "shared memory limit"],
        ],
        what: "/dev/shm is full",
        why: "an engine gives a container 64 MB there; NCCL uses it for GPUs without peer access, DataLoader workers hand over tensors in it",
        cure: "start the container with `--shm-size=1g` or more (Kubernetes: an emptyDir of medium Memory at /dev/shm)",
        source: "NVIDIA/nccl#342, #290, #525; pytorch/ci-infra#490; pytorch/pytorch#5040, #108861; vllm-project/vllm#1710",
    },
];

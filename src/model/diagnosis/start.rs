//! Failures before the program starts: the engine, the container toolkit, the registry.

use super::entry::KnownError;

pub(super) const ENTRIES: &[KnownError] = &[
    KnownError {
        id: "no-gpu-runtime",
        texts: &[
            &["could not select device driver", "capabilities: [[gpu"],
            &["could not select device driver \"nvidia\""],
            &["\"nvidia-container-cli\": executable file not found"],
            &["\"nvidia-container-runtime\": executable file not found"],
            &["\"nvidia-container-runtime-hook\": executable file not found"],
        ],
        what: "the engine has no GPU runtime for containers",
        why: "nvidia-container-toolkit is not installed on the engine's host or not registered with the engine; an engine from snap or Docker Desktop on Linux cannot see the host's toolkit",
        cures: &[
            "install nvidia-container-toolkit on that host, run `nvidia-ctk runtime configure --runtime=docker`, restart the engine",
        ],
        source: "NVIDIA/nvidia-docker#1352, #1642, #1637; OpenBMB/XAgent#273; infiniflow/ragflow#9573",
    },
    KnownError {
        id: "no-cdi-support",
        texts: &[
            &["could not select device driver \"cdi\""],
            &["stat nvidia.com/gpu=*: no such file or directory"],
        ],
        what: "the engine does not support CDI devices",
        why: "CDI is disabled in this engine (Docker 25 to 27 require the feature flag, older versions lack CDI)",
        cures: &[
            "set `\"features\": {\"cdi\": true}` in /etc/docker/daemon.json and restart the engine, or use the nvidia runtime",
        ],
        source: "https://docs.docker.com/build/building/cdi/",
    },
    KnownError {
        id: "runtime-not-registered",
        texts: &[
            &["unknown runtime specified nvidia"],
            &["unknown or invalid runtime name: nvidia"],
            &["no runtime for \"nvidia\" is configured"],
        ],
        what: "the engine has no runtime `nvidia`",
        why: "it is missing in the engine's configuration, or the engine was not restarted afterwards",
        cures: &[
            "run `nvidia-ctk runtime configure --runtime=docker` (or containerd, crio) and restart the engine; with the GPU Operator wait for its toolkit pod",
        ],
        source: "NVIDIA/nvidia-docker#838, #578; NVIDIA/gpu-operator#730",
    },
    KnownError {
        id: "cdi-device-unknown",
        texts: &[&["unresolvable CDI devices"]],
        what: "the engine does not know the requested CDI device",
        why: "the CDI specification in /etc/cdi or /var/run/cdi is missing, unreadable, or older than the driver",
        cures: &[
            "run `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml` on the engine's host and check with `nvidia-ctk cdi list`; the toolkit log shows the first error",
        ],
        source: "NVIDIA/nvidia-container-toolkit#146, #1239, #1537, #1853; NixOS/nixpkgs#420638; warmshao/FasterLivePortrait#116",
    },
    KnownError {
        id: "image-requires-newer-driver",
        texts: &[
            &["unsatisfied condition: cuda>={needed#}"],
            &["unsatisfied condition: cuda>="],
            &["unsatisfied condition: driver>="],
            &["requirement error: unsatisfied condition:"],
            &["requirement error: invalid expression"],
        ],
        what: "the host's driver does not meet the image's requirement (NVIDIA_REQUIRE_CUDA)",
        why: "the driver is older than the image's CUDA requires",
        cures: &[
            "update the driver, or build for this one: `envforge list --for-this-machine`; if minor-version compatibility suffices, start it with NVIDIA_DISABLE_REQUIRE=1",
        ],
        source: "SyneRBI/PETRIC2#27; MauriceNino/dashdot#1226; NVIDIA/nvidia-container-toolkit#152; NVIDIA/nvidia-docker#1442",
    },
    KnownError {
        id: "toolkit-finds-no-driver",
        texts: &[&["load library failed: libnvidia-ml.so.1"]],
        what: "the container toolkit does not find the NVIDIA driver's libraries",
        why: "the engine's host has no NVIDIA driver, or only its kernel half (headless packages), or the engine runs in a VM or snap with a different root",
        cures: &["install the full driver on that host; `nvidia-smi` must work there first"],
        source: "NVIDIA/libnvidia-container#231; NVIDIA/nvidia-container-toolkit#154; NVIDIA/nvidia-docker#1711; docker/for-win#13835",
    },
    KnownError {
        id: "toolkit-driver-mismatch",
        texts: &[&["nvidia-container-cli", "nvml error: driver/library version mismatch"]],
        what: "the driver libraries and the loaded kernel module have different versions",
        why: "the driver packages were upgraded while the old kernel module stayed loaded",
        cures: &["reboot the engine's host or reload the nvidia modules"],
        source: "NVIDIA/nvidia-container-toolkit#394; psalias2006/gpu-hot#48; NVIDIA/nvidia-docker#584",
    },
    KnownError {
        id: "toolkit-no-permission",
        texts: &[&["nvidia-container-cli", "nvml error: insufficient permissions"]],
        what: "the container toolkit has no permission to use the GPU device nodes",
        why: "SELinux, hidepid or a rootless engine restrict them",
        cures: &["give the engine's user access to /dev/nvidia*, or use CDI"],
        source: "NVIDIA/nvidia-docker#1523, #1235",
    },
    KnownError {
        id: "toolkit-no-gpu",
        texts: &[&["nvidia-container-cli", "cuda error: no cuda-capable device is detected"]],
        what: "the container toolkit sees no GPU",
        why: "the GPU is powered down (Optimus laptop), bound to nouveau, or absent",
        cures: &["remove nouveau, wake the GPU; `nvidia-smi -L` on the engine's host must list it"],
        source: "NVIDIA/nvidia-docker#548, #610",
    },
    KnownError {
        id: "toolkit-driver-silent",
        texts: &[
            &["nvidia-container-cli", "cuda error: unknown error"],
            &["nvidia-container-cli", "driver error: failed to process request"],
        ],
        what: "the driver does not respond to the container toolkit",
        why: "/dev/nvidia-uvm is missing, or a Linux driver was installed inside WSL",
        cures: &[
            "run `nvidia-modprobe -u -c=0` on the engine's host; in WSL remove the Linux driver packages",
        ],
        source: "NVIDIA/nvidia-docker#1508, #610",
    },
    KnownError {
        id: "toolkit-ldconfig",
        texts: &[&["nvidia-container-cli: ldcache error"]],
        what: "the container toolkit could not update the image's library cache",
        why: "its config.toml sets the ldconfig of another distribution, or the image's root cannot run the host's (read-only, noexec, another libc)",
        cures: &[
            "set `ldconfig = \"@/sbin/ldconfig\"` (Debian, Fedora) or `\"@/sbin/ldconfig.real\"` (Ubuntu) in /etc/nvidia-container-runtime/config.toml; for distroless or musl images use CDI",
        ],
        source: "NVIDIA/nvidia-container-toolkit#147; NVIDIA/nvidia-docker#587, #1616, #914; NVIDIA/libnvidia-container#177",
    },
    KnownError {
        id: "rootless-cgroups",
        texts: &[&["failed to add device rules"], &["bpf_prog_query(BPF_CGROUP_DEVICE) failed"]],
        what: "the container toolkit has no permission to set device rules",
        why: "a rootless or nested engine cannot attach device filters on cgroup v2; libnvidia-container before 1.8 does not support cgroup v2",
        cures: &[
            "rootless: `nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place`, or use CDI",
        ],
        source: "NVIDIA/nvidia-container-toolkit#139, #678; NVIDIA/libnvidia-container#154, #176, #209",
    },
    KnownError {
        id: "image-tag-gone",
        texts: &[&["manifest for", "not found: manifest unknown"]],
        what: "the registry does not have this tag",
        why: "it does not exist or was deleted: nvidia/cuda has no `latest`, its tags include the patch release, and old tags are removed by policy",
        cures: &[
            "use a full tag of a supported version; mirror images that must stay available to your own registry",
        ],
        source: "NVIDIA/nvidia-docker#1454, #1735, #1768, #1789; NVlabs/instant-ngp#1406",
    },
    KnownError {
        id: "apt-key-rotated",
        texts: &[&["NO_PUBKEY A4B469963BF863CC"], &["Conflicting values set for option Signed-By", "cuda"]],
        what: "apt does not know the key of NVIDIA's repository",
        why: "NVIDIA changed the key on 2022-04-27; older images contain the old one",
        cures: &[
            "use a newer base image, or remove the old source list and install the cuda-keyring package before `apt-get update`",
        ],
        source: "NVIDIA/nvidia-docker#1631, #1632; open-mmlab/OpenPCDet#955; BlueBrain/morphoclass#63; maum-ai/hififace#19",
    },
    KnownError {
        id: "image-other-processor",
        texts: &[
            &["no matching manifest for {platform} in the manifest"],
            &["no matching manifest for linux/"],
            &["requested image's platform ({other}) does not match the detected host platform ({platform})"],
            &["does not match the detected host platform"],
            &["no match for platform in manifest"],
            &["no image found in image index for architecture"],
            &["image with reference", "does not provide the specified platform"],
            &["exec format error"],
        ],
        what: "the image is for another processor",
        why: "it was built for x86_64 only, or for Arm only, and this machine has the other one",
        cures: &[
            "build it for this processor: `envforge build {spec|SPEC} --platform {platform|linux/arm64}`",
        ],
        source: "NVIDIA/TensorRT#1479; ggml-org/whisper.cpp#2081; caprover/caprover#1378; kubernetes-sigs/dra-driver-nvidia-gpu#163",
    },
    KnownError {
        id: "engine-disk-full",
        texts: &[
            &["failed to register layer", "no space left on device"],
            &["ApplyLayer", "no space left on device"],
        ],
        what: "the disk of the engine is full",
        why: "an image is stored unpacked, several times as large as its download",
        cures: &[
            "free space there: `envforge prune` lists unused images of envforge, `docker system df` everything; `envforge doctor -v` shows the space left",
        ],
        source: "NVIDIA-NeMo/Speech#1029; NVIDIA/nvidia-docker#792; HumanSignal/label-studio-ml-backend#828",
    },
    KnownError {
        id: "registry-pull-limit",
        texts: &[&["toomanyrequests", "pull rate limit"], &["toomanyrequests", "rate exceeded"]],
        what: "the registry refuses further downloads for now",
        why: "it limits pulls by address or account, and other machines behind the same address count too",
        cures: &[
            "log in (`docker login`), or set a mirror (ENVFORGE_IMAGE_MIRROR)",
            "set a mirror of your own (ENVFORGE_IMAGE_MIRROR), or wait as long as the registry says",
        ],
        source: "https://docs.docker.com/docker-hub/usage/pulls/",
    },
    KnownError {
        id: "apptainer-no-driver",
        texts: &[
            &["Could not find any nv files on this host"],
            &["Could not find any NVIDIA libraries on this host"],
            &["could not find any NVIDIA files"],
            &["nvidia-container-cli not found", "--nvccli"],
        ],
        what: "Apptainer found no NVIDIA driver for `--nv`",
        why: "this node has none (login nodes often do not), or neither ldconfig nor PATH lead to its libraries",
        cures: &["run it on a node with a GPU, where `nvidia-smi` works: `srun --gres=gpu:1 ...`"],
        source: "apptainer/singularity#6356, #5837; sylabs/singularity#2805",
    },
];

//! Drivers that do not load, schedulers that refuse, users and disks of containers.

use super::entry::KnownError;

pub(super) const ENTRIES: &[KnownError] = &[
    KnownError {
        id: "kernel-module-missing",
        texts: &[
            &["modprobe: FATAL: Module nvidia not found in directory {folder}"],
            &["modprobe: FATAL: Module nvidia not found"],
            &["could not insert 'nvidia'", "Key was rejected by service"],
            &["Key was rejected by service"],
            &["could not insert 'nvidia': No such device"],
            &["Nouveau kernel driver is currently in use by your system"],
            &["Unable to load the kernel module 'nvidia.ko'"],
            &["Unable to load the 'nvidia-drm' kernel module"],
            &["DKMS", "Bad return status for module build", "nvidia"],
        ],
        what: "the kernel module of the NVIDIA driver does not load",
        why: "it was not built for the running kernel (after a kernel update), Secure Boot rejects it as unsigned (`Key was rejected`), or nouveau holds the GPU",
        cures: &[
            "on the host install the headers of the running kernel and build the module again (`dkms autoinstall`, or reinstall the driver), enrol its key with `mokutil --import` or turn off Secure Boot, blacklist nouveau; then reboot",
        ],
        source: "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/",
    },
    KnownError {
        id: "no-gpu-found",
        texts: &[&["^No devices were found$"]],
        what: "nvidia-smi finds no GPU",
        why: "the driver is loaded and no GPU answers: it failed to start (`dmesg | grep NVRM`), fell off the bus, or the container was given none",
        cures: &[
            "run `nvidia-smi -L` and `dmesg | grep NVRM` on the host; in a container start it with `--gpus all`",
        ],
        source: "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/",
    },
    KnownError {
        id: "vgpu-licence",
        texts: &[
            &["Unable to acquire license"],
            &["vGPU license: unlicensed"],
            &["GRID Licensing", "Failed"],
            &["nvidia-gridd", "Failed to acquire license"],
        ],
        what: "the virtual GPU has no licence",
        why: "without one a vGPU runs slowly and refuses CUDA after some minutes: the licence server is not set, not reached, or has none left",
        cures: &[
            "set the client token in /etc/nvidia/ClientConfigToken and restart nvidia-gridd in the virtual machine; `nvidia-smi -q | grep -i license` shows the state",
        ],
        source: "https://docs.nvidia.com/license-system/latest/nvidia-license-system-quick-start-guide/",
    },
    KnownError {
        id: "device-plugin-no-gpu",
        texts: &[
            &["If this is a GPU node, did you configure the NVIDIA Container Toolkit?"],
            &["Incompatible strategy detected auto"],
            &["Detected non-NVML platform: could not load NVML library"],
            &["No devices found. Waiting indefinitely"],
        ],
        what: "the device plugin of Kubernetes sees no GPU on its node",
        why: "its container was started without the driver: the node's runtime is not `nvidia`, or the node has no driver",
        cures: &[
            "run `nvidia-ctk runtime configure --runtime=containerd --set-as-default` on the node and restart containerd, or give the plugin `runtimeClassName: nvidia`; `nvidia-smi` must work on the node",
        ],
        source: "https://github.com/NVIDIA/k8s-device-plugin#prerequisites",
    },
    KnownError {
        id: "slurm-refused",
        texts: &[
            &["Job violates accounting/QOS policy"],
            &["Invalid account or account/partition combination specified"],
            &["Invalid partition name specified"],
            &["Invalid qos specification"],
            &["User's group not permitted to use this partition"],
            &["Requested time limit is invalid"],
            &["Access/permission denied"],
        ],
        what: "Slurm refuses the job's account, partition or limits",
        why: "the account is missing or not allowed in this partition, the controller does not know the user (`Access/permission denied`), or the request exceeds what account, QOS or partition allow",
        cures: &[
            "see `sacctmgr show assoc user=$USER format=account,partition,qos` and `sinfo -o \"%P %l %G\"`, then set `--account`, `--partition`, `--qos` and `--time` (`envforge export slurm` writes a script with them)",
        ],
        source: "https://slurm.schedmd.com/sbatch.html",
    },
    KnownError {
        id: "slurm-authentication",
        texts: &[
            &["Munge decode failed"],
            &["Munge encode failed"],
            &["has authentication error"],
            &["Protocol authentication error"],
        ],
        what: "Slurm's machines do not accept each other's messages",
        why: "munge signs each message with a key and the time: munged does not run on this machine, a clock is minutes off (`Expired credential`, `Rewound credential`), or the keys differ (`Invalid credential`)",
        cures: &[
            "run `systemctl status munge` and start munged if it does not run; for `Expired` or `Rewound credential` set the clocks (`chronyc tracking`); for `Invalid credential` copy the controller's /etc/munge/munge.key to the machine and restart munged (`systemctl restart munge`), which reads it only then; `scontrol ping` then answers",
        ],
        source: "https://github.com/dun/munge/wiki/Installation-Guide",
    },
    KnownError {
        id: "user-unknown",
        texts: &[
            &["getpwuid(): uid not found"],
            &["No username set in the environment"],
            &["I have no name!"],
            &["cannot find name for user ID"],
        ],
        what: "the container's user has no name",
        why: "it was started with a number (`--user 1001`, Kubernetes, OpenShift) that /etc/passwd of the image does not have, and the program asks for the name",
        cures: &[
            "set USER and LOGNAME (and TORCHINDUCTOR_CACHE_DIR for torch.compile) to any name: `-e USER=dev`; images of envforge work with any number: `envforge shell {spec|SPEC}`",
        ],
        source: "https://docs.python.org/3/library/getpass.html",
    },
    KnownError {
        id: "cache-not-writable",
        texts: &[
            &["Permission denied: '/.cache"],
            &["Permission denied: '/.local"],
            &["Permission denied: '/.config"],
            &["Permission denied: '/.triton"],
            &["Permission denied: '/root/.cache"],
            &["Permission denied: '/nonexistent"],
        ],
        what: "the program cannot write its cache",
        why: "HOME is `/` or belongs to another user, as for containers that run with a number",
        cures: &[
            "set HOME to a directory that is writable (`-e HOME=/tmp`), or the caches one by one: XDG_CACHE_HOME, HF_HOME, TRITON_CACHE_DIR, MPLCONFIGDIR",
        ],
        source: "https://specifications.freedesktop.org/basedir-spec/latest/",
    },
    KnownError {
        id: "read-only",
        texts: &[
            &["[Errno 30] Read-only file system"],
            &["Read-only file system (os error 30)"],
            &["Read-only file system: '{path}"],
        ],
        what: "the file system is read-only here",
        why: "Apptainer images, mounts with `:ro` and the environment of an image are not written to; disks with errors become read-only, too",
        cures: &[
            "write to a mounted directory (Apptainer: `--bind DIR` or `--writable-tmpfs`); packages are added to the project, not to the running container: `envforge add NAME`",
        ],
        source: "https://apptainer.org/docs/user/latest/bind_paths_and_mounts.html",
    },
    KnownError {
        id: "uv-lock-old",
        texts: &[
            &["The lockfile at `uv.lock` needs to be updated"],
            &["Unable to find lockfile at `uv.lock`"],
            &["Failed to parse `uv.lock`"],
            &["The lock file (pdm.lock) is outdated"],
            &["pyproject.toml changed significantly since poetry.lock was last generated"],
            &["poetry.lock is not up to date with pyproject.toml"],
        ],
        what: "the lock does not match the project file",
        why: "pyproject.toml was changed without locking again, or another release of the tool wrote the lock",
        cures: &[
            "lock again and commit both: `uv lock` (Poetry: `poetry lock`); a `--locked` or `--frozen` build then takes it",
        ],
        source: "https://docs.astral.sh/uv/concepts/projects/sync/",
    },
    KnownError {
        id: "hashes-missing",
        texts: &[
            &["In --require-hashes mode, all requirements must have their versions pinned"],
            &["Hashes are required in --require-hashes mode, but they are missing"],
            &["Can't verify hashes for these"],
        ],
        what: "a requirement has no hash, and all must have one",
        why: "one hash in a requirements file asks for hashes of everything, dependencies included",
        cures: &[
            "compile the file again with all dependencies (`uv pip compile --generate-hashes`, `pip-compile --generate-hashes`); envforge.lock pins every file by hash of its own: `envforge lock`",
        ],
        source: "https://pip.pypa.io/en/stable/topics/secure-installs/",
    },
    KnownError {
        id: "uv-first-index",
        texts: &[
            &[
                "but not at the requested version",
                "A compatible version may be available on a subsequent index",
            ],
            &["was found on *, but not at the requested version"],
            &["was not found in the provided package locations"],
        ],
        what: "uv took the package from the first index that has its name",
        why: "by default it does not look in later indexes, and PyTorch's own index has old copies of common packages",
        cures: &[
            "name PyTorch's index for torch alone (`[[tool.uv.index]]` with `explicit = true` and `[tool.uv.sources]`), or pass `--index-strategy unsafe-best-match`; envforge takes torch from the index of its CUDA by itself: `envforge plan {spec|pytorch-cuda}`",
        ],
        source: "https://docs.astral.sh/uv/concepts/indexes/",
    },
    KnownError {
        id: "conda-no-driver",
        texts: &[
            &["__cuda", "which is missing on the system"],
            &["nothing provides __cuda needed by"],
            &["nothing provides __cuda"],
            &["feature:/linux-64::__cuda"],
        ],
        what: "conda sees no NVIDIA driver on this machine",
        why: "packages with CUDA need the virtual package `__cuda`, which login nodes and image builds do not have",
        cures: &[
            "set CONDA_OVERRIDE_CUDA to the CUDA that the target's driver supports (`CONDA_OVERRIDE_CUDA=12.4`), or build the image with envforge, which needs no GPU: `envforge init --from environment.yml`",
        ],
        source: "https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-virtual.html",
    },
    KnownError {
        id: "conda-channel-refused",
        texts: &[
            &["CondaToSNonInteractiveError"],
            &["HTTP 403 FORBIDDEN for channel"],
            &["Terms of Service have not been accepted for the following channels"],
        ],
        what: "the channel refuses conda",
        why: "Anaconda's own channels (`defaults`, repo.anaconda.com) ask for their terms of service to be accepted, and larger organizations for a licence; companies block them, and private channels ask for a login",
        cures: &[
            "use conda-forge alone: `channels: [conda-forge, nodefaults]` in environment.yml, `conda config --remove channels defaults`; images of envforge need no conda: `envforge init --from environment.yml`",
            "accept the terms if they fit your organization: `conda tos accept --override-channels --channel CHANNEL`",
        ],
        source: "https://www.anaconda.com/docs/getting-started/tos-plugin",
    },
    KnownError {
        id: "conda-activate",
        texts: &[
            &["has not been properly configured to use 'conda activate'"],
            &["Run 'conda init' before 'conda activate'"],
        ],
        what: "this shell cannot activate conda's environment",
        why: "`conda activate` is a function of interactive shells, which scripts, jobs and `RUN` of a Dockerfile are not",
        cures: &[
            "run the command in it: `conda run -n NAME COMMAND`; in a script first `eval \"$(conda shell.bash hook)\"`; images of envforge have their environment on PATH: `envforge init --from environment.yml`",
        ],
        source: "https://docs.conda.io/projects/conda/en/stable/dev-guide/deep-dives/activation.html",
    },
    KnownError {
        id: "ray-no-gpu",
        texts: &[
            &["No available node types can fulfill resource request {'GPU'"],
            &["The following resource request cannot be scheduled right now: {'GPU'"],
            &["No available node types can fulfill resource request"],
        ],
        what: "Ray has no node with the requested GPUs",
        why: "the cluster was started without `--num-gpus`, its containers have no GPU, or fewer are free than the program asks for",
        cures: &[
            "see `ray status`; start workers with a GPU (`--gpus all`, `nvidia.com/gpu` of the pod) and as many as tensor and pipeline parallelism need together",
        ],
        source: "https://docs.ray.io/en/latest/ray-core/scheduling/accelerators.html",
    },
    KnownError {
        id: "port-in-use",
        texts: &[
            &["The server socket has failed to bind to", "Address already in use"],
            &["(errno: 98 - Address already in use)"],
            &["Errno 98] Address already in use"],
            &["[Errno 98] error while attempting to bind on address"],
            &["bind: address already in use"],
            &["~EADDRINUSE~"],
            &["The server socket has failed to listen on any local network address"],
        ],
        what: "the port is in use",
        why: "another job or an earlier run on this machine still listens on it, and containers with the host's network share its ports",
        cures: &[
            "choose another: `torchrun --master-port 29501` (or `--standalone`), MASTER_PORT, `--port`; `ss -ltnp` shows which program has it",
        ],
        source: "https://docs.pytorch.org/docs/stable/elastic/run.html",
    },
    KnownError {
        id: "threads-refused",
        texts: &[
            &["OpenBLAS blas_thread_init: pthread_create failed for thread"],
            &["RuntimeError: can't start new thread"],
            &["libgomp: Thread creation failed"],
        ],
        what: "the program may not start threads",
        why: "`Operation not permitted`: an engine older than Docker 20.10.10 (or its libseccomp) blocks the call clone3 of a newer glibc; `Resource temporarily unavailable`: the limit of processes (`--pids-limit`, `ulimit -u`) is reached",
        cures: &[
            "update the engine to Docker 20.10.10 or newer (until then `docker run --security-opt seccomp=unconfined`, or a base with glibc 2.33 or older); at a limit raise `--pids-limit` and `ulimit -u`",
            "use fewer threads: OPENBLAS_NUM_THREADS=1 and OMP_NUM_THREADS=1",
        ],
        source: "OpenBMB/XAgent#266; langgenius/dify#886; https://docs.docker.com/engine/release-notes/20.10/",
    },
    KnownError {
        id: "mpi-failed",
        texts: &[
            &["mpirun has detected an attempt to run as root"],
            &["cannot load MPI library"],
            &["There are not enough slots available in the system"],
            &["A requested component was not found, or was unable to be opened"],
            &["PMIX ERROR"],
            &["Open MPI tried to fork a new process via the 'execve' system call but failed"],
        ],
        what: "MPI could not start the processes",
        why: "Open MPI refuses root without `--allow-run-as-root`, counts slots by processor, and needs the same library inside the container as its launcher outside",
        cures: &[
            "in a container run `mpirun --allow-run-as-root --oversubscribe` or, without MPI, `torchrun`; under Slurm use `srun --mpi=pmix`; the library is the distribution's package libopenmpi3 in `[packages] apt`",
        ],
        source: "https://docs.open-mpi.org/en/v5.0.x/launching-apps/index.html",
    },
    KnownError {
        id: "squashfs-compression",
        texts: &[
            &["Squashfs image uses * compression, this version supports only"],
            &["Filesystem uses * compression. This is not supported"],
            &["kernel reported a bad superblock for squashfs image partition"],
            &["mksquashfs: Compressor '*' is not supported"],
        ],
        what: "this machine does not know the compression of the image file",
        why: "its squashfuse, mksquashfs or kernel is built without it: zstd needs Linux 4.14 with SQUASHFS_ZSTD, or tools with libzstd",
        cures: &[
            "write the file again with `--compression gzip`, which every reader knows: `envforge export sif {spec|SPEC} FILE.sif --compression gzip` (or `export squashfs`); a file of `enroot import` with `ENROOT_SQUASH_OPTIONS=\"-comp gzip\"`",
        ],
        source: "https://github.com/vasi/squashfuse/issues/67; https://github.com/apptainer/apptainer/issues/2458",
    },
    KnownError {
        id: "squashfs-damaged",
        texts: &[
            &["Can't find a valid SQUASHFS superblock"],
            &["zstd uncompress failed with error code"],
            &["gzip uncompress failed with error code"],
            &["xz uncompress failed with error code"],
        ],
        what: "the image file is not a whole SquashFS file",
        why: "its download or copy was cut off (a full disk or quota), or it is a file of another kind: SIF, tar, an error page",
        cures: &[
            "compare `ls -l FILE` and `sha256sum FILE` with the machine that wrote it, see `df -h` here, and copy it or write it again: `envforge export squashfs {spec|SPEC} FILE` (`file FILE` shows its kind; a SIF is for Apptainer)",
        ],
        source: "https://github.com/plougher/squashfs-tools",
    },
    KnownError {
        id: "apptainer-squashfs",
        texts: &[
            &["squashfuse not found, will not be able to mount SIF"],
            &["image driver instance required"],
            &["while extracting", "unsquashfs"],
        ],
        what: "Apptainer cannot mount the image on this machine",
        why: "without setuid it needs squashfuse (or a kernel that mounts for users), and the machine has neither",
        cures: &[
            "install squashfuse and fuse2fs, or start the image as a directory: `apptainer build --sandbox DIR IMAGE.sif`",
        ],
        source: "https://apptainer.org/docs/admin/latest/installation.html",
    },
    KnownError {
        id: "no-user-namespaces",
        texts: &[
            &["enroot-nsenter: failed to create user namespace"],
            &["failed to create user namespace: Operation not permitted"],
            &["clone: operation not permitted", " user namespace"],
            &["kernel.unprivileged_userns_clone"],
            &["newuidmap: write to uid_map failed"],
            &["apparmor_restrict_unprivileged_userns"],
        ],
        what: "this machine does not let users make namespaces",
        why: "the kernel or AppArmor forbids them (Ubuntu 24.04, hardened clusters, containers within containers); enroot, rootless engines and Apptainer without setuid need them",
        cures: &[
            "ask for `sysctl user.max_user_namespaces` above 0 and, on Ubuntu, `kernel.apparmor_restrict_unprivileged_userns=0`; within Docker start the outer container with `--security-opt seccomp=unconfined`",
        ],
        source: "https://github.com/NVIDIA/enroot/blob/master/doc/requirements.md",
    },
    KnownError {
        id: "rootless-user-numbers",
        texts: &[
            &["potentially insufficient UIDs or GIDs available in user namespace"],
            &["there might not be enough IDs available in the namespace"],
            &["no subuid ranges found for user"],
            &["cannot find UID/GID for user"],
        ],
        what: "the rootless engine has too few user numbers for this image",
        why: "files of the image belong to users whose numbers /etc/subuid and /etc/subgid do not give to this user; common for users of LDAP and on clusters",
        cures: &[
            "have them added (`sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER`), then run `podman system migrate`",
            "without such numbers use Apptainer or enroot, which need none: `envforge export sif {spec|SPEC} FILE.sif`",
        ],
        source: "https://github.com/containers/podman/blob/main/troubleshooting.md",
    },
    KnownError {
        id: "libaio-missing",
        texts: &[&["async_io requires the dev libaio .so object and headers"]],
        what: "DeepSpeed found no libaio",
        why: "its operator async_io reads and writes tensors on NVMe; without offloading to NVMe the line is harmless",
        cures: &[
            "if you offload to NVMe add the distribution's package libaio-dev to `[packages] apt` and lock again; otherwise nothing is to be done",
        ],
        source: "https://www.deepspeed.ai/tutorials/advanced-install/",
    },
    KnownError {
        id: "segfault",
        texts: &[
            &["Segmentation fault (core dumped)"],
            &["^Segmentation fault$"],
            &["Fatal Python error: Segmentation fault"],
            &["died with <Signals.SIGSEGV: 11>"],
            &["Signal 11 (SIGSEGV) received"],
            &["exitcode : -11 (pid"],
            &["exitcode: -11) local_rank"],
        ],
        what: "the program crashed in compiled code",
        why: "an extension was built for another PyTorch, CUDA or Python, two copies of a library are loaded, or a library has a fault; the line does not say which",
        cures: &[
            "run it with `python -X faulthandler`, which prints the Python line, then check that package: `envforge compat abi {package|NAME}==VERSION --spec {spec|SPEC}`; unset LD_LIBRARY_PATH and LD_PRELOAD",
        ],
        source: "https://docs.python.org/3/library/faulthandler.html",
    },
    KnownError {
        id: "no-git",
        texts: &[
            &["Cannot find command 'git'"],
            &["git: command not found"],
            &["git: not found"],
            &["Git executable not found"],
            &["Failed to initialize: Bad git executable"],
        ],
        what: "git is missing",
        why: "a requirement is a repository (`git+https://...`), or the program reads its own commit, and slim images have no git",
        cures: &[
            "add `git` to `[packages] apt`, as images of envforge have it; a repository among the requirements is better a wheel: `pip wheel`, then `--wheel FILE`",
        ],
        source: "https://pip.pypa.io/en/stable/topics/vcs-support/",
    },
    KnownError {
        id: "no-rust",
        texts: &[
            &["can't find Rust compiler"],
            &["This package requires Rust and Cargo to compile extensions"],
            &["error: cargo, the Rust package manager, is not installed"],
        ],
        what: "a package is built from source with Rust, which is missing",
        why: "the index has no wheel of this release for this Python and processor (tokenizers, safetensors and others have wheels for common ones)",
        cures: &[
            "choose a release with a wheel, or the Python that it has one for: `envforge plan {spec|SPEC} --with {package|PACKAGE}`; an old pip does not see newer wheels either: update it",
        ],
        source: "https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/",
    },
];

//! Failures of Windows' Linux subsystem.

use super::entry::KnownError;

pub(super) const ENTRIES: &[KnownError] = &[
    KnownError {
        id: "wsl-linux-driver",
        texts: &[
            &["mount error: stat failed: /usr/lib/wsl/lib/"],
            &["mount error: file creation failed:", "libnvidia-ml.so.1: file exists"],
            &["mount error: file creation failed:", "libcuda.so.1: file exists"],
        ],
        what: "the container toolkit cannot mount the driver of WSL",
        why: "the driver of WSL is the Windows one; Linux driver packages in the distribution, or driver files in the image, conflict with it",
        cures: &[
            "in WSL keep only cuda-toolkit packages and remove libnvidia-* and nvidia-*; remove stray driver files from the image; update the Windows driver and run `wsl --update`",
        ],
        source: "NVIDIA/nvidia-docker#1225, #1551, #1665, #1508",
    },
    KnownError {
        id: "wsl-libcuda-link",
        texts: &[
            &["/usr/lib/wsl/lib/libcuda.so.1 is not a symbolic link"],
            &["libcuda.so: cannot open shared object file"],
        ],
        what: "libcuda is not on the program's search path",
        why: "Windows places copies instead of links, and the program searches for libcuda.so in another directory; the ldconfig warning alone is harmless",
        cures: &["put /usr/lib/wsl/lib first on LD_LIBRARY_PATH; never point it at lib64/stubs"],
        source: "microsoft/WSL#5548, #5663, #8587; sylabs/singularity#1549",
    },
    KnownError {
        id: "wsl-blocked",
        texts: &[&["GPU access blocked by the operating system"]],
        what: "Windows blocks access to the GPU",
        why: "the toolkit or the engine inside WSL is too old for WSL, or the set of driver files does not match",
        cures: &[
            "update nvidia-container-toolkit or Docker Desktop, and WSL itself; with CDI generate the specification inside WSL",
        ],
        source: "microsoft/WSL#9962; nix-community/NixOS-WSL#578; seflerZ/oneclick-gpu-pv#8; docker/buildx#3295",
    },
];

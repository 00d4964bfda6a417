//! Failures of Windows' Linux subsystem.

use super::Entry;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "wsl-linux-driver",
        texts: &[
            &["mount error: stat failed: /usr/lib/wsl/lib/"],
            &["mount error: file creation failed:", "libnvidia-ml.so.1: file exists"],
            &["mount error: file creation failed:", "libcuda.so.1: file exists"],
        ],
        what: "the container toolkit cannot mount the driver of WSL",
        why: "the driver of WSL is the Windows one; Linux driver packages inside the distribution, or driver files left in the image, are in its way",
        cure: "in WSL keep only cuda-toolkit packages and remove libnvidia-* and nvidia-*; remove stray driver files from the image; update the Windows driver and run `wsl --update`",
        source: "NVIDIA/nvidia-docker#1225, #1551, #1665, #1508",
    },
    Entry {
        id: "wsl-libcuda-link",
        texts: &[
            &["/usr/lib/wsl/lib/libcuda.so.1 is not a symbolic link"],
            &["libcuda.so: cannot open shared object file"],
        ],
        what: "libcuda is not where the program looks for it",
        why: "Windows places copies instead of links, and the program looks for libcuda.so in another folder; the warning of ldconfig alone is harmless",
        cure: "put /usr/lib/wsl/lib first on LD_LIBRARY_PATH; never point it at lib64/stubs",
        source: "microsoft/WSL#5548, #5663, #8587; sylabs/singularity#1549",
    },
    Entry {
        id: "wsl-blocked",
        texts: &[&["GPU access blocked by the operating system"]],
        what: "Windows blocks the access to the GPU",
        why: "the toolkit or the engine inside WSL does not know WSL (old version), or the set of driver files does not match",
        cure: "update nvidia-container-toolkit or Docker Desktop, and WSL itself; with CDI make the specification inside WSL",
        source: "microsoft/WSL#9962; nix-community/NixOS-WSL#578; seflerZ/oneclick-gpu-pv#8; docker/buildx#3295",
    },
];

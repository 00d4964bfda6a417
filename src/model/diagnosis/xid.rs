//! Errors of a GPU that the kernel driver writes into the kernel's log: `NVRM: Xid (PCI:0000:3b:00): 79, …`.

use super::entry::KnownError;

const CATALOGUE: &str = "https://docs.nvidia.com/deploy/xid-errors/index.html";

pub(super) const ENTRIES: &[KnownError] = &[
    KnownError {
        id: "xid-bus",
        texts: &[&["NVRM: Xid (", "): 79,"]],
        what: "the GPU fell off the bus (Xid 79)",
        why: "the driver cannot reach the card over PCIe: power, slot, temperature or the card itself",
        cures: &[
            "check power cables, slot and temperature, and reboot the host; have the card replaced if it happens again",
        ],
        source: CATALOGUE,
    },
    KnownError {
        id: "xid-memory",
        texts: &[
            &["NVRM: Xid (", "): 48,"],
            &["NVRM: Xid (", "): 63,"],
            &["NVRM: Xid (", "): 64,"],
            &["NVRM: Xid (", "): 92,"],
            &["NVRM: Xid (", "): 94,"],
            &["NVRM: Xid (", "): 95,"],
        ],
        what: "the GPU's memory had errors (Xid 48, 63, 64, 92, 94 or 95)",
        why: "ECC found wrong bits; a bad row is replaced by a spare one at the next reset of the GPU",
        cures: &[
            "see `nvidia-smi -q -d ECC,ROW_REMAPPER`, end all programs and reset the GPU (`nvidia-smi -r`); have it replaced if errors go on or a remapping failed",
        ],
        source: CATALOGUE,
    },
    KnownError {
        id: "xid-nvlink",
        texts: &[&["NVRM: Xid (", "): 74,"]],
        what: "an NVLink connection had errors (Xid 74)",
        why: "the link, its bridge or switch, or the GPU at its other end is faulty",
        cures: &[
            "see `nvidia-smi nvlink -e`, reset the GPUs of the link together or reboot; have the hardware checked if it happens again",
        ],
        source: CATALOGUE,
    },
    KnownError {
        id: "xid-firmware",
        texts: &[
            &["NVRM: Xid (", "): 61,"],
            &["NVRM: Xid (", "): 62,"],
            &["NVRM: Xid (", "): 119,"],
            &["NVRM: Xid (", "): 120,"],
        ],
        what: "a processor inside the GPU stopped (Xid 61, 62, 119 or 120)",
        why: "the GPU's own firmware halted or no longer answers the driver",
        cures: &["reset the GPU (`nvidia-smi -r`) or reboot; update the driver if it happens again"],
        source: CATALOGUE,
    },
    KnownError {
        id: "xid-program",
        texts: &[
            &["NVRM: Xid (", "): 13,"],
            &["NVRM: Xid (", "): 31,"],
            &["NVRM: Xid (", "): 43,"],
            &["NVRM: Xid (", "): 45,"],
        ],
        what: "a program's work on the GPU was ended (Xid 13, 31, 43 or 45)",
        why: "in most cases the program used a wrong address or instruction; 45 follows after another error or a killed program",
        cures: &[
            "run that program with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer; if programs without a known fault fail too, test the GPU (`envforge verify --level full`)",
        ],
        source: CATALOGUE,
    },
    KnownError {
        id: "xid",
        texts: &[&["NVRM: Xid ("]],
        what: "the GPU reported an error (Xid)",
        why: "its number, after the address of the GPU, names the error",
        cures: &[
            "look the number up in NVIDIA's catalogue of Xid errors; reset the GPU or reboot if programs fail",
        ],
        source: CATALOGUE,
    },
];

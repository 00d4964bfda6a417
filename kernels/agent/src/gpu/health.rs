//! What NVML says of a GPU's health: its link to the host, memory errors, remapped rows and links to other GPUs. A function that the
//! driver lacks, or that the GPU does not support, leaves its fact unknown.

use std::ffi::{c_int, c_uint, c_void};

use crate::dlopen;

type Handle = *mut c_void;

functions! {
    /// The link to the host.
    PcieCalls {
        generation = c"nvmlDeviceGetCurrPcieLinkGeneration"(Handle, *mut c_uint);
        width = c"nvmlDeviceGetCurrPcieLinkWidth"(Handle, *mut c_uint);
        most_generation = c"nvmlDeviceGetMaxPcieLinkGeneration"(Handle, *mut c_uint);
        most_width = c"nvmlDeviceGetMaxPcieLinkWidth"(Handle, *mut c_uint);
    }
}
functions! {
    /// Errors of memory with ECC.
    EccCalls {
        errors = c"nvmlDeviceGetTotalEccErrors"(Handle, c_int, c_int, *mut u64);
    }
}
functions! {
    /// Rows of memory that the GPU replaced by spare ones; from Ampere on.
    RowCalls {
        rows = c"nvmlDeviceGetRemappedRows"(Handle, *mut c_uint, *mut c_uint, *mut c_uint, *mut c_uint);
    }
}
functions! {
    /// Links to other GPUs.
    NvlinkCalls {
        state = c"nvmlDeviceGetNvLinkState"(Handle, c_uint, *mut c_int);
    }
}

/// `NVML_NVLINK_MAX_LINKS`.
const MOST_LINKS: c_uint = 18;

/// GB/s of one lane in one direction after the line code, by generation from 1 on: PCI Express base specification.
const LANE: [f64; 6] = [0.25, 0.5, 0.985, 1.969, 3.938, 7.563];

/// The link between a GPU and the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pcie {
    /// The generation now: an idle GPU lowers it.
    pub(crate) generation: u32,
    /// Lanes now.
    pub(crate) width: u32,
    /// The highest generation and most lanes that this GPU can have in this machine.
    pub(crate) most: (u32, u32),
}

impl Pcie {
    /// GB/s in one direction, if the generation is known.
    pub(crate) fn bandwidth(self) -> Option<f64> {
        let lane = LANE.get(usize::try_from(self.generation.checked_sub(1)?).ok()?)?;
        Some(lane * f64::from(self.width))
    }
}

/// Rows that were replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RemappedRows {
    /// Replaced after corrected and after uncorrected errors.
    pub(crate) counts: (u32, u32),
    /// A replacement waits for a reset of the GPU.
    pub(crate) pending: bool,
    /// A replacement failed: no spare row was left.
    pub(crate) failed: bool,
}

/// What is known of a GPU's health.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) pcie: Option<Pcie>,
    /// Corrected and uncorrected errors of memory since the driver was loaded.
    pub(crate) ecc: Option<(u64, u64)>,
    pub(crate) rows: Option<RemappedRows>,
    /// Links that are up and down.
    pub(crate) nvlinks: Option<(u32, u32)>,
}

impl Health {
    /// Reads what the library and the GPU tell.
    pub(super) fn of(library: dlopen::Library, device: Handle) -> Self {
        Self {
            pcie: pcie(library, device),
            ecc: ecc(library, device),
            rows: rows(library, device),
            nvlinks: nvlinks(library, device),
        }
    }

    /// What the owner of the host should know, each with its fix.
    pub(crate) fn findings(&self) -> Vec<(String, &'static str)> {
        let mut all = Vec::new();
        if let Some(Pcie { width, most: (_, most), .. }) = self.pcie
            && width < most
        {
            let text = format!("PCIe link has {width} of {most} lanes");
            all.push((text, "reseat the GPU, or check its slot, riser and the firmware's settings"));
        }
        if let Some((_, errors @ 1..)) = self.ecc {
            let text = format!("{errors} uncorrected memory errors since the driver was loaded");
            all.push((text, "reset the GPU; if the count grows again, have it replaced"));
        }
        if let Some(rows) = self.rows {
            if rows.failed {
                let text = "replacing a damaged row of memory failed: no spare is left".to_owned();
                all.push((text, "have the GPU replaced"));
            }
            if rows.pending {
                let text = "a damaged row of memory waits to be replaced".to_owned();
                all.push((text, "reset the GPU: `nvidia-smi --gpu-reset`, or reboot"));
            }
        }
        // Without any link that is up there is no bridge or switch, which is no fault.
        if let Some((up @ 1.., down @ 1..)) = self.nvlinks {
            let text = format!("{down} of {} NVLinks are down", up + down);
            all.push((text, "check `nvidia-smi nvlink --status` and the fabric manager"));
        }
        all
    }
}

fn pcie(library: dlopen::Library, device: Handle) -> Option<Pcie> {
    let calls = PcieCalls::load(library).ok()?;
    let number = |call: unsafe extern "C" fn(Handle, *mut c_uint) -> c_int| {
        let mut value = 0;
        // SAFETY: the handle came from NVML, the pointer is to a living number.
        (unsafe { call(device, &raw mut value) } == 0).then_some(value)
    };
    Some(Pcie {
        generation: number(calls.generation)?,
        width: number(calls.width)?,
        most: (number(calls.most_generation)?, number(calls.most_width)?),
    })
}

fn ecc(library: dlopen::Library, device: Handle) -> Option<(u64, u64)> {
    let calls = EccCalls::load(library).ok()?;
    let count = |kind: c_int| {
        let mut errors = 0;
        // SAFETY: the handle came from NVML, the pointer is to a living number; counter 0 is since the driver's start.
        (unsafe { (calls.errors)(device, kind, 0, &raw mut errors) } == 0).then_some(errors)
    };
    Some((count(0)?, count(1)?))
}

fn rows(library: dlopen::Library, device: Handle) -> Option<RemappedRows> {
    let calls = RowCalls::load(library).ok()?;
    let (mut corrected, mut uncorrected, mut pending, mut failed) = (0, 0, 0, 0);
    // SAFETY: the handle came from NVML, the pointers are to living numbers.
    let code = unsafe {
        (calls.rows)(device, &raw mut corrected, &raw mut uncorrected, &raw mut pending, &raw mut failed)
    };
    (code == 0).then_some(RemappedRows {
        counts: (corrected, uncorrected),
        pending: pending != 0,
        failed: failed != 0,
    })
}

/// A link that the GPU does not have is a status.
fn nvlinks(library: dlopen::Library, device: Handle) -> Option<(u32, u32)> {
    let calls = NvlinkCalls::load(library).ok()?;
    let (mut up, mut down) = (0, 0);
    for link in 0..MOST_LINKS {
        let mut active = 0;
        // SAFETY: the handle came from NVML, the pointer is to a living number.
        if unsafe { (calls.state)(device, link, &raw mut active) } == 0 {
            *(if active == 0 { &mut down } else { &mut up }) += 1;
        }
    }
    (up + down > 0).then_some((up, down))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_follows_from_generation_and_width() {
        let link = |generation, width| Pcie { generation, width, most: (5, 16) }.bandwidth();
        assert_eq!(link(3, 16), Some(0.985 * 16.0));
        assert_eq!(link(4, 8), Some(1.969 * 8.0));
        assert_eq!((link(0, 16), link(9, 16)), (None, None));
    }

    #[test]
    fn healthy_gpu_has_no_finding_and_each_fault_has_one() {
        let good = Health {
            pcie: Some(Pcie { generation: 1, width: 16, most: (5, 16) }),
            ecc: Some((12, 0)),
            rows: Some(RemappedRows { counts: (2, 0), pending: false, failed: false }),
            nvlinks: Some((18, 0)),
        };
        assert_eq!(
            good.findings(),
            [],
            "an idle GPU lowers its link's generation, corrected errors are normal"
        );
        assert_eq!(Health { nvlinks: Some((0, 12)), ..good.clone() }.findings(), [], "no bridge");
        assert_eq!(Health::default().findings(), [], "nothing is known");
        let rows = RemappedRows { counts: (0, 1), pending: true, failed: true };
        let bad = Health {
            pcie: Some(Pcie { generation: 5, width: 8, most: (5, 16) }),
            ecc: Some((0, 3)),
            rows: Some(rows),
            nvlinks: Some((17, 1)),
        };
        let texts: Vec<_> = bad.findings().into_iter().map(|(text, _)| text).collect();
        assert_eq!(
            texts,
            [
                "PCIe link has 8 of 16 lanes",
                "3 uncorrected memory errors since the driver was loaded",
                "replacing a damaged row of memory failed: no spare is left",
                "a damaged row of memory waits to be replaced",
                "1 of 18 NVLinks are down",
            ]
        );
    }
}

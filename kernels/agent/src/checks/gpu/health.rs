//! Reports the health of the host's GPUs by NVML. A finding is about the host: it warns and never fails an image.

use envforge_protocol::{CheckId, SkipReason};

use super::{CheckFailure, CheckPass, machine, merged};
use crate::checks::Options;
use crate::gpu::driver::Facts;
use crate::gpu::nvml::Nvml;
use crate::report::Report;

/// What the kernel module was loaded with; the container runtime shows it in containers.
const DRIVER_PARAMETERS: &str = "/proc/driver/nvidia/params";

pub(crate) fn run(options: &Options, say: &mut dyn FnMut(Report)) {
    let answers = match facts(options) {
        Ok((nvml, devices)) => devices.iter().map(|gpu| (gpu.label(), of(&nvml, gpu))).collect(),
        Err(failure) => vec![(String::new(), Err(failure))],
    };
    let report = merged(CheckId::HostHealth, answers);
    // One name for all of them, so that programs and people find it.
    let warnings = report.measured.iter().filter(|(name, _)| name.starts_with("warning"));
    let warning = warnings.map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("; ");
    say(if warning.is_empty() { report } else { report.with_warning(&warning) });
}

fn facts(options: &Options) -> Result<(Nvml, Vec<Facts>), CheckFailure> {
    let (_, devices) = machine(options)?;
    let absent = || CheckFailure::skip(SkipReason::NotReported, "NVML is not in the container");
    // What is wrong with NVML itself is a finding of the check `device`.
    Ok((Nvml::open().ok().flatten().ok_or_else(absent)?, devices))
}

fn of(nvml: &Nvml, gpu: &Facts) -> Result<CheckPass, CheckFailure> {
    let health = nvml.health(&gpu.bus).ok_or_else(|| {
        CheckFailure::skip(SkipReason::NotReported, format!("NVML does not list GPU {}", gpu.bus))
    })?;
    let findings = health.findings();
    let texts: Vec<_> = findings.iter().map(|(text, fix)| format!("{text} ({fix})")).collect();
    let mut pass = CheckPass::new(if texts.is_empty() { "no finding".to_owned() } else { texts.join("; ") });
    if let Some(users) = std::fs::read_to_string(DRIVER_PARAMETERS).ok().as_deref().and_then(profilers) {
        pass = pass.with("profilers", users);
    }
    if let Some(link) = health.pcie {
        pass = pass.with("pcie_width", link.width).with("pcie_width_most", link.most.1);
    }
    if let Some((corrected, uncorrected)) = health.ecc {
        pass = pass.with("ecc_corrected", corrected).with("ecc_uncorrected", uncorrected);
    }
    if let Some(rows) = health.rows {
        pass = pass.with("remapped_rows", rows.counts.0 + rows.counts.1);
    }
    if let Some((up, down)) = health.nvlinks {
        pass = pass.with("nvlinks_up", up).with("nvlinks_down", down);
    }
    let warning: Vec<_> = findings.iter().map(|(text, _)| text.as_str()).collect();
    Ok(if warning.is_empty() {
        pass
    } else {
        pass.with("warning", format!("{}: {}", gpu.bus, warning.join("; ")))
    })
}

/// Who may read the GPU's performance counters (CUPTI, Nsight Compute); the driver's default is administrators.
/// Source: NVIDIA's page on `ERR_NVGPUCTRPERM`.
fn profilers(parameters: &str) -> Option<&'static str> {
    let value = parameters.lines().find_map(|line| line.strip_prefix("RmProfilingAdminOnly:"))?;
    match value.trim() {
        "0" => Some("all users"),
        "1" => Some("administrators"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::profilers;

    #[test]
    fn driver_parameters_name_who_may_profile() {
        assert_eq!(profilers("RmLogonRC: 1\nRmProfilingAdminOnly: 1\n"), Some("administrators"));
        assert_eq!(profilers("RmProfilingAdminOnly: 0\nModifyDeviceFiles: 1\n"), Some("all users"));
        assert_eq!(profilers("ModifyDeviceFiles: 1\n"), None, "an older driver");
        assert_eq!(profilers("RmProfilingAdminOnly: 7\n"), None);
    }
}

//! Proves that the driver starts and shows GPUs, that it agrees with NVML, and that the image has code for every GPU.

use envforge_protocol::{Capability, CheckId, Expectation, Key, cubin_runs_on};

use super::{CheckFailure, CheckPass, merged};
use crate::checks::Options;
use crate::gpu::driver::{Driver, Facts};
use crate::gpu::nvml::Nvml;
use crate::libraries;
use crate::report::Report;

/// NVML counts the memory that the driver keeps for itself, and rounds: it may differ by a sixteenth.
const MEMORY_SHARE: u64 = 16;

pub(crate) fn run(options: &Options, say: &mut dyn FnMut(Report)) {
    let start = start();
    let devices = start.as_ref().map_or_else(|_| Vec::new(), |(_, _, devices)| devices.clone());
    let labels = devices.iter().map(Facts::label).collect::<Vec<_>>().join(", ");
    let good = |version: i32, devices: &[Facts]| {
        let path = libraries::mapped("libcuda.so").map(|path| path.display().to_string());
        let detail = format!("supports CUDA {}, {} GPUs: {labels}", dotted(version), devices.len());
        CheckPass::new(detail)
            .with("cuda", dotted(version))
            .with("gpus", devices.len())
            .with(
                "compute_mode",
                if devices.iter().any(|facts| facts.exclusive) { "exclusive" } else { "default" },
            )
            .with("library", path.unwrap_or_else(|| "unknown".to_owned()))
    };
    let driver = match &start {
        Ok((version, _, devices)) => Ok(good(*version, devices)),
        Err(failure) => Err(failure.clone()),
    };
    say(merged(CheckId::Driver, vec![(labels.clone(), driver)]));
    let not_run = |_| CheckFailure::error("not run: the check `driver` did not pass");
    let device = start.map_err(not_run).and_then(|(version, _, devices)| {
        let expected = options.expectation_if_given().map_err(CheckFailure::error)?;
        judge(version, &devices, Nvml::open()?.as_ref(), &expected)
    });
    say(merged(CheckId::Device, vec![(labels, device)]));
}

fn start() -> Result<(i32, Driver, Vec<Facts>), CheckFailure> {
    let driver = Driver::load().map_err(|problem| missing(&problem))?;
    // Read first: it answers even where cuInit fails, and shows what to install.
    let version = driver.version()?;
    let with_version = |failure: CheckFailure| CheckFailure {
        detail: format!("{}; the driver library supports CUDA {}", failure.detail, dotted(version)),
        ..failure
    };
    driver.init().map_err(|fault| with_version(fault.into()))?;
    let devices = driver.devices().map_err(|fault| with_version(fault.into()))?;
    if devices.is_empty() { Err(with_version(no_device())) } else { Ok((version, driver, devices)) }
}

/// No libcuda.so.1 that can be loaded.
pub(crate) fn missing(problem: &str) -> CheckFailure {
    CheckFailure::fail(format!("cannot load the driver's library: {problem}")).hint(
        "start the container with `--gpus all` or a CDI device; the host needs the driver and the NVIDIA container toolkit; \
         NVIDIA_DRIVER_CAPABILITIES must include `compute`",
    )
}

/// The driver started and counts no GPU.
pub(crate) fn no_device() -> CheckFailure {
    CheckFailure::fail("the driver starts but reports 0 GPUs")
        .hint("check NVIDIA_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES: they list no GPU that exists")
}

/// 12040 as `12.4`.
fn dotted(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The driver's facts against NVML's and against the lock.
fn judge(
    version: i32,
    devices: &[Facts],
    nvml: Option<&Nvml>,
    expected: &Expectation,
) -> Result<CheckPass, CheckFailure> {
    let mut problems = Vec::new();
    let mut good = CheckPass::default();
    for facts in devices {
        let (major, minor) = facts.capability;
        let gib = facts.memory >> 30;
        good = good
            .with(&format!("capability.{}", facts.ordinal), format!("{major}.{minor}"))
            .with(&format!("memory_gib.{}", facts.ordinal), gib)
            .with(&format!("bus.{}", facts.ordinal), &facts.bus);
    }
    let (supported, others) = by_code(devices.to_vec(), expected);
    if supported.is_empty() {
        problems.push(no_code(&others).detail);
    }
    if let Some(lock) = expected.value(Key::Cuda)
        && let Some(major) = lock.split('.').next().and_then(|major| major.parse::<i32>().ok())
        && version / 1000 < major
    {
        problems.push(format!("the driver supports CUDA {}, the lock requires {lock}", dotted(version)));
    }
    let nvml = match nvml {
        None => "NVML is not in the container".to_owned(),
        Some(nvml) => {
            if let Some(driver) = nvml.driver_version() {
                good = good.with("driver", driver);
            }
            problems.extend(devices.iter().filter_map(|facts| differs(facts, nvml)));
            "NVML agrees".to_owned()
        }
    };
    if problems.is_empty() {
        let list = devices.iter().map(|facts| format!("{} {} GiB", facts.label(), facts.memory >> 30));
        good.detail = format!("{}; {nvml}", list.collect::<Vec<_>>().join(", "));
        if !others.is_empty() {
            good.detail.push_str(&format!("; not tested: {}", no_code(&others).detail));
        }
        return Ok(good);
    }
    Err(CheckFailure::fail(problems.join("; ")).hint(
        "build the image for this machine (`envforge plan SPEC --gpu NAME --driver VERSION` shows compatible stacks), or install a newer driver",
    ))
}

/// Returns the difference between the driver's and NVML's facts of a GPU. NVML lists all GPUs of the host, the driver the
/// visible ones: the bus address identifies them.
fn differs(facts: &Facts, nvml: &Nvml) -> Option<String> {
    let other = nvml.at_bus(&facts.bus)?;
    if other.name != facts.name && !facts.name.contains("MIG") {
        return Some(format!("the driver names GPU {} {}, NVML {}", facts.bus, facts.name, other.name));
    }
    let (own, theirs) = (facts.memory as u64, other.memory);
    // A MIG slice has a part of the GPU's memory.
    let apart = own > theirs + theirs / MEMORY_SHARE;
    apart.then(|| format!("the driver reports {own} bytes of memory for GPU {}, NVML {theirs}", facts.bus))
}

/// Splits the GPUs into those that the image has code for and the others; unknown code counts for all.
pub(crate) fn by_code(devices: Vec<Facts>, expected: &Expectation) -> (Vec<Facts>, Vec<Facts>) {
    let unknown = expected.arch.is_empty() && expected.ptx.is_empty();
    devices.into_iter().partition(|facts| unknown || has_code(facts.capability, expected))
}

/// The image has no code for any visible GPU.
pub(crate) fn no_code(devices: &[Facts]) -> CheckFailure {
    let labels: Vec<_> = devices.iter().map(Facts::label).collect();
    CheckFailure::fail(format!("the image has no code for {}", labels.join(", ")))
}

/// Machine code that runs there, or PTX no newer than the GPU.
fn has_code(capability: Capability, expected: &Expectation) -> bool {
    let (chips, ptx) = (expected.chips(Key::Arch), expected.chips(Key::Ptx));
    chips.iter().any(|code| cubin_runs_on(*code, capability)) || ptx.iter().any(|ptx| *ptx <= capability)
}

#[cfg(test)]
mod tests {
    use envforge_protocol::Outcome;

    use super::*;

    fn facts(capability: (u32, u32)) -> Facts {
        Facts {
            ordinal: 0,
            handle: 0,
            name: "NVIDIA H200".to_owned(),
            capability,
            memory: 141 << 30,
            multiprocessors: 132,
            clock: 0,
            memory_clock: 0,
            memory_bus: 0,
            ecc: true,
            exclusive: false,
            integrated: false,
            maps_memory: true,
            bus: "0000:3b:00".to_owned(),
        }
    }

    #[test]
    fn a_gpu_needs_code_of_its_major_version_or_older_ptx() {
        let expected = Expectation::parse("arch=8.0\narch=9.0\nptx=12.0\n").expect("reads");
        for (capability, served) in [
            ((8, 0), true),
            ((8, 6), true),
            ((8, 7), false),
            ((9, 0), true),
            ((7, 5), false),
            ((10, 0), false),
            ((12, 0), true),
            ((12, 1), true),
        ] {
            assert_eq!(has_code(capability, &expected), served, "{capability:?}");
        }
    }

    #[test]
    fn a_gpu_without_code_and_a_driver_of_an_older_cuda_fail() {
        let expected = Expectation::parse("cuda=12.8\narch=9.0\n").expect("reads");
        assert!(judge(12040, &[facts((9, 0))], None, &expected).is_ok(), "12.4 serves 12.8");
        let failure = judge(11080, &[facts((12, 0))], None, &expected).expect_err("fails");
        assert_eq!(failure.outcome, Outcome::Failed);
        assert!(failure.detail.contains("no code for NVIDIA H200 (sm_120)"), "{}", failure.detail);
        assert!(failure.detail.contains("supports CUDA 11.8, the lock requires 12.8"), "{}", failure.detail);
        assert!(
            judge(11080, &[facts((12, 0))], None, &Expectation::default()).is_ok(),
            "nothing to compare with"
        );
    }
}

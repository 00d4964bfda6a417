//! Proves that the driver starts and shows GPUs, that it agrees with NVML, and that the image has code for every GPU.

use super::super::super::expect::Expectation;
use super::super::super::gpu::driver::{Driver, Facts};
use super::super::super::gpu::nvml::Nvml;
use super::super::super::libraries;
use super::super::super::report::Report;
use super::super::Options;
use super::{Good, Trouble, merged};

pub(crate) const IDS: &[&str] = &["driver", "device"];

/// NVML counts the memory that the driver keeps for itself, and rounds: it may differ by a sixteenth.
const MEMORY_SHARE: u64 = 16;

pub(crate) fn run(options: &Options, say: &mut dyn FnMut(Report)) {
    let start = start();
    let devices = start.as_ref().map_or_else(|_| Vec::new(), |(_, _, devices)| devices.clone());
    let labels = devices.iter().map(Facts::label).collect::<Vec<_>>().join(", ");
    let good = |version: i32, devices: &[Facts]| {
        let path = libraries::mapped("libcuda.so").map(|path| path.display().to_string());
        let detail = format!("serves CUDA {}, {} of GPU: {labels}", dotted(version), devices.len());
        Good::new(detail)
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
        Err(trouble) => Err(trouble.clone()),
    };
    say(merged("driver", vec![(labels.clone(), driver)]));
    let device = start.and_then(|(version, _, devices)| {
        let expected = options.promises().map_err(Trouble::error)?;
        judge(version, &devices, Nvml::open()?.as_ref(), &expected)
    });
    say(merged("device", vec![(labels, device)]));
}

fn start() -> Result<(i32, Driver, Vec<Facts>), Trouble> {
    let driver = Driver::load().map_err(|problem| missing(&problem))?;
    // Asked first: it answers even where cuInit fails, and tells what to install.
    let version = driver.version()?;
    let told = |trouble: Trouble| Trouble {
        detail: format!("{}; the driver library serves CUDA {}", trouble.detail, dotted(version)),
        ..trouble
    };
    driver.init().map_err(|fault| told(fault.into()))?;
    let devices = driver.devices().map_err(|fault| told(fault.into()))?;
    if devices.is_empty() { Err(told(no_device())) } else { Ok((version, driver, devices)) }
}

/// No libcuda.so.1 that can be loaded.
pub(crate) fn missing(problem: &str) -> Trouble {
    Trouble::fail(format!("the driver's library cannot be loaded: {problem}")).hint(
        "start the container with `--gpus all` or a CDI device; the host needs the driver and the NVIDIA container toolkit; \
         NVIDIA_DRIVER_CAPABILITIES must hold `compute`",
    )
}

/// The driver started and counts no GPU.
pub(crate) fn no_device() -> Trouble {
    Trouble::fail("the driver starts and shows 0 GPUs")
        .hint("look at NVIDIA_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES: they name none that is there")
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
) -> Result<Good, Trouble> {
    let mut problems = Vec::new();
    let mut good = Good::default();
    for facts in devices {
        let (major, minor) = facts.capability;
        let gib = facts.memory >> 30;
        good = good
            .with(&format!("capability.{}", facts.ordinal), format!("{major}.{minor}"))
            .with(&format!("memory_gib.{}", facts.ordinal), gib)
            .with(&format!("bus.{}", facts.ordinal), &facts.bus);
        let promised = !expected.arch.is_empty() || !expected.ptx.is_empty();
        if promised && !has_code(facts.capability, expected) {
            problems.push(format!("the image has no code for {}", facts.label()));
        }
    }
    if let Some(lock) = expected.value("cuda")
        && let Some(major) = lock.split('.').next().and_then(|major| major.parse::<i32>().ok())
        && version / 1000 < major
    {
        problems.push(format!("the driver serves CUDA {} and the lock needs {lock}", dotted(version)));
    }
    let beside = match nvml {
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
        good.detail = format!("{}; {beside}", list.collect::<Vec<_>>().join(", "));
        return Ok(good);
    }
    Err(Trouble::fail(problems.join("; ")).hint(
        "build the image for this machine (`envforge plan SPEC --gpu NAME --driver VERSION` tells what fits), or install a newer driver",
    ))
}

/// What NVML says otherwise of a GPU. NVML knows all GPUs of the host, the driver those that are visible: the bus address
/// tells which is which.
fn differs(facts: &Facts, nvml: &Nvml) -> Option<String> {
    let other = nvml.at_bus(&facts.bus)?;
    if other.name != facts.name && !facts.name.contains("MIG") {
        return Some(format!("the driver calls GPU {} {}, NVML {}", facts.bus, facts.name, other.name));
    }
    let (own, theirs) = (facts.memory as u64, other.memory);
    // A MIG slice has a part of the GPU's memory.
    let apart = own > theirs + theirs / MEMORY_SHARE;
    apart.then(|| format!("the driver says {own} bytes of memory for GPU {}, NVML {theirs}", facts.bus))
}

/// Machine code of the same major version and no newer minor, or PTX no newer than the GPU.
fn has_code(capability: (u32, u32), expected: &Expectation) -> bool {
    let (chips, ptx) = (expected.chips("arch"), expected.chips("ptx"));
    chips.iter().any(|(major, minor)| *major == capability.0 && *minor <= capability.1)
        || ptx.iter().any(|ptx| *ptx <= capability)
}

#[cfg(test)]
mod tests {
    use super::super::super::super::report::Outcome;
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
            bus: "0000:3b:00".to_owned(),
        }
    }

    #[test]
    fn a_gpu_needs_code_of_its_major_version_or_older_ptx() {
        let expected = Expectation::parse("arch=8.0\narch=9.0\nptx=12.0\n").expect("reads");
        for (capability, served) in [
            ((8, 0), true),
            ((8, 6), true),
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
        let trouble = judge(11080, &[facts((12, 0))], None, &expected).expect_err("fails");
        assert_eq!(trouble.outcome, Outcome::Failed);
        assert!(trouble.detail.contains("no code for NVIDIA H200 (sm_120)"), "{}", trouble.detail);
        assert!(trouble.detail.contains("serves CUDA 11.8 and the lock needs 12.8"), "{}", trouble.detail);
        assert!(
            judge(11080, &[facts((12, 0))], None, &Expectation::default()).is_ok(),
            "nothing is promised"
        );
    }
}

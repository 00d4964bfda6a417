//! Which machine the image is for: what was typed, else the environment, else this machine's driver.

use crate::host::{self, GpuError, HostFacts};
use crate::model::compat::Matrix;
use crate::model::request::{LockOptions, TargetOptions};
use crate::model::resolve::{ResolveOptions, newest_of_branch};
use crate::model::target::{Target, TargetGpu, TargetSource};
use crate::model::versions::{ComputeCapability, CudaApiVersion, DriverVersion, Machine, VersionError};
use crate::report::{Event, Reporter};
use crate::settings::{Settings, TargetOverrides, UnknownStacks};
use crate::workflow::error::CommandError;
use crate::workflow::request_error::RequestError;

fn here() -> Machine {
    if cfg!(target_arch = "aarch64") { Machine::Aarch64 } else { Machine::X86_64 }
}

/// The machine of the image: `--platform`, else the only one that the GPUs are in, else this one.
pub(crate) fn machine(args: &TargetOptions, matrix: &Matrix) -> Machine {
    args.platform.or_else(|| only_machine(&args.gpu, matrix)).unwrap_or_else(here)
}

/// What else is wanted of a stack than its spec and target say.
pub(crate) fn options(machine: &TargetOptions, source: &LockOptions, settings: &Settings) -> ResolveOptions {
    ResolveOptions {
        forward_compat: machine.forward_compat,
        base: source.base.clone(),
        toolkit: settings.source.toolkit,
        no_source: machine.no_source,
        refuse_unknown: settings.policy.unknown == Some(UnknownStacks::Refuse),
        as_of: source.as_of.clone(),
    }
}

/// The target. This machine's driver is asked only if nothing names one.
pub(crate) fn target(
    args: &TargetOptions,
    overrides: &TargetOverrides,
    matrix: &Matrix,
    reporter: &dyn Reporter,
) -> Result<Target, CommandError> {
    let mut machine = machine(args, matrix);
    if args.target.is_some() {
        return Ok(Target::any(machine));
    }
    let named_gpus = if args.gpu.is_empty() { overrides.gpu.clone() } else { Some(args.gpu.clone()) };
    let named_driver = args.driver.clone().or_else(|| overrides.driver.clone());
    if named_gpus.is_none() && named_driver.is_none() {
        return Ok(detected(machine, host::detect(), reporter));
    }
    let names = named_gpus.unwrap_or_default();
    let gpus = names.iter().map(|name| named_gpu(name, matrix)).collect::<Result<Vec<_>, _>>()?;
    let named_driver = named_driver.filter(|text| !text.is_empty());
    let driver = named_driver.map(|text| driver(&text, matrix, reporter)).transpose()?;
    // No image for another processor starts beside these GPUs.
    if let Some(only) = only_machine(&names, matrix) {
        if args.platform.is_some() && only != machine {
            let gpu = names[0].clone();
            return Err(RequestError::PlatformOfGpu { gpu, only: only.platform() }.into());
        }
        if only != here() && args.platform.is_none() {
            let text = format!("planning for {}: {} is only in such machines", only.platform(), names[0]);
            reporter.report(Event::Note { text });
        }
        machine = only;
    }
    let source = if gpus.is_empty() && driver.is_none() { TargetSource::Any } else { TargetSource::Named };
    Ok(Target { source, driver, gpus, machine })
}

/// The processor that all of these GPUs need; `None`: they may be in several.
fn only_machine(names: &[String], matrix: &Matrix) -> Option<Machine> {
    if names.is_empty() {
        return None;
    }
    let known = matrix.gpu_names();
    let mut all = names.iter().map(|name| known.only_machine(name));
    let first = all.next()??;
    all.all(|machine| machine == Some(first)).then_some(first)
}

/// The driver of that text. The first number of a driver has three digits; a smaller one is a CUDA version. A branch alone (`580`, `R580`)
/// is that branch as it is today.
fn driver(text: &str, matrix: &Matrix, reporter: &dyn Reporter) -> Result<DriverVersion, RequestError> {
    let branch = text.trim().trim_start_matches(['R', 'r']);
    let is_branch = branch.len() == 3 && branch.bytes().all(|byte| byte.is_ascii_digit());
    let known = branch.parse().ok().filter(|_| is_branch);
    if let Some(newest) = known.and_then(|branch| newest_of_branch(matrix, branch)) {
        let text =
            format!("--driver {text}: branch R{branch}, from {newest} on; name an older driver in full");
        reporter.report(Event::Note { text });
        return Ok(newest);
    }
    if is_branch && text.trim().starts_with(['R', 'r']) {
        let wanted = "a driver branch of the matrix such as `R580`, or a driver version such as `570.124.06`";
        let cause = VersionError { wanted, found: text.to_owned() };
        return Err(RequestError::Version { option: "--driver", cause });
    }
    let driver: DriverVersion =
        text.parse().map_err(|cause| RequestError::Version { option: "--driver", cause })?;
    if driver.major() >= 100 {
        return Ok(driver);
    }
    let cuda = text.parse::<CudaApiVersion>().ok();
    let native = matrix.branches.iter().find(|row| Some(&row.max_cuda) >= cuda.as_ref());
    let branch = native.filter(|_| cuda.is_some()).map(|row| row.branch);
    Err(RequestError::CudaAsDriver { typed: text.to_owned(), branch })
}

/// The GPU of that name or compute capability.
pub(crate) fn named_gpu(name: &str, matrix: &Matrix) -> Result<TargetGpu, CommandError> {
    if let Ok(compute_capability) = name.parse::<ComputeCapability>() {
        return Ok(TargetGpu { name: None, compute_capability });
    }
    let found = match (matrix.gpu_named(name), code(name, matrix)) {
        (Err(_), Some(compute_capability)) => return Ok(TargetGpu { name: None, compute_capability }),
        (found, _) => found?,
    };
    Ok(TargetGpu { name: Some(found.name.clone()), compute_capability: found.compute_capability })
}

/// The capability of a compiler's target: `compute_80`, `sm_90a`, `89`.
fn code(text: &str, matrix: &Matrix) -> Option<ComputeCapability> {
    let lower = text.trim().to_ascii_lowercase();
    let plain = ["compute_", "compute", "sm_", "sm"].iter().find_map(|start| lower.strip_prefix(start));
    let plain = plain.unwrap_or(&lower);
    let digits = plain.strip_suffix(['a', 'f']).unwrap_or(plain);
    let found: ComputeCapability = format!("sm_{digits}").parse().ok()?;
    matrix.capability(found).map(|row| row.cc)
}

fn detected(machine: Machine, facts: Result<HostFacts, GpuError>, reporter: &dyn Reporter) -> Target {
    match facts {
        Ok(HostFacts { driver, gpus, .. }) if !gpus.is_empty() => Target {
            source: TargetSource::Detected,
            driver: Some(driver),
            gpus: gpus
                .into_iter()
                .map(|gpu| TargetGpu { name: Some(gpu.name), compute_capability: gpu.compute_capability })
                .collect(),
            machine,
        },
        Ok(_) | Err(GpuError::NoDriver) => Target::any(machine),
        Err(error) => {
            reporter.report(Event::Warning { text: format!("{error}; planning for any machine") });
            Target::any(machine)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::NullReporter;

    #[test]
    fn cuda_version_is_no_driver() {
        let refused =
            |text: &str| driver(text, crate::model::compat::embedded(), &NullReporter).expect_err(text);
        for (text, branch) in [("12.8", Some(570)), ("13.0", Some(580)), ("99.1", None)] {
            let error = refused(text);
            assert!(error.to_string().contains(&format!("`{text}` is a CUDA version")), "{error}");
            assert!(
                matches!(error, RequestError::CudaAsDriver { branch: found, .. } if found == branch),
                "{text}"
            );
        }
        assert!(matches!(refused("new"), RequestError::Version { .. }));
        let read = |text: &str| {
            driver(text, crate::model::compat::embedded(), &NullReporter).expect("a driver").to_string()
        };
        assert_eq!(read("570.124.06"), "570.124.06");
        // A branch is as it is today: CUDA 13.0 runs on R580, CUDA 11 on R450.
        let least = |text: &str, least: &str| {
            let found: DriverVersion = read(text).parse().expect("a driver");
            assert!(
                found >= least.parse().expect("a driver")
                    && found.major().to_string() == text[text.len() - 3..]
            );
        };
        least("580", "580.65.06");
        least("R580", "580.65.06");
        least("r450", "450.80.02");
    }

    #[test]
    fn gpu_is_named_as_compilers_do_and_brings_its_processor() {
        let matrix = crate::model::compat::embedded();
        for (name, capability) in
            [("sm_90a", "9.0"), ("compute_80", "8.0"), ("89", "8.9"), ("sm_100f", "10.0")]
        {
            assert_eq!(
                named_gpu(name, matrix).expect(name).compute_capability.dotted(),
                capability,
                "{name}"
            );
        }
        assert!(named_gpu("77", matrix).is_err());
        let target = |gpus: &[&str], platform: Option<Machine>| {
            let args = TargetOptions {
                gpu: gpus.iter().map(|gpu| (*gpu).to_owned()).collect(),
                platform,
                ..TargetOptions::default()
            };
            target(&args, &TargetOverrides::default(), matrix, &NullReporter)
                .map(|target| target.machine)
                .ok()
        };
        let usual = Some(here());
        assert_eq!(target(&["H100"], None), usual);
        for gpu in ["GB10", "DGX Spark", "GH200", "NVIDIA GB200", "Thor"] {
            assert_eq!(target(&[gpu], None), Some(Machine::Aarch64), "{gpu}");
            assert_eq!(target(&[gpu], Some(Machine::Aarch64)), Some(Machine::Aarch64), "{gpu}");
            assert_eq!(target(&[gpu], Some(Machine::X86_64)), None, "{gpu}");
        }
        assert_eq!(target(&["GB10", "H100"], None), usual);
        assert_eq!(target(&["sm_121"], None), usual);
    }
}

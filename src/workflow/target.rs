//! Which machine the image is for: what was typed, else the environment, else this machine's driver.

use crate::host::{self, GpuError, HostFacts};
use crate::model::compat::Matrix;
use crate::model::request::{LockOptions, TargetOptions};
use crate::model::resolve::ResolveOptions;
use crate::model::target::{Target, TargetGpu, TargetSource};
use crate::model::versions::{ComputeCapability, CudaApiVersion, DriverVersion, Machine};
use crate::report::{Event, Reporter};
use crate::settings::{Settings, TargetOverrides, UnknownStacks};
use crate::workflow::error::CommandError;
use crate::workflow::request_error::RequestError;

/// The machine of the image: `--platform`, else this one.
pub(crate) fn machine(args: &TargetOptions) -> Machine {
    match args.platform.as_deref() {
        Some("linux/arm64") => Machine::Aarch64,
        None if cfg!(target_arch = "aarch64") => Machine::Aarch64,
        _ => Machine::X86_64,
    }
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
    let machine = machine(args);
    if args.target.is_some() {
        return Ok(Target::any(machine));
    }
    let named_gpus = if args.gpu.is_empty() { overrides.gpu.clone() } else { Some(args.gpu.clone()) };
    let named_driver = args.driver.clone().or_else(|| overrides.driver.clone());
    if named_gpus.is_none() && named_driver.is_none() {
        return Ok(detected(machine, host::detect(), reporter));
    }
    let gpus = named_gpus
        .unwrap_or_default()
        .iter()
        .map(|name| named_gpu(name, matrix))
        .collect::<Result<Vec<_>, _>>()?;
    let driver =
        named_driver.filter(|text| !text.is_empty()).map(|text| driver(&text, matrix)).transpose()?;
    let source = if gpus.is_empty() && driver.is_none() { TargetSource::Any } else { TargetSource::Named };
    Ok(Target { source, driver, gpus, machine })
}

/// The driver of that text. The first number of a driver has three digits; a smaller one is a CUDA version.
fn driver(text: &str, matrix: &Matrix) -> Result<DriverVersion, RequestError> {
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

fn named_gpu(name: &str, matrix: &Matrix) -> Result<TargetGpu, CommandError> {
    if let Ok(compute_capability) = name.parse::<ComputeCapability>() {
        return Ok(TargetGpu { name: None, compute_capability });
    }
    let found = matrix.gpu_named(name)?;
    Ok(TargetGpu { name: Some(found.name.clone()), compute_capability: found.compute_capability })
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

    #[test]
    fn cuda_version_is_no_driver() {
        let refused = |text: &str| driver(text, Matrix::current()).expect_err(text);
        for (text, branch) in [("12.8", Some(570)), ("13.0", Some(580)), ("99.1", None)] {
            let error = refused(text);
            assert!(error.to_string().contains(&format!("`{text}` is a CUDA version")), "{error}");
            assert!(
                matches!(error, RequestError::CudaAsDriver { branch: found, .. } if found == branch),
                "{text}"
            );
        }
        assert!(matches!(refused("new"), RequestError::Version { .. }));
        assert_eq!(driver("570.124.06", Matrix::current()).expect("a driver").major(), 570);
    }
}

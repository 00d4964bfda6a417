//! How much of the device code of an image its target runs.

use serde::Serialize;

use super::report_text::field;
use crate::matrix::Matrix;
use crate::stack::Stack;
use crate::versions::ComputeCapability;

/// The machine code that can run on the GPUs of the target, of all device code of the image. Packages of the user do not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceCodeShare {
    /// All device code, MB.
    pub megabytes: u32,
    /// The number of libraries that have it.
    pub libraries: u32,
    /// What can run on each GPU of the target.
    pub gpus: Vec<GpuShare>,
}

/// The machine code that can run on a GPU: of its generation, and not newer than it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GpuShare {
    /// The GPU.
    pub gpu: ComputeCapability,
    /// Its code, MB.
    pub megabytes: u32,
}

/// Returns the share of a stack's target; `None`: the target names no GPU, or the image was not measured.
pub fn device_code_share(stack: &Stack, matrix: &Matrix) -> Option<DeviceCodeShare> {
    let row = matrix.device_code.iter().find(|row| {
        row.framework == stack.framework
            && row.version == stack.version
            && row.cuda == stack.cuda
            && row.machine == stack.machine
    })?;
    let share = |gpu: ComputeCapability| {
        let runs = row.machine_code.iter().filter(|(code, _)| code.cubin_runs_on(gpu));
        GpuShare { gpu, megabytes: runs.map(|(_, megabytes)| megabytes).sum() }
    };
    let gpus: Vec<_> = stack.target.capabilities().into_iter().map(share).collect();
    (!gpus.is_empty()).then_some(DeviceCodeShare { megabytes: row.megabytes, libraries: row.libraries, gpus })
}

/// Returns the share as a part of a plan's text; empty without one.
pub fn device_code_text(share: Option<&DeviceCodeShare>) -> String {
    let Some(DeviceCodeShare { megabytes, libraries, gpus }) = share else { return String::new() };
    let of = |one: &GpuShare| {
        field(&one.gpu.to_string(), &format!("{} of {megabytes} MB can run on it", one.megabytes))
    };
    format!("\nDevice code of {libraries} libraries\n{}", gpus.iter().map(of).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::{ResolveOptions, resolve};
    use crate::target::{Target, TargetGpu};
    use crate::versions::Machine;

    fn share(spec: &str, gpus: &[&str]) -> Option<DeviceCodeShare> {
        let gpu = |code: &&str| TargetGpu { name: None, compute_capability: code.parse().expect("a code") };
        let target = Target { gpus: gpus.iter().map(gpu).collect(), ..Target::any(Machine::X86_64) };
        let spec = spec.parse().expect("a spec");
        let stack =
            resolve(&spec, &target, Matrix::embedded(), &ResolveOptions::default()).expect("resolves");
        device_code_share(&stack, Matrix::embedded())
    }

    #[test]
    fn code_of_a_generation_runs_on_its_newer_members() {
        let found = share("pytorch-cuda:2.15-cu132", &["8.6", "8.9", "9.0"]).expect("measured");
        let mut rows = Matrix::embedded().device_code.iter();
        let row = rows.find(|row| row.version.to_string() == "2.15.0").expect("a row");
        let code = |gpu: &str| row.machine_code[&gpu.parse().expect("a code")];
        let gpus: Vec<_> = found.gpus.iter().map(|one| (one.gpu.dotted(), one.megabytes)).collect();
        let (old, all) = (code("8.0") + code("8.6"), code("8.0") + code("8.6") + code("8.9"));
        let wanted = [("8.6", old), ("8.9", all), ("9.0", code("9.0"))];
        assert_eq!(gpus, wanted.map(|(gpu, megabytes)| (gpu.to_owned(), megabytes)));
        let text = device_code_text(Some(&found));
        assert!(text.contains(&format!("sm_90          {} of {} MB", code("9.0"), row.megabytes)), "{text}");
    }

    #[test]
    fn share_is_unknown_without_gpus_or_without_a_measurement() {
        assert_eq!(share("pytorch-cuda:2.15-cu132", &[]), None);
        assert_eq!(share("pytorch-cuda:2.7-cu128", &["9.0"]), None);
        assert_eq!(device_code_text(None), "");
    }
}

//! How much of the device code of an image its target runs.

use serde::Serialize;

use super::report_text::field;
use crate::model::compat::Matrix;
use crate::model::stack::Stack;
use crate::model::versions::ComputeCapability;

/// The machine code that GPUs of the target run, of all device code of the image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceCodeShare {
    /// All device code, MB.
    pub megabytes: u32,
    /// The number of libraries that have it.
    pub libraries: u32,
    /// The machine code of each architecture that runs on the target, oldest first.
    pub target: Vec<ArchitectureShare>,
}

/// The machine code of one architecture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchitectureShare {
    /// The architecture.
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
    let mut run: Vec<_> =
        stack.target.capabilities().into_iter().filter_map(|gpu| stack.requires.code_for(gpu)).collect();
    run.sort_unstable();
    run.dedup();
    let share =
        |gpu: ComputeCapability| Some(ArchitectureShare { gpu, megabytes: *row.machine_code.get(&gpu)? });
    let target: Vec<_> = run.into_iter().filter_map(share).collect();
    (!target.is_empty()).then_some(DeviceCodeShare {
        megabytes: row.megabytes,
        libraries: row.libraries,
        target,
    })
}

/// Returns the share as a part of a plan's text; empty without one.
pub fn device_code_text(share: Option<&DeviceCodeShare>) -> String {
    let Some(DeviceCodeShare { megabytes, libraries, target }) = share else { return String::new() };
    let of = |one: &ArchitectureShare| {
        let text = format!("{} of {megabytes} MB, in {libraries} libraries", one.megabytes);
        field(&one.gpu.to_string(), &text)
    };
    format!("\nDevice code of the image\n{}", target.iter().map(of).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::resolve::{ResolveOptions, resolve};
    use crate::model::target::{Target, TargetGpu};
    use crate::model::versions::Machine;

    fn share(spec: &str, gpus: &[&str]) -> Option<DeviceCodeShare> {
        let gpu = |code: &&str| TargetGpu { name: None, compute_capability: code.parse().expect("a code") };
        let target = Target { gpus: gpus.iter().map(gpu).collect(), ..Target::any(Machine::X86_64) };
        let spec = spec.parse().expect("a spec");
        let stack = resolve(&spec, &target, Matrix::current(), &ResolveOptions::default()).expect("resolves");
        device_code_share(&stack, Matrix::current())
    }

    #[test]
    fn target_runs_the_machine_code_of_its_architecture() {
        let found = share("pytorch-cuda:2.15-cu132", &["9.0", "8.9", "8.6"]).expect("measured");
        // 8.9 runs the code of 8.6, which the framework has.
        let target: Vec<_> = found.target.iter().map(|one| one.gpu.dotted()).collect();
        assert_eq!(target, ["8.6", "9.0"]);
        assert!(found.target.iter().all(|one| 0 < one.megabytes && one.megabytes < found.megabytes));
        let text = device_code_text(Some(&found));
        assert!(text.contains(&format!("sm_90          {} of ", found.target[1].megabytes)), "{text}");
    }

    #[test]
    fn share_is_unknown_without_gpus_or_without_a_measurement() {
        assert_eq!(share("pytorch-cuda:2.15-cu132", &[]), None);
        assert_eq!(share("pytorch-cuda:2.7-cu128", &["9.0"]), None);
        assert_eq!(device_code_text(None), "");
    }
}

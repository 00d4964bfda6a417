//! On which GPUs a report's kernels ran, and which skips are none of the image's fault.

use super::{Check, Outcome};
use crate::versions::ComputeCapability;

/// Checks of the GPU stage that read facts and run no kernel.
const FACTS: [&str; 2] = ["driver", "device"];

/// A GPU on which a kernel ran and gave the right answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RanOn {
    /// The agent's words: `NVIDIA H200 (sm_90)`.
    pub label: String,
    /// Its compute capability, if the label names one.
    pub capability: Option<ComputeCapability>,
}

/// The GPUs named by the checks that ran a kernel on them and passed, each once.
pub fn ran_on(checks: &[Check]) -> Vec<RanOn> {
    let passed = checks.iter().filter(|check| is_kernel_check(check) && check.outcome == Outcome::Passed);
    let labels = passed
        .flat_map(|check| &check.measured)
        .filter(|(key, _)| key.strip_prefix("gpu.").is_some_and(|ordinal| ordinal.parse::<u32>().is_ok()));
    let mut found: Vec<_> = labels
        // A check over several GPUs names them in one value.
        .flat_map(|(_, value)| value.split(", "))
        .filter(|label| !label.trim().is_empty())
        .map(|label| RanOn { label: label.to_owned(), capability: capability(label) })
        .collect();
    found.sort();
    found.dedup();
    found
}

/// True for a check that runs a kernel on a GPU.
pub fn is_kernel_check(check: &Check) -> bool {
    matches!(check.stage.as_str(), "gpu" | "perf") && !FACTS.contains(&check.id.as_str())
}

/// True if a required check was skipped for a reason that is allowed: this GPU lacks the capability, or there are too few
/// GPUs. A component that is not in the stack is not required in the first place.
pub fn allowed_skip(check: &Check) -> bool {
    let reason = &check.detail;
    is_kernel_check(check)
        && (reason.contains("one GPU")
            || reason.contains("needs compute capability")
            || reason.contains("for compute capability"))
}

/// `sm_90` in the brackets at the end of a label.
fn capability(label: &str) -> Option<ComputeCapability> {
    let (_, end) = label.rsplit_once('(')?;
    end.trim_end_matches(')').parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn check(id: &str, outcome: Outcome, gpu: &str) -> Check {
        let (stage, measured) = ("gpu".to_owned(), BTreeMap::from([("gpu.0".to_owned(), gpu.to_owned())]));
        let expected = BTreeMap::new();
        Check {
            id: id.into(),
            stage,
            required: true,
            outcome,
            detail: String::new(),
            measured,
            expected,
            hint: None,
        }
    }

    #[test]
    fn only_kernels_that_passed_name_the_gpus() {
        let h200 = "NVIDIA H200 (sm_90)";
        let all = [
            check("driver", Outcome::Passed, "NVIDIA A100 (sm_80)"),
            check("gemm-fp32-own", Outcome::Passed, h200),
            check("gemm-fp16-own", Outcome::Failed, "NVIDIA L4 (sm_89)"),
            check("nccl-all-reduce", Outcome::Passed, "NVIDIA H200 (sm_90), NVIDIA GB10 (sm_121)"),
        ];
        let found = ran_on(&all);
        let capabilities: Vec<_> =
            found.iter().filter_map(|gpu| gpu.capability).map(ComputeCapability::dotted).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(capabilities, ["12.1", "9.0"]);
        assert_eq!(found[1].label, h200);
        assert!(ran_on(&all[..1]).is_empty(), "a driver that starts is no kernel that ran");
    }

    #[test]
    fn a_skip_is_allowed_for_the_gpu_and_not_for_a_missing_library() {
        let skipped = |detail: &str| Check { detail: detail.into(), ..check("x", Outcome::Skipped, "") };
        for allowed in [
            "one GPU",
            "one GPU, and two ranks on it were refused: ncclInvalidUsage",
            "needs compute capability 8.0",
            "this cuBLAS has fp8 for compute capability 9.0 alone",
        ] {
            assert!(allowed_skip(&skipped(allowed)), "{allowed}");
        }
        for other in ["libcudnn is not in the image", "", "NCCL's log names no transport", "not now"] {
            assert!(!allowed_skip(&skipped(other)), "{other}");
        }
        let mut fact = skipped("one GPU");
        fact.stage = "static".into();
        assert!(!allowed_skip(&fact), "a static check needs no GPU");
    }
}

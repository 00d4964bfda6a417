//! The GPUs on which a report's kernels ran, and the skips that do not bar a tag.

use envforge_protocol::Outcome;

use super::check::{Check, is_kernel_check};
use crate::model::versions::ComputeCapability;

/// A GPU on which a kernel computed the correct result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GpuCoverage {
    /// The agent's label: `NVIDIA H200 (sm_90)`.
    pub label: String,
    /// Compute capability, if the label has one.
    pub capability: Option<ComputeCapability>,
}

/// Returns the GPUs of the checks that ran a kernel and passed, each once.
pub fn ran_on(checks: &[Check]) -> Vec<GpuCoverage> {
    let passed = checks.iter().filter(|check| is_kernel_check(check) && check.outcome == Outcome::Passed);
    let mut found: Vec<_> = passed
        .flat_map(labels)
        .map(|label| GpuCoverage {
            label: label.to_owned(),
            capability: model_of(label).map(|(_, found)| found),
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

/// The labels of the GPUs that a check names.
pub fn labels(check: &Check) -> impl Iterator<Item = &str> {
    let is_gpu = |key: &str| key.strip_prefix("gpu.").is_some_and(|ordinal| ordinal.parse::<u32>().is_ok());
    let named = check.measured.iter().filter(move |(key, _)| is_gpu(key));
    // A check over several GPUs names them in one value.
    named.flat_map(|(_, value)| value.split(", ")).filter(|label| !label.trim().is_empty())
}

/// The GPU model and compute capability of a label: `NVIDIA H200 (sm_90)`.
pub fn model_of(label: &str) -> Option<(&str, ComputeCapability)> {
    let (name, end) = label.rsplit_once('(')?;
    Some((name.trim_end(), end.trim_end_matches(')').parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use envforge_protocol::SkipReason;

    use super::*;
    use crate::model::verdict::check::is_allowed_skip;

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
            skip: None,
        }
    }

    #[test]
    fn only_passed_kernels_cover_gpus() {
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
        assert!(ran_on(&all[..1]).is_empty(), "the driver check runs no kernel");
    }

    #[test]
    fn skip_is_allowed_by_its_reason_regardless_of_its_text() {
        let skipped = |skip| Check { skip, detail: "one GPU".into(), ..check("x", Outcome::Skipped, "") };
        for reason in SkipReason::ALL {
            let allowed = [SkipReason::OneGpu, SkipReason::ComputeCapability].contains(reason);
            assert_eq!(is_allowed_skip(&skipped(Some(*reason))), allowed, "{reason}");
        }
        assert!(!is_allowed_skip(&skipped(None)), "a text alone allows nothing");
        let allowed = skipped(Some(SkipReason::OneGpu));
        let others = [
            Check { stage: "static".into(), ..allowed.clone() },
            Check { id: "driver".into(), ..allowed.clone() },
            Check { outcome: Outcome::Errored, ..allowed.clone() },
        ];
        for other in others {
            assert!(!is_allowed_skip(&other), "{} {} {}", other.id, other.stage, other.outcome);
        }
    }
}

//! How fast a GPU should be, as lines the agent reads: what its model reaches at most, and what was recorded on this host.
//!
//! Pure. Speed only warns: nothing here fails a check. What no source states is left out.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::compat::tables::Gpu;
use crate::verdict::{Outcome, Verdict};

/// A rate of the matrix and the agent's word for it; the first that a row has counts.
const RATES: [(&str, &[&str]); 5] = [
    ("fp64", &["fp64_tensor", "fp64"]),
    ("fp32", &["fp32"]),
    ("tf32", &["tf32_tensor"]),
    ("fp16", &["fp16_tensor", "fp16"]),
    ("fp8", &["fp8_tensor"]),
];
/// Checks whose figure has another name than their own end.
const NAMES: [(&str, &str); 1] = [("nccl", "bus")];

/// What this model reaches at most, by the agent's words.
pub fn peaks(gpu: &Gpu) -> BTreeMap<String, f64> {
    let rates = RATES.iter().filter_map(|(word, keys)| {
        let rate = keys.iter().find_map(|key| gpu.tflops.get(*key))?;
        Some(((*word).to_owned(), *rate))
    });
    // The tensor figure is that of both halves, where the chip has bfloat16 (compat/gpu.toml says so of its figures).
    let bf16 = gpu.tflops.get("fp16_tensor").filter(|_| gpu.compute_capability.major >= 8);
    let bf16 = bf16.map(|rate| ("bf16".to_owned(), *rate));
    rates.chain(bf16).chain(gpu.bandwidth_gb_s.map(|rate| ("memory".to_owned(), rate))).collect()
}

/// The medians that a report measured, by the agent's words: what `--record` keeps.
pub fn measured(verdict: &Verdict) -> BTreeMap<String, f64> {
    let perf =
        verdict.checks.iter().filter(|check| check.stage == "perf" && check.outcome == Outcome::Passed);
    perf.filter_map(|check| {
        let name = check.id.strip_prefix("speed-")?.trim_start_matches("gemm-");
        let name = NAMES.iter().find(|(own, _)| *own == name).map_or(name, |(_, word)| word);
        let median: f64 = check.measured.get("median")?.parse().ok()?;
        (median.is_finite() && median > 0.0).then(|| (name.to_owned(), median))
    })
    .collect()
}

/// The lines for the agent: `peak.fp16=989.4`.
pub fn lines(kind: &str, figures: &BTreeMap<String, f64>) -> String {
    let mut text = String::new();
    for (name, figure) in figures {
        let _ = writeln!(text, "{kind}.{name}={figure}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compat::Matrix;
    use crate::engine::ImageInfo;
    use crate::verdict::{Expected, judge};

    #[test]
    fn a_models_peaks_are_those_of_its_row() {
        let found = Matrix::current().gpu_named("NVIDIA H200").expect("known");
        let row = found.product.expect("a row of its own");
        let peaks = peaks(row);
        assert_eq!(peaks.get("fp16"), row.tflops.get("fp16_tensor"));
        assert_eq!(peaks.get("memory").copied(), row.bandwidth_gb_s);
        assert_eq!(peaks.get("bf16"), row.tflops.get("fp16_tensor"));
        let text = lines("peak", &peaks);
        assert!(text.lines().all(|line| line.starts_with("peak.") && line.contains('=')), "{text}");
        let old = Matrix::current().gpu_named("Tesla T4").expect("known").product.expect("a row of its own");
        assert!(old.tflops.contains_key("fp16_tensor") && !super::peaks(old).contains_key("bf16"));
    }

    #[test]
    fn only_medians_of_the_perf_stage_are_kept() {
        let line = |id: &str, stage: &str, median: &str| {
            format!(
                "{{\"id\":\"{id}\",\"stage\":\"{stage}\",\"outcome\":\"passed\",\"detail\":\"\",\"measured\":{{\"median\":\"{median}\"}}}}\n"
            )
        };
        let lines = line("speed-gemm-fp16", "perf", "790.5")
            + &line("speed-memory", "perf", "4100")
            + &line("speed-nccl", "perf", "0")
            + &line("speed-conv", "perf", "fast")
            + &line("gemm-large", "gpu", "7");
        let verdict = judge(&lines, 0, &ImageInfo::default(), &Expected::default());
        let found: Vec<_> = measured(&verdict).into_iter().collect();
        assert_eq!(found, [("fp16".to_owned(), 790.5), ("memory".to_owned(), 4100.0)]);
    }
}

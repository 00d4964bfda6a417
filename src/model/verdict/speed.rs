//! Expected speeds of a GPU, as lines of the expectation file: its model's peak, and the speed recorded on this host.
//!
//! Pure. Speed only warns: nothing here fails a check. A speed without a source is left out.

use std::collections::BTreeMap;

use envforge_protocol::{CheckId, ExpectationText, Speed, SpeedSource, Stage};

use crate::model::compat::tables::Gpu;
use crate::model::verdict::{Outcome, Verdict};

/// The speeds of precisions and the matrix's keys for them; the first that a row has counts.
const RATES: [(Speed, &[&str]); 5] = [
    (Speed::Fp64, &["fp64_tensor", "fp64"]),
    (Speed::Fp32, &["fp32"]),
    (Speed::Tf32, &["tf32_tensor"]),
    (Speed::Fp16, &["fp16_tensor", "fp16"]),
    (Speed::Fp8, &["fp8_tensor"]),
];

/// Returns the peak speeds of a GPU model, by name.
pub fn peaks(gpu: &Gpu) -> BTreeMap<String, f64> {
    let rates = RATES.iter().filter_map(|(speed, keys)| {
        let rate = keys.iter().find_map(|key| gpu.tflops.get(*key))?;
        Some((*speed, *rate))
    });
    // The tensor speed holds for both halves, where the chip has bfloat16 (see compat/gpu.toml).
    let bf16 = gpu.tflops.get("fp16_tensor").filter(|_| gpu.compute_capability.major >= 8);
    let bf16 = bf16.map(|rate| (Speed::Bf16, *rate));
    let memory = gpu.bandwidth_gb_s.map(|rate| (Speed::Memory, rate));
    // The row has both directions, a collective sends in one; the agent drops it where no link is up.
    let bus = gpu.nvlink_gb_s.map(|rate| (Speed::Bus, rate / 2.0));
    rates.chain(bf16).chain(memory).chain(bus).map(|(speed, rate)| (speed.to_string(), rate)).collect()
}

/// Returns the medians that a report measured, by name, for `--record`.
pub fn measured(verdict: &Verdict) -> BTreeMap<String, f64> {
    let passed = verdict.checks.iter().filter(|check| check.outcome == Outcome::Passed);
    let perf = passed.filter(|check| Stage::parse(&check.stage) == Some(Stage::Perf));
    perf.filter_map(|check| {
        let speed = CheckId::parse(&check.id)?.speed()?;
        let median: f64 = check.measured.get("median")?.parse().ok()?;
        (median.is_finite() && median > 0.0).then(|| (speed.to_string(), median))
    })
    .collect()
}

/// Writes speeds as lines of the expectation file: `peak.fp16=989.4`. Unknown names are left out.
pub fn lines(source: SpeedSource, speeds: &BTreeMap<String, f64>) -> String {
    let mut text = ExpectationText::default();
    for (name, value) in speeds {
        if let Some(speed) = Speed::parse(name) {
            text.add_speed(source, speed, *value);
        }
    }
    text.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::compat;
    use crate::model::image::info::ImageInfo;
    use crate::model::verdict::{ImageExpectations, judge};

    #[test]
    fn peaks_are_those_of_the_models_row() {
        let found = compat::embedded().gpu_named("NVIDIA H200").expect("known");
        let row = found.product.expect("a row of its own");
        let peaks = peaks(row);
        assert_eq!(peaks.get("fp16"), row.tflops.get("fp16_tensor"));
        assert_eq!(peaks.get("memory").copied(), row.bandwidth_gb_s);
        assert_eq!(peaks.get("bf16"), row.tflops.get("fp16_tensor"));
        assert_eq!(peaks.get("bus").copied(), row.nvlink_gb_s.map(|both| both / 2.0));
        assert!(
            peaks.contains_key("bus") && !peaks.contains_key("host-to-device"),
            "the link's is read on the host"
        );
        let text = lines(SpeedSource::Peak, &peaks);
        assert!(text.lines().all(|line| line.starts_with("peak.") && line.contains('=')), "{text}");
        let old = compat::embedded().gpu_named("Tesla T4").expect("known").product.expect("a row of its own");
        assert!(old.tflops.contains_key("fp16_tensor") && !super::peaks(old).contains_key("bf16"));
    }

    #[test]
    fn only_medians_of_the_perf_stage_are_recorded() {
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
        let verdict =
            judge(&lines, "agent exited with code 0", &ImageInfo::default(), &ImageExpectations::default());
        let found: Vec<_> = measured(&verdict).into_iter().collect();
        assert_eq!(found, [("fp16".to_owned(), 790.5), ("memory".to_owned(), 4100.0)]);
    }
}

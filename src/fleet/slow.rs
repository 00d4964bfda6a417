//! Nodes that are slower than the others of the same GPU model. Speed only warns.
//!
//! A value is slow if it lies under the median by more than k times the median absolute deviation, scaled to a standard deviation and
//! at least one percent of the median, and by more than five percent. k grows with the number of values, or large fleets always
//! have outliers; values that are rounded have a deviation of zero, hence its least.

use std::collections::BTreeMap;

use envforge_protocol::{CheckId, Stage};

use crate::model::verdict::{Outcome, Verdict, labels, model_of};

/// Fewer values cannot be judged.
const LEAST: usize = 4;
/// Makes a median absolute deviation a standard deviation.
const SCALE: f64 = 1.4826;
/// The least deviation, and the least distance from the median, as parts of it.
const FLOOR: f64 = 0.01;
const DISTANCE: f64 = 0.05;

/// A node that is slower than the others.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Slow {
    /// The node's number.
    pub(super) node: usize,
    /// In words.
    pub(super) text: String,
    /// Percent under the median.
    pub(super) percent: f64,
}

/// Returns the slow nodes, for each measured speed of each GPU model.
pub(super) fn slow(verdicts: &[&Verdict]) -> Vec<Slow> {
    let mut groups: BTreeMap<(&str, &str), Vec<(usize, f64)>> = BTreeMap::new();
    for (node, verdict) in verdicts.iter().enumerate() {
        for check in &verdict.checks {
            let is_speed = Stage::parse(&check.stage) == Some(Stage::Perf)
                && check.outcome == Outcome::Passed
                && CheckId::parse(&check.id).is_some_and(|id| id.speed().is_some());
            let median = check.measured.get("median").and_then(|text| text.parse::<f64>().ok());
            if let (true, Some(value)) = (is_speed, median.filter(|value| value.is_finite() && *value > 0.0))
            {
                let label = labels(check).next().unwrap_or_default();
                let model = model_of(label).map_or(label, |(name, _)| name);
                groups.entry((model, &check.id)).or_default().push((node, value));
            }
        }
    }
    let mut found = Vec::new();
    for ((_, id), values) in groups {
        let Some(limit) = Limit::of(&values) else { continue };
        for (node, value) in values.iter().filter(|(_, value)| *value < limit.least) {
            let percent = (1.0 - value / limit.median) * 100.0;
            let text = format!(
                "{id} {percent:.0} % under the median of {} nodes ({value:.1}, median {:.1})",
                values.len(),
                limit.median
            );
            found.push(Slow { node: *node, text, percent });
        }
    }
    found
}

/// The limit of some values.
#[derive(Debug, PartialEq)]
struct Limit {
    median: f64,
    /// What is less is slow.
    least: f64,
}

impl Limit {
    fn of(values: &[(usize, f64)]) -> Option<Self> {
        if values.len() < LEAST {
            return None;
        }
        let mut all: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
        let median = middle(&mut all);
        let mut distances: Vec<f64> = all.iter().map(|value| (value - median).abs()).collect();
        let deviation = (SCALE * middle(&mut distances)).max(FLOOR * median);
        let count = f64::from(u32::try_from(values.len()).unwrap_or(u32::MAX));
        let k = 3.0 + (count / 8.0).max(1.0).log10();
        Some(Self { median, least: (median - k * deviation).min(median * (1.0 - DISTANCE)) })
    }
}

fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(values: &[f64]) -> Option<Limit> {
        Limit::of(&values.iter().copied().enumerate().collect::<Vec<_>>())
    }

    #[test]
    fn three_values_are_not_judged() {
        assert_eq!(limit(&[100.0, 100.0, 50.0]), None);
        assert!(limit(&[100.0, 100.0, 100.0, 50.0]).is_some());
    }

    #[test]
    fn equal_values_have_a_floor_and_five_percent_are_allowed() {
        let found = limit(&[100.0; 8]).expect("judged");
        assert!((found.least - 95.0).abs() < 1e-9, "{found:?}");
        let wide = limit(&[100.0, 90.0, 110.0, 95.0, 105.0, 100.0, 92.0, 108.0]).expect("judged");
        assert!(wide.least < 75.0, "spread values are not outliers: {wide:?}");
    }

    #[test]
    fn limit_lies_lower_for_many_values() {
        let values = |count: usize| -> Vec<f64> {
            let spread = [97.0, 98.5, 100.0, 101.5, 103.0];
            spread.iter().copied().cycle().take(count).collect()
        };
        let (few, many) = (limit(&values(10)).expect("judged"), limit(&values(1_000)).expect("judged"));
        assert!(many.least < few.least - 2.0, "{few:?} {many:?}");
    }

    #[test]
    fn median_of_an_even_number_lies_between() {
        assert!((middle(&mut [4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < 1e-9);
        assert!((middle(&mut [3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
    }
}

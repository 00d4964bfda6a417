//! How long the stages of a build took, and the parts of making its image, which run at the same time.

use serde::Serialize;

use crate::report::duration_text;
use crate::workflow::assemble::PartTimings;

/// Shorter times are not shown, seconds.
const SHORTEST: f64 = 0.05;

/// Seconds each stage took.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct StageTimings {
    pub(super) lock: f64,
    pub(super) build: f64,
    /// Those of `build`, which overlap.
    pub(super) parts: PartTimings,
    pub(super) checks: f64,
    pub(super) content: f64,
    pub(super) push: f64,
}

impl StageTimings {
    /// All stages together.
    pub(crate) fn total(self) -> f64 {
        self.lock + self.build + self.checks + self.content + self.push
    }

    /// `took 1m 23s: lock 2.1s, build 1m 01s (overlapping: downloads 40.2s, delivery 30.0s), checks 20.3s`.
    pub(super) fn text(self) -> String {
        let Self { lock, build, parts, checks, content, push } = self;
        let PartTimings { downloads, system, wheels, byte_code, delivery } = parts;
        let parts = listed(&[
            ("downloads", downloads),
            ("system layers", system),
            ("wheel layers", wheels),
            ("byte code", byte_code),
            ("delivery", delivery),
        ]);
        let parts = if parts.is_empty() { parts } else { format!(" (overlapping: {parts})") };
        let before = listed(&[("lock", lock), ("build", build)]);
        let after = listed(&[("checks", checks), ("content digest", content), ("push", push)]);
        let stages = [before + &parts, after].into_iter().filter(|text| !text.is_empty());
        format!("took {}: {}", duration_text(self.total()), stages.collect::<Vec<_>>().join(", "))
    }
}

/// `lock 2.1s, build 1m 01s`: those that took a while.
fn listed(all: &[(&str, f64)]) -> String {
    let shown = all.iter().filter(|(_, seconds)| *seconds >= SHORTEST);
    shown.map(|(name, seconds)| format!("{name} {}", duration_text(*seconds))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::markdown::printed_fields;

    #[test]
    fn fields_of_json_are_these() {
        let fields = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let timings = StageTimings::default();
        let stages = fields(&["build", "checks", "content", "lock", "parts", "push"]);
        assert_eq!(printed_fields(&timings), stages);
        let parts = fields(&["byte_code", "delivery", "downloads", "system", "wheels"]);
        assert_eq!(printed_fields(&timings.parts), parts);
    }

    #[test]
    fn overlapping_parts_do_not_add_to_the_total() {
        let parts =
            PartTimings { downloads: 40.2, system: 25.0, wheels: 12.0, byte_code: 0.04, delivery: 30.0 };
        let cold = StageTimings { lock: 2.1, build: 61.0, parts, checks: 20.3, content: 0.0, push: 0.0 };
        assert_eq!(
            cold.text(),
            "took 1m 23s: lock 2.1s, build 1m 01s (overlapping: downloads 40.2s, system layers 25.0s, \
             wheel layers 12.0s, delivery 30.0s), checks 20.3s"
        );
        let other = StageTimings { build: 3.0, checks: 1.0, push: 2.0, ..StageTimings::default() };
        assert_eq!(other.text(), "took 6.0s: build 3.0s, checks 1.0s, push 2.0s");
    }
}

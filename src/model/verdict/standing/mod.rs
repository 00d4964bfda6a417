//! What the reports of one image prove together: which of them stand, and what failed since.
//!
//! Pure. A claim about an image comes from here and from nowhere else; a tag, label or name says nothing.

use std::collections::BTreeSet;

use envforge_protocol::{CheckId, Level};
use serde::{Deserialize, Serialize};

use super::proof::{ImageState, Proof, Proven};
use super::tag_policy::{TagStatus, claim};
use super::{Check, Verdict, VerdictStatus};
use crate::model::lock::Lock;

/// A report with its place among those of its image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptReport {
    /// Version of the format.
    pub schema: u32,
    /// Grows with each report of the image: a clock may be set back.
    pub number: u64,
    /// Whether a failure withdrew it: what it proved does not come back when that failure is settled.
    #[serde(default)]
    pub withdrawn: bool,
    /// Digest of the conditions it was made under; `None`: they were not all known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<String>,
    /// The report.
    pub report: Verdict,
}

/// For what a report stands: a later one of the same key takes its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ReportKey {
    /// The level.
    pub level: String,
    /// The GPU models that the checks saw, sorted.
    pub gpus: BTreeSet<String>,
    /// The driver's version; `None`: not recorded.
    pub driver: Option<String>,
    /// Whether the host hindered the checks: such a report says nothing about the image.
    pub undecided: bool,
}

/// The reports of one image id.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImageReports {
    kept: Vec<KeptReport>,
    /// Files that cannot be read as reports, each with the reason. They count for nothing.
    pub damaged: Vec<(String, String)>,
}

impl KeptReport {
    /// For what it stands.
    pub fn key(&self) -> ReportKey {
        ReportKey {
            level: self.report.level.clone(),
            gpus: self.report.seen_gpus().into_iter().collect(),
            driver: self.report.driver().map(str::to_owned),
            undecided: self.report.verdict == VerdictStatus::Undecided,
        }
    }

    fn is_failed(&self) -> bool {
        self.report.verdict == VerdictStatus::Failed
    }

    fn is_good(&self) -> bool {
        matches!(self.report.verdict, VerdictStatus::Passed | VerdictStatus::StaticOnly)
    }

    fn level(&self) -> Option<Level> {
        Level::parse(&self.report.level)
    }

    /// Whether this failure concerns another report: one on the same GPU; any report where the GPU is not known, or where a
    /// check failed that needs none.
    fn concerns(&self, other: &Self) -> bool {
        let (own, others) = (self.report.seen_gpus(), other.report.seen_gpus());
        // An agent that was ended in the middle of its checks on a GPU says nothing of other GPUs.
        let is_static = |check: &Check| check.stage == "static" && check.id != CheckId::Agent.as_str();
        let needs_no_gpu = self.report.checks.iter().any(|check| check.is_bad() && is_static(check));
        own.is_empty() || needs_no_gpu || own.iter().any(|gpu| others.contains(gpu))
    }

    /// Whether this good report came after a failure on the same GPU, at its level or a higher one.
    fn outranks(&self, failed: &Self) -> bool {
        let (own, its) = (self.report.seen_gpus(), failed.report.seen_gpus());
        let is_same_gpu = its.iter().all(|gpu| own.contains(gpu));
        self.is_good() && self.number > failed.number && self.level() >= failed.level() && is_same_gpu
    }

    /// Whether this good report shows that what failed works now: it outranks the failure, with the same driver.
    fn settles(&self, failed: &Self) -> bool {
        let (own, its) = (self.report.driver(), failed.report.driver());
        self.outranks(failed) && (its.is_none() || own == its)
    }

    /// Whether it allows the image its verified tags.
    fn is_verified(&self, lock: Option<&Lock>) -> bool {
        let is_claimed =
            !self.report.sandboxed && lock.is_some_and(|lock| claim(lock, &self.report).is_verified());
        self.report.verdict == VerdictStatus::Passed && self.level() >= Some(Level::Full) && is_claimed
    }

    /// Orders reports: what allows a verified tag, what ran on a GPU, the level, the newest.
    fn worth(&self, lock: Option<&Lock>) -> (bool, bool, Option<Level>, u64) {
        (self.is_verified(lock), self.report.executed, self.level(), self.number)
    }
}

impl ImageReports {
    /// The reports of an image, in any order; of those with one key only the newest counts.
    pub fn new(mut kept: Vec<KeptReport>, damaged: Vec<(String, String)>) -> Self {
        kept.sort_by_key(|report| std::cmp::Reverse(report.number));
        let mut keys = BTreeSet::new();
        kept.retain(|report| keys.insert(report.key()));
        Self { kept, damaged }
    }

    /// The number of the next report.
    pub fn next_number(&self) -> u64 {
        self.kept.first().map_or(1, |newest| newest.number.saturating_add(1))
    }

    /// The id of the image; `None`: there is no report.
    pub fn image(&self) -> Option<&str> {
        self.kept.first().map(|newest| newest.report.image.as_str())
    }

    /// Whether one of them was made under that name.
    pub fn has_name(&self, name: &str) -> bool {
        self.kept.iter().any(|kept| kept.report.name == name)
    }

    /// The time of the newest, RFC 3339; empty: there is none.
    pub fn newest_time(&self) -> &str {
        self.kept.first().map_or("", |newest| &newest.report.checked)
    }

    /// The good reports that no later failure withdrew, newest first.
    pub fn standing(&self) -> impl Iterator<Item = &KeptReport> {
        let is_withdrawn = |good: &KeptReport| {
            self.kept
                .iter()
                .any(|failed| failed.is_failed() && failed.number >= good.number && failed.concerns(good))
        };
        self.kept.iter().filter(move |report| report.is_good() && !report.withdrawn && !is_withdrawn(report))
    }

    /// The whole report that was made under conditions with that digest, if it stands and nothing failed since.
    pub fn made_under(&self, conditions: &str) -> Option<&Verdict> {
        if self.open_failures().next().is_some() {
            return None;
        }
        let is_same = |kept: &&KeptReport| kept.conditions.as_deref() == Some(conditions);
        self.standing().find(is_same).map(|kept| &kept.report)
    }

    /// The failures that no later run on the same GPU and driver has settled, newest first.
    pub fn open_failures(&self) -> impl Iterator<Item = &KeptReport> {
        let is_open = |failed: &KeptReport| !self.kept.iter().any(|good| good.settles(failed));
        self.kept.iter().filter(move |report| report.is_failed() && is_open(report))
    }

    /// Those of them that no later run with another driver outranks: what is wrong with the image today.
    fn pressing_failures(&self) -> impl Iterator<Item = &KeptReport> {
        let is_pressing = |failed: &KeptReport| !self.standing().any(|good| good.outranks(failed));
        self.open_failures().filter(move |failed| is_pressing(failed))
    }

    /// The standing reports that a new failure withdraws.
    pub fn withdrawn_by(&self, failure: &KeptReport) -> Vec<KeptReport> {
        self.standing().filter(|good| failure.is_failed() && failure.concerns(good)).cloned().collect()
    }

    /// What is proven of the image; `lock`: the lock that it was built from here.
    pub fn proven(&self, lock: Option<&Lock>) -> Proven {
        let mut good: Vec<_> = self.standing().collect();
        good.sort_by_key(|report| std::cmp::Reverse(report.worth(lock)));
        let failed: Vec<_> = self.open_failures().map(|report| Proof::of(&report.report)).collect();
        let state = match good.first() {
            Some(best) if best.is_verified(lock) => ImageState::Verified,
            _ if self.pressing_failures().next().is_some() => ImageState::Failed,
            Some(best) if best.report.executed => ImageState::Passed,
            Some(_) => ImageState::StaticOnly,
            None => ImageState::NotChecked,
        };
        Proven { state, proven: good.iter().map(|report| Proof::of(&report.report)).collect(), failed }
    }

    /// The report to show: the best that stands, or a failure that came after it, or else the newest of any kind.
    pub fn shown(&self, lock: Option<&Lock>) -> Option<&Verdict> {
        let best = self.standing().max_by_key(|report| report.worth(lock));
        let failed = self.open_failures().next();
        let shown = match (best, failed) {
            (Some(best), Some(failed)) if best.is_verified(lock) && best.number > failed.number => Some(best),
            (_, Some(failed)) => Some(failed),
            (best, None) => best.or(self.kept.first()),
        };
        shown.map(|report| &report.report)
    }

    /// The tags that the reports allow an image of this lock; `None`: there is no report that says anything.
    pub fn tag_status(&self, lock: &Lock) -> Option<TagStatus> {
        if self.standing().any(|report| report.is_verified(Some(lock))) {
            return Some(TagStatus::Verified);
        }
        if self.pressing_failures().next().is_some() {
            return Some(TagStatus::Failed);
        }
        let best = self.standing().max_by_key(|report| report.worth(Some(lock)));
        let undecided = || self.kept.first().filter(|newest| newest.key().undecided);
        let found = best.or_else(undecided).map(|report| claim(lock, &report.report));
        found.filter(|status| !status.is_verified())
    }
}

#[cfg(test)]
mod tests;

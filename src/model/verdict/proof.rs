//! What is said of an image: proven at which level, on which GPU and driver, and when.

use std::fmt;

use envforge_protocol::{CheckId, Outcome};
use serde::Serialize;

use super::gpu_coverage::labels;
use super::{Check, Verdict, VerdictStatus};

/// A report in one line: level, GPUs, driver and date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// `static`, `quick`, `full` or `perf`.
    pub level: String,
    /// The GPUs on which kernels ran; empty: nothing ran on a GPU.
    pub gpus: Vec<String>,
    /// Version of the driver; null: not recorded, or nothing ran on a GPU.
    pub driver: Option<String>,
    /// Time of the check, RFC 3339, UTC.
    pub checked: String,
}

impl Proof {
    /// The line of a report.
    pub fn of(report: &Verdict) -> Self {
        let seen = if report.executed { report.gpus.clone() } else { report.seen_gpus() };
        Self {
            level: report.level.clone(),
            gpus: seen,
            driver: report.driver().map(str::to_owned),
            checked: report.checked.clone(),
        }
    }

    /// The day of the check; empty if the report has none.
    fn day(&self) -> &str {
        self.checked.split('T').next().unwrap_or_default()
    }

    /// The same for a column of a table: `full, NVIDIA H200 (sm_90), 2026-11-26`.
    pub fn short(&self) -> String {
        let parts = [self.level.clone(), self.gpus.join(" + "), self.day().to_owned()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "level {}", if self.level.is_empty() { "unknown" } else { &self.level })?;
        if !self.gpus.is_empty() {
            let driver = self.driver.as_deref().unwrap_or("not recorded");
            write!(f, " on {}, driver {driver}", self.gpus.join(" + "))?;
        }
        write!(f, ", {}", if self.day().is_empty() { "date not recorded" } else { self.day() })
    }
}

/// The state of an image by its reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageState {
    /// Every required check passed on a GPU that counts for the image.
    Verified,
    /// Checks passed on a GPU, but not all that a verified tag requires.
    Passed,
    /// The newest run on a GPU, or of all checks without one, failed.
    Failed,
    /// Nothing ran on a GPU.
    StaticOnly,
    /// There is no report of this image here.
    NotChecked,
}

impl ImageState {
    /// The word for a table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::StaticOnly => "static only",
            Self::NotChecked => "not checked",
        }
    }
}

/// What is proven of one image id by the reports that this machine keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proven {
    /// The state that follows from them. A container has a `state` of its own.
    #[serde(rename = "standing")]
    pub state: ImageState,
    /// The reports that stand, the best first.
    pub proven: Vec<Proof>,
    /// Failures that no later run on the same GPU and driver has settled, the newest first.
    pub failed: Vec<Proof>,
}

impl Proven {
    /// Whether every required check passed on a GPU that counts.
    pub fn is_verified(&self) -> bool {
        self.state == ImageState::Verified
    }

    /// Whether the word of another machine adds something: this one neither proved the image nor saw it fail.
    pub fn leaves_open(&self) -> bool {
        !matches!(self.state, ImageState::Verified | ImageState::Failed)
    }

    /// The state for a column of a table: `verified: full, NVIDIA H200 (sm_90), 2026-11-26`.
    pub fn short(&self) -> String {
        match (self.state, self.reason()) {
            (ImageState::StaticOnly, Some(reason)) => format!("static only, {}", reason.day()),
            (state, Some(reason)) => format!("{}: {}", state.word(), reason.short()),
            (state, None) => state.word().to_owned(),
        }
    }

    /// The report that the state comes from.
    pub fn reason(&self) -> Option<&Proof> {
        if self.state == ImageState::Failed { self.failed.first() } else { self.proven.first() }
    }
}

impl fmt::Display for Proven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(reason), state) = (self.reason(), self.state) else {
            return f.write_str("not verified: never checked here");
        };
        match state {
            ImageState::Verified => write!(f, "verified at {reason}"),
            ImageState::Passed => write!(f, "not verified: passed at {reason} alone"),
            ImageState::Failed => write!(f, "failed at {reason}"),
            ImageState::StaticOnly => write!(f, "not verified on a GPU: passed at {reason}"),
            ImageState::NotChecked => f.write_str("not verified: never checked here"),
        }?;
        match self.failed.first().filter(|_| state == ImageState::Verified) {
            Some(failed) => write!(f, "; failed at {failed}"),
            None => Ok(()),
        }
    }
}

impl Verdict {
    /// The driver's version, if the checks read it.
    pub fn driver(&self) -> Option<&str> {
        let device = self.checks.iter().find(|check| check.id == CheckId::Device.as_str())?;
        device.measured.get("driver").map(String::as_str)
    }

    /// The report of a run that was given no GPU: one that names kernels on a GPU all the same is no report of the agent.
    #[must_use]
    pub fn without_a_gpu(mut self) -> Self {
        if !self.executed {
            return self;
        }
        for check in &mut self.checks {
            check.measured.retain(|key, _| !key.starts_with("gpu."));
        }
        let detail = "not a report of the agent: it names kernels on a GPU, and none was given";
        let id = CheckId::Agent.as_str();
        self.checks.push(Check { outcome: Outcome::Errored, ..Check::made_here(id, &[], detail) });
        (self.executed, self.verdict) = (false, VerdictStatus::Failed);
        self.gpus.clear();
        self
    }

    /// The GPUs that the checks saw, whatever came of them, each once and sorted.
    pub fn seen_gpus(&self) -> Vec<String> {
        let mut seen: Vec<_> = self.checks.iter().flat_map(labels).map(str::to_owned).collect();
        // A report of before the checks named them.
        if self.verdict == VerdictStatus::Passed {
            seen.extend(self.gpus.iter().cloned());
        }
        seen.sort();
        seen.dedup();
        seen
    }
}

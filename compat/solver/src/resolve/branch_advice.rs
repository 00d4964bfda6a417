//! The driver to install for a refused request: its branch, as a value and in words.

use serde::Serialize;

use crate::versions::{CudaApiVersion, DriverVersion};

/// The driver to install for a request that the target's driver refuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DriverAdvice {
    /// The least branch that opens the request.
    pub least: BranchAdvice,
    /// The least one whose support has not ended, if that of `least` has.
    pub supported: Option<BranchAdvice>,
    /// The end of drivers for the target's GPUs, where one is known: `R580 is the last branch for Volta`.
    pub last_branch: Option<String>,
}

/// A driver branch that opens a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BranchAdvice {
    /// Its number: 580.
    pub branch: u32,
    /// The lowest of its drivers that opens the request; null: not known.
    pub lowest: Option<DriverVersion>,
    /// `LTSB`, `PB` or `NFB`; null: not read.
    pub kind: Option<String>,
    /// The end of its support, if known.
    pub end_of_life: Option<EndOfLife>,
    /// Whether that was before the newest day of the matrix.
    pub past_end: bool,
    /// The newest CUDA it supports itself.
    pub max_cuda: CudaApiVersion,
    /// Where the row comes from.
    pub source: String,
}

/// The end of support of a branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndOfLife {
    /// The month or day: `2028-06`.
    pub date: String,
    /// Who says so.
    pub by: String,
}

impl BranchAdvice {
    /// Returns the branch in words: `R580 (long-term support, supported until 2028-06): 580.65.06 or newer, CUDA up to 13.0`.
    pub fn text(&self) -> String {
        let kind = match self.kind.as_deref() {
            Some("LTSB") => "long-term support",
            Some("PB") => "production",
            Some("NFB") => "new features",
            Some(other) => other,
            None => "kind not read",
        };
        let end = match (&self.end_of_life, self.past_end) {
            (Some(end), true) => format!("its support ended {} according to {}", end.date, end.by),
            (Some(end), false) => format!("supported until {} according to {}", end.date, end.by),
            (None, _) => "end of support not known".to_owned(),
        };
        let lowest = match &self.lowest {
            Some(lowest) => format!("{lowest} or newer"),
            None => "its lowest driver is not known".to_owned(),
        };
        format!(
            "R{} ({kind}, {end}): {lowest}; also opens CUDA up to {} natively, {}.x by minor-version compatibility",
            self.branch,
            self.max_cuda,
            self.max_cuda.major()
        )
    }
}

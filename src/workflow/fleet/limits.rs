//! How long nodes may take.

use std::time::Duration;

use crate::fleet::Stage;

/// What a node needs on top: to begin, to end what runs into its limit, to send the report.
const MARGIN: Duration = Duration::from_secs(30);
/// How much later than its own limit a stage is seen to end: a signal, the removal of a container, the report.
const LATE: Duration = Duration::from_secs(15);

/// How long nodes may take to say whether they have the image.
pub(super) const PROBE: Limits = Limits { pull: Duration::from_secs(30), checks: Duration::ZERO };

/// How long a node may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// To fetch the image.
    pub(crate) pull: Duration,
    /// To run the checks.
    pub(crate) checks: Duration,
}

impl Limits {
    /// The most that a node takes.
    pub(crate) fn whole(self) -> Duration {
        self.pull + self.checks + MARGIN
    }

    /// The minutes that a job is given.
    pub(super) fn minutes(self) -> u64 {
        self.whole().as_secs().div_ceil(60) + 1
    }

    /// The most that a node takes from the beginning of a stage to the next one.
    pub(super) fn of(self, stage: Stage) -> Duration {
        match stage {
            Stage::Start | Stage::Runtime => self.pull + MARGIN,
            Stage::Pull | Stage::File => self.pull + LATE,
            Stage::Check => self.checks + LATE,
            Stage::End => LATE,
        }
    }
}

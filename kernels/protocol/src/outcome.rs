//! Stages, levels, outcomes and reasons to skip.

use crate::named::named;

named! {
    /// A stage of a report.
    Stage {
        /// Checks that need no GPU.
        Static = "static",
        /// Checks of a GPU's results.
        Gpu = "gpu",
        /// Measurements of a GPU's speed.
        Perf = "perf",
        /// Checks that the project defines.
        Project = "project",
    }
}

named! {
    /// A level of verification; each includes those before it.
    Level {
        /// Checks that need no GPU.
        Static = "static",
        /// The fast checks on a GPU, too.
        Quick = "quick",
        /// Every check of correctness.
        Full = "full",
        /// Measurements of speed, too.
        Perf = "perf",
    }
}

impl Level {
    /// The names of all levels.
    pub const NAMES: [&str; 4] =
        [Self::Static.as_str(), Self::Quick.as_str(), Self::Full.as_str(), Self::Perf.as_str()];
}

named! {
    /// The result of a check, worst first.
    Outcome {
        /// The image or the machine does not meet the check.
        Failed = "failed",
        /// The check could not be completed.
        Errored = "errored",
        /// The check does not apply; a [`SkipReason`] gives the reason.
        Skipped = "skipped",
        /// The check is met.
        Passed = "passed",
    }
}

impl Outcome {
    /// Whether nothing went wrong: passed or skipped.
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Passed | Self::Skipped)
    }
}

named! {
    /// The reason why a check was skipped. Tags depend on it: names and meanings never change.
    SkipReason {
        /// The check needs several GPUs, and one is visible.
        OneGpu = "one-gpu",
        /// The GPU's compute capability is too low, or the library has no code for it.
        ComputeCapability = "compute-capability",
        /// No GPU is visible.
        NoGpu = "no-gpu",
        /// The stack does not contain the component.
        NotInStack = "not-in-stack",
        /// The library, interpreter or framework was not found in the image.
        NotInImage = "not-in-image",
        /// Nothing to compare with was given.
        NoExpectation = "no-expectation",
        /// The framework or library does not offer the operation.
        NotOffered = "not-offered",
        /// The framework or library does not report the fact.
        NotReported = "not-reported",
        /// A version or file format that the agent does not know.
        UnknownFormat = "unknown-format",
        /// Another program holds the GPU: its memory is full, or it serves one process only.
        HostBusy = "host-busy",
        /// The machine has no InfiniBand or RoCE device.
        NoRdma = "no-rdma",
        /// The check failed, and it has never passed on a GPU itself. Set by the CLI.
        Unproven = "unproven",
    }
}

impl SkipReason {
    /// Whether an image may get its verified tags although a required check on a GPU was skipped: the machine, not the
    /// image, lacks something.
    pub const fn is_allowed_for_tag(self) -> bool {
        matches!(self, Self::OneGpu | Self::ComputeCapability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_reason_names_are_stable() {
        let names: Vec<_> = SkipReason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(
            names,
            [
                "one-gpu",
                "compute-capability",
                "no-gpu",
                "not-in-stack",
                "not-in-image",
                "no-expectation",
                "not-offered",
                "not-reported",
                "unknown-format",
                "host-busy",
                "no-rdma",
                "unproven"
            ]
        );
        let allowed: Vec<_> = SkipReason::ALL.iter().filter(|reason| reason.is_allowed_for_tag()).collect();
        assert_eq!(allowed, [&SkipReason::OneGpu, &SkipReason::ComputeCapability]);
    }

    #[test]
    fn every_name_parses_back() {
        for stage in Stage::ALL {
            assert_eq!(Stage::parse(stage.as_str()), Some(*stage));
        }
        for level in Level::ALL {
            assert_eq!(Level::parse(level.as_str()), Some(*level));
        }
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::parse(outcome.as_str()), Some(*outcome));
        }
        for reason in SkipReason::ALL {
            assert_eq!(SkipReason::parse(reason.as_str()), Some(*reason));
        }
        assert_eq!(Outcome::parse("splendid"), None);
        assert_eq!(Level::ALL.len(), Level::NAMES.len());
    }

    #[test]
    fn failures_sort_first() {
        assert!(Outcome::Failed < Outcome::Errored && Outcome::Errored < Outcome::Skipped);
        assert!(Outcome::Skipped < Outcome::Passed);
        assert!(Level::Static < Level::Quick && Level::Full < Level::Perf);
    }
}

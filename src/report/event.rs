//! What work reports while it runs. Reporters decide what is seen.

use serde::Serialize;

/// One thing that happened. Serialised as one JSON object per line by `--progress json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A step began. Ids are chosen by the emitter and unique within a run (`base`, `build:sha256:…`).
    StepStarted {
        /// The step.
        id: String,
        /// What it does, for people: `resolve packages with uv`.
        text: String,
    },
    /// A step moved on.
    StepProgress {
        /// The step.
        id: String,
        /// Bytes done.
        done: u64,
        /// Bytes in all, if known.
        total: Option<u64>,
    },
    /// A step of several parts moved on.
    StepParts {
        /// The step.
        id: String,
        /// Parts done.
        done: usize,
        /// Parts in all, as far as that is known.
        total: usize,
        /// Bytes done, without those that were there before.
        done_bytes: u64,
        /// Such bytes in all, as far as that is known.
        total_bytes: u64,
        /// Seconds left, by earlier runs on this machine; `None`: there was none.
        left_s: Option<f64>,
    },
    /// A line of output of a step.
    StepOutput {
        /// The step.
        id: String,
        /// The line, without its newline.
        line: String,
    },
    /// How far the parts of a step are, for people; lines of output say the same of each.
    #[serde(skip)]
    StepTable {
        /// The step.
        id: String,
        /// All in one line.
        summary: String,
        /// A table that replaces the one before.
        lines: Vec<String>,
    },
    /// A step ended well.
    StepFinished {
        /// The step.
        id: String,
        /// True if a cache answered.
        cached: bool,
        /// Wall-clock seconds.
        seconds: f64,
    },
    /// A step failed; the error itself follows as the command's error.
    StepFailed {
        /// The step.
        id: String,
        /// The first line of why.
        text: String,
    },
    /// Something worth one line.
    Note {
        /// The line.
        text: String,
    },
    /// Something the user should act on.
    Warning {
        /// The line.
        text: String,
    },
}

/// Receives events. Implementations must be cheap and never fail.
pub trait Reporter: Send + Sync {
    /// Takes one event.
    fn report(&self, event: Event);
}

/// A reporter that sees nothing, for tests and `--quiet` internals.
#[derive(Debug, Default, Clone, Copy)]
pub struct NullReporter;

impl Reporter for NullReporter {
    fn report(&self, _event: Event) {}
}

//! The result of a check on a GPU: passed with measured values, or not, with a reason and a fix.

use envforge_protocol::{Outcome, SkipReason};

use crate::gpu::status::GpuLibraryError;

/// A check that passed.
#[derive(Debug, Clone, Default)]
pub(crate) struct CheckPass {
    pub(crate) detail: String,
    pub(crate) measured: Vec<(String, String)>,
}

/// A check that did not pass.
#[derive(Debug, Clone)]
pub(crate) struct CheckFailure {
    pub(crate) outcome: Outcome,
    pub(crate) detail: String,
    pub(crate) hint: Option<String>,
    pub(crate) skip: Option<SkipReason>,
}

impl CheckPass {
    pub(crate) fn new(detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), measured: Vec::new() }
    }

    /// Adds a measured value.
    #[expect(clippy::needless_pass_by_value, reason = "numbers and texts alike")]
    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.measured.push((name.to_owned(), value.to_string()));
        self
    }
}

impl CheckFailure {
    fn new(outcome: Outcome, detail: impl Into<String>) -> Self {
        Self { outcome, detail: detail.into(), hint: None, skip: None }
    }

    /// Creates the result of a check that does not apply.
    pub(crate) fn skip(reason: SkipReason, detail: impl Into<String>) -> Self {
        Self { skip: Some(reason), ..Self::new(Outcome::Skipped, detail) }
    }

    /// Creates the result of a check whose answer is wrong, or which lacks something required.
    pub(crate) fn fail(detail: impl Into<String>) -> Self {
        Self::new(Outcome::Failed, detail)
    }

    /// Creates the result of a check that could not be completed.
    pub(crate) fn error(detail: impl Into<String>) -> Self {
        Self::new(Outcome::Errored, detail)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<GpuLibraryError> for CheckFailure {
    /// A failed call fails the check: the image or the machine cannot do what is required. Memory that cannot be had is
    /// held by another program, since no check asks for more than a part of what is free.
    fn from(error: GpuLibraryError) -> Self {
        let hint = error.hint().map(str::to_owned);
        if error.is_out_of_memory() {
            let text = format!("the GPU's memory is full: {error}");
            return Self { hint, ..Self::skip(SkipReason::HostBusy, text) };
        }
        Self { hint, ..Self::fail(error.to_string()) }
    }
}

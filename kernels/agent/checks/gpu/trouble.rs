//! How a check on a GPU ended: good with what it measured, or not with a reason and a cure.

use super::super::super::gpu::status::Fault;
use super::super::super::report::Outcome;

/// A check that passed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Good {
    pub(crate) detail: String,
    pub(crate) measured: Vec<(String, String)>,
}

/// A check that did not.
#[derive(Debug, Clone)]
pub(crate) struct Trouble {
    pub(crate) outcome: Outcome,
    pub(crate) detail: String,
    pub(crate) hint: Option<String>,
}

impl Good {
    pub(crate) fn new(detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), measured: Vec::new() }
    }

    /// With one more value.
    #[expect(clippy::needless_pass_by_value, reason = "numbers and texts alike")]
    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.measured.push((name.to_owned(), value.to_string()));
        self
    }
}

impl Trouble {
    fn new(outcome: Outcome, detail: impl Into<String>) -> Self {
        Self { outcome, detail: detail.into(), hint: None }
    }

    /// It does not apply: the GPU lacks the capability, there are too few GPUs, the component is not in the stack.
    pub(crate) fn skip(detail: impl Into<String>) -> Self {
        Self::new(Outcome::Skipped, detail)
    }

    /// It computed, and the answer is wrong; or what must be there is not.
    pub(crate) fn fail(detail: impl Into<String>) -> Self {
        Self::new(Outcome::Failed, detail)
    }

    /// It could not be found out.
    pub(crate) fn error(detail: impl Into<String>) -> Self {
        Self::new(Outcome::Errored, detail)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<Fault> for Trouble {
    /// A status where success was due fails the check: the image or the machine cannot do what it must.
    fn from(fault: Fault) -> Self {
        Self { outcome: Outcome::Failed, detail: fault.to_string(), hint: fault.hint().map(str::to_owned) }
    }
}

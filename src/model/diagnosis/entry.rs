//! The shape of a row.

use serde::Serialize;

/// One known failure.
#[derive(Debug)]
pub struct KnownError {
    /// Its stable id.
    pub id: &'static str,
    /// The patterns, in any case: the text contains all parts of one of them, in that order. `*` in a part is any text without a
    /// blank.
    pub texts: &'static [&'static [&'static str]],
    /// The event.
    pub what: &'static str,
    /// The cause.
    pub why: &'static str,
    /// The fix.
    pub cure: &'static str,
    /// Where it was observed or documented.
    pub source: &'static str,
}

/// A recognized failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// Its stable id: `driver-too-old`.
    pub id: &'static str,
    /// The event.
    pub what: &'static str,
    /// The cause.
    pub why: &'static str,
    /// The fix.
    pub cure: &'static str,
    /// Where it was observed or documented.
    pub source: &'static str,
}

impl Diagnosis {
    /// Returns cause and fix in one line, for a hint.
    pub fn hint(&self) -> String {
        format!("{}; {}", self.why, self.cure)
    }
}

impl From<&KnownError> for Diagnosis {
    fn from(entry: &KnownError) -> Self {
        let KnownError { id, what, why, cure, source, .. } = *entry;
        Self { id, what, why, cure, source }
    }
}

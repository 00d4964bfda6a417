//! The shape of a row.

use serde::Serialize;

use super::values::Values;

/// One known failure.
#[derive(Debug)]
pub struct KnownError {
    /// Its stable id.
    pub id: &'static str,
    /// The patterns: the text contains all parts of one of them, in that order, within a few lines. `pattern.rs` describes a part.
    pub texts: &'static [&'static [&'static str]],
    /// The event.
    pub what: &'static str,
    /// The cause.
    pub why: &'static str,
    /// The fixes, the first choice first. `{name}` and `{name|NAME}` are values of the text, `NAME` where the text has none.
    pub cures: &'static [&'static str],
    /// Where it was observed or documented.
    pub source: &'static str,
}

/// A recognized failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// Its stable id: `driver-too-old`.
    pub id: &'static str,
    /// The event.
    pub what: String,
    /// The cause.
    pub why: String,
    /// The fix.
    pub cure: String,
    /// Where it was observed or documented.
    pub source: &'static str,
}

impl Diagnosis {
    /// Returns cause and fix in one line, for a hint.
    pub fn hint(&self) -> String {
        format!("{}; {}", self.why, self.cure)
    }
}

impl KnownError {
    /// Returns the fixes, the first choice first, with words in the places of values.
    pub fn fixes(&self) -> Vec<String> {
        self.cures.iter().map(|cure| Values::default().fill(cure)).collect()
    }

    /// Returns the diagnosis with one of the fixes, and the values of a text in its places.
    pub(super) fn filled(&self, cure: &str, values: &Values) -> Diagnosis {
        let Self { id, what, why, source, .. } = *self;
        // `: {value|see the text}` says nothing where the text has no value.
        let what = values.fill(what).replace(": see the text", "");
        Diagnosis { id, what, why: values.fill(why), cure: values.fill(cure), source }
    }
}

impl From<&KnownError> for Diagnosis {
    fn from(entry: &KnownError) -> Self {
        entry.filled(entry.cures.first().copied().unwrap_or_default(), &Values::default())
    }
}

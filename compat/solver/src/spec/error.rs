//! Errors in a spec's text, with position and suggestion.

use std::ops::Range;

use thiserror::Error;

/// An invalid spec. Prints the problem; [`SpecError::snippet`] shows its position.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid spec `{text}`: {problem}")]
pub struct SpecError {
    /// The text as given.
    pub text: String,
    /// The invalid bytes; empty where a part is missing.
    pub span: Range<usize>,
    /// The problem.
    #[source]
    pub problem: SpecProblem,
    /// The complete spec that was probably intended.
    pub suggestion: Option<String>,
}

impl SpecError {
    /// What a person can do about it, one imperative per line.
    pub fn hints(&self) -> Vec<String> {
        match &self.suggestion {
            Some(meant) => vec![format!("did you mean `{meant}`?")],
            None => vec![
                "use NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR], such as \
                          `pytorch-cuda:2.8-cu128-py3.11`"
                    .to_owned(),
            ],
        }
    }
}

/// A problem in a spec's text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SpecProblem {
    /// A missing product name.
    #[error("expected a product name such as `pytorch-cuda`")]
    NoName,
    /// A character that specs do not allow.
    #[error("unexpected `{0}`")]
    Character(char),
    /// A missing part after `:` or `-`.
    #[error("missing value after `{0}`")]
    Nothing(char),
    /// An invalid version.
    #[error("invalid version `{0}` (expected `2.8` or `2.8.0`)")]
    Version(String),
    /// An invalid CUDA.
    #[error("invalid CUDA `{0}` (expected `cu128` or `cuda12.8`)")]
    Cuda(String),
    /// An invalid Python.
    #[error("invalid Python `{0}` (expected `py3.11`)")]
    Python(String),
    /// A part of unknown kind.
    #[error("`{0}` is not a CUDA (`cu128`), Python (`py3.11`) or flavour (`runtime`, `devel`)")]
    Part(String),
    /// Two parts of the same kind.
    #[error("duplicate {1}: `{0}`")]
    Twice(String, &'static str),
}

impl SpecError {
    /// Returns two lines: the text, and carets under the problem.
    pub fn snippet(&self) -> String {
        let before = self.text.get(..self.span.start).unwrap_or(&self.text).chars().count();
        let wide = self.text.get(self.span.clone()).map_or(1, |wrong| wrong.chars().count().max(1));
        format!("    {}\n    {}{}", self.text, " ".repeat(before), "^".repeat(wide))
    }
}

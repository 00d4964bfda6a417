//! What can be wrong with a spec's text, where, and what was probably meant.

use std::ops::Range;

use thiserror::Error;

/// A text that is no spec. Prints what is wrong; [`SpecError::snippet`] shows where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is not a spec: {problem}")]
pub struct SpecError {
    /// The text as it was typed.
    pub text: String,
    /// The bytes that are wrong; empty at the place where something is missing.
    pub span: Range<usize>,
    /// What is wrong there.
    #[source]
    pub problem: SpecProblem,
    /// The whole spec that was probably meant.
    pub suggestion: Option<String>,
}

/// One way in which a spec's text can be wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SpecProblem {
    /// Nothing before the version.
    #[error("it does not begin with a name such as `pytorch-cuda`")]
    NoName,
    /// A character no spec holds.
    #[error("`{0}` has no place in a spec")]
    Character(char),
    /// Nothing where a part should follow `:` or `-`.
    #[error("nothing follows `{0}`")]
    Nothing(char),
    /// Not a version.
    #[error("`{0}` is not a version such as `2.8` or `2.8.0`")]
    Version(String),
    /// Not a CUDA.
    #[error("`{0}` is not a CUDA such as `cu128` or `cuda12.8`")]
    Cuda(String),
    /// Not a Python.
    #[error("`{0}` is not a Python such as `py3.11`")]
    Python(String),
    /// A part of no kind.
    #[error("`{0}` is neither a CUDA (`cu128`), a Python (`py3.11`) nor a flavour (`runtime`, `devel`)")]
    Part(String),
    /// Two parts of one kind.
    #[error("`{0}` names the {1} a second time")]
    Twice(String, &'static str),
}

impl SpecError {
    /// What to do about it.
    pub fn hints(&self) -> Vec<String> {
        match &self.suggestion {
            Some(meant) => vec![format!("did you mean `{meant}`?")],
            None => vec![
                "a spec is NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR], such as \
                          `pytorch-cuda:2.8-cu128-py3.11`"
                    .to_owned(),
            ],
        }
    }

    /// The call is wrong: 2.
    pub fn exit_code(&self) -> u8 {
        2
    }

    /// Two lines: the text, and carets under what is wrong.
    pub fn snippet(&self) -> String {
        let before = self.text.get(..self.span.start).unwrap_or(&self.text).chars().count();
        let wide = self.text.get(self.span.clone()).map_or(1, |wrong| wrong.chars().count().max(1));
        format!("    {}\n    {}{}", self.text, " ".repeat(before), "^".repeat(wide))
    }
}

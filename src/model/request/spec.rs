//! The spec of a request.

use std::str::FromStr;

use crate::model::spec::{Spec, SpecError};

/// A spec with the text it was written as, by which locks, tags and messages name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedSpec {
    written: String,
    parsed: Spec,
}

impl RequestedSpec {
    /// Returns the text as it was written.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Returns what the text says.
    pub fn parsed(&self) -> &Spec {
        &self.parsed
    }
}

impl FromStr for RequestedSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        Ok(Self { written: text.to_owned(), parsed: text.parse()? })
    }
}

impl From<Spec> for RequestedSpec {
    fn from(parsed: Spec) -> Self {
        Self { written: parsed.to_string(), parsed }
    }
}

/// A spec of the command line. It is parsed once, as it is read; what is wrong with it is for its command to say: of several
/// specs one that is invalid does not stop the others.
#[derive(Debug, Clone)]
pub struct SpecArgument(Result<RequestedSpec, SpecError>);

impl SpecArgument {
    /// Returns the spec, or what is wrong with it.
    pub fn checked(&self) -> Result<&RequestedSpec, SpecError> {
        self.0.as_ref().map_err(Clone::clone)
    }

    /// Returns the text as it was typed.
    pub fn written(&self) -> &str {
        match &self.0 {
            Ok(spec) => spec.written(),
            Err(error) => &error.text,
        }
    }
}

impl From<String> for SpecArgument {
    fn from(typed: String) -> Self {
        Self(typed.parse())
    }
}

impl From<RequestedSpec> for SpecArgument {
    fn from(spec: RequestedSpec) -> Self {
        Self(Ok(spec))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spec_keeps_the_spelling_of_its_user() {
        let spec: RequestedSpec = "PyTorch-cuda:v2.8-cu12.8".parse().expect("a spec");
        assert_eq!(spec.written(), "PyTorch-cuda:v2.8-cu12.8");
        assert_eq!(spec.parsed().to_string(), "pytorch-cuda:2.8-cu128");
        assert_eq!(RequestedSpec::from(spec.parsed().clone()).written(), "pytorch-cuda:2.8-cu128");
    }

    #[test]
    fn argument_that_is_no_spec_keeps_its_text_and_says_why() {
        let wrong = SpecArgument::from("Pytorch-cuda:2.8:2.9".to_owned());
        assert_eq!(wrong.written(), "Pytorch-cuda:2.8:2.9");
        assert_eq!(
            wrong.checked().expect_err("two versions"),
            wrong.written().parse::<Spec>().expect_err("as before")
        );
        let right = SpecArgument::from("cuda:12.8".to_owned());
        assert_eq!(right.checked().map(RequestedSpec::written), Ok(right.written()));
    }
}

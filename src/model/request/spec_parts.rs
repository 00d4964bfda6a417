//! Parts of a spec that have options of their own.

/// The CUDA and the Python that a spec is restricted to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecParts {
    /// The CUDA: `cu128` or `12.8`.
    pub cuda: Option<String>,
    /// The Python: `3.11`.
    pub python: Option<String>,
}

impl SpecParts {
    /// The option that was given, if one was.
    pub fn option(&self) -> Option<&'static str> {
        match self {
            Self { cuda: Some(_), .. } => Some("--cuda"),
            Self { python: Some(_), .. } => Some("--python"),
            Self { cuda: None, python: None } => None,
        }
    }
}

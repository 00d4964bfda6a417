//! The spec as a value, and its canonical spelling.

use std::fmt;

use serde::{Serialize, Serializer};

use super::cuda_request::CudaRequest;
use super::flavour::Flavour;
use super::suffix::is_suffix;
use crate::versions::{FrameworkVersion, PythonVersion};

/// A user's request. Prints its canonical spelling; omitted parts stay omitted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spec {
    /// The product: `pytorch-cuda`.
    pub name: String,
    /// The version or a prefix of it; `None`: the newest that runs on the target.
    pub version: Option<FrameworkVersion>,
    /// The CUDA, if given.
    pub cuda: Option<CudaRequest>,
    /// The Python, if given.
    pub python: Option<PythonVersion>,
    /// runtime or devel.
    pub flavour: Flavour,
}

impl Spec {
    /// Returns a spec with only a product name.
    pub fn of(name: &str) -> Self {
        Self { name: name.to_owned(), version: None, cuda: None, python: None, flavour: Flavour::Runtime }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(version) = &self.version {
            write!(f, ":{version}")?;
        } else if self.name.split('-').skip(1).any(is_suffix) {
            // Without it the name would end before that part.
            f.write_str(":latest")?;
        }
        if let Some(cuda) = self.cuda {
            write!(f, "-{cuda}")?;
        }
        if let Some(python) = self.python {
            write!(f, "-py{python}")?;
        }
        match self.flavour {
            Flavour::Runtime => Ok(()),
            Flavour::Devel => f.write_str("-devel"),
        }
    }
}

impl Serialize for Spec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

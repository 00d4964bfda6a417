//! A spec restricted by `--cuda` and `--python`.

use crate::model::request::SpecParts;
use crate::model::spec::{Spec, cuda_part, python_part};
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::request_error::RequestError;

/// Returns the spec with these parts; a part that it has another value of is an error.
pub(crate) fn restricted(text: &str, parts: &SpecParts) -> Result<String, CommandError> {
    if parts.option().is_none() {
        return Ok(text.to_owned());
    }
    let mut spec: Spec = text.parse()?;
    let bad = |option, value: &String| RequestError::BadPart { option, value: value.clone() };
    let conflict = |option, value: &String, found: String| RequestError::PartConflict {
        option,
        value: value.clone(),
        found,
        spec: text.to_owned(),
    };
    if let Some(value) = &parts.cuda {
        let cuda = cuda_part(value).ok_or_else(|| bad("--cuda", value))?;
        let found = spec.cuda.map(|cuda| cuda.to_string()).unwrap_or_default();
        if !spec.restrict_cuda(cuda) {
            return Err(conflict("--cuda", value, found).into());
        }
    }
    if let Some(value) = &parts.python {
        let python = python_part(value).ok_or_else(|| bad("--python", value))?;
        let found = spec.python.map(|python| format!("py{python}")).unwrap_or_default();
        if !spec.restrict_python(python) {
            return Err(conflict("--python", value, found).into());
        }
    }
    Ok(spec.to_string())
}

impl BuildRequest {
    /// Returns the request with its spec restricted to these parts.
    pub(crate) fn with_parts(self, parts: &SpecParts) -> Result<Self, CommandError> {
        Ok(Self { spec: restricted(&self.spec, parts)?, ..self })
    }
}

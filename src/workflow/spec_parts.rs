//! A spec restricted by `--cuda` and `--python`.

use crate::model::compat::Matrix;
use crate::model::request::{RequestedSpec, SpecParts};
use crate::model::spec::{cuda_part, python_part};
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::request_error::RequestError;
use crate::workflow::verify_target::spec_of;

/// Returns the spec with these parts; a part that it has another value of is an error.
pub(crate) fn restricted(wanted: &RequestedSpec, parts: &SpecParts) -> Result<RequestedSpec, CommandError> {
    if parts.option().is_none() {
        return Ok(wanted.clone());
    }
    let mut spec = wanted.parsed().clone();
    let bad = |option, value: &String| RequestError::BadPart { option, value: value.clone() };
    let conflict = |option, value: &String, found: String| RequestError::PartConflict {
        option,
        value: value.clone(),
        found,
        spec: wanted.written().to_owned(),
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
    Ok(spec.into())
}

/// Returns the names of images and locks, those that are specs with these parts. Parts without a spec are an error.
pub(crate) fn restricted_names<'a>(
    names: impl IntoIterator<Item = &'a String>,
    parts: &SpecParts,
    matrix: &Matrix,
) -> Result<Vec<String>, CommandError> {
    let mut has_spec = false;
    let mut restrict = |name: &String| -> Result<_, CommandError> {
        let Some(spec) = spec_of(name, matrix) else { return Ok(name.clone()) };
        has_spec = true;
        Ok(restricted(&spec, parts)?.written().to_owned())
    };
    let names = names.into_iter().map(&mut restrict).collect::<Result<Vec<_>, _>>()?;
    match parts.option() {
        Some(option) if !has_spec => Err(RequestError::PartNeedsSpec { option }.into()),
        _ => Ok(names),
    }
}

/// The same for a name that may be left out, which means the project.
pub(crate) fn restricted_name(
    name: Option<&String>,
    parts: &SpecParts,
    matrix: &Matrix,
) -> Result<Option<String>, CommandError> {
    Ok(restricted_names(name, parts, matrix)?.pop())
}

impl BuildRequest {
    /// Returns the request with its spec restricted to these parts.
    pub(crate) fn with_parts(self, parts: &SpecParts) -> Result<Self, CommandError> {
        Ok(Self { spec: restricted(&self.spec, parts)?, ..self })
    }
}

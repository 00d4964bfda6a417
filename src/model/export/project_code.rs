//! The project's own code in what other tools start: a directory of files, and the variables that lead programs to it.

use std::collections::BTreeMap;

use crate::model::editable::variables;

/// The directory of the files, next to the exported file.
pub(crate) const CODE_FOLDER: &str = "project-code";
/// Where it is mounted.
pub(crate) const CODE_TARGET: &str = "/envforge/project";

/// Returns the variables for a container whose image has those.
pub(super) fn code_variables(image: &BTreeMap<String, String>) -> Vec<String> {
    variables(CODE_TARGET, |name| image.get(name).map(String::as_str))
}

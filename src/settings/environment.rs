//! The environment as it was when the program started.

use std::collections::BTreeMap;

/// Variables by name.
pub type Environment = BTreeMap<String, String>;

/// Returns a variable that is set and not empty.
fn set(environment: &Environment, name: &str) -> Option<String> {
    environment.get(name).filter(|value| !value.is_empty()).cloned()
}

/// Returns the first of some variables that is set and not empty.
pub(super) fn first(environment: &Environment, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| set(environment, name))
}

/// Splits a list at its commas.
pub(super) fn split_list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

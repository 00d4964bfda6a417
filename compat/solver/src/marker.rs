//! Markers, evaluated for the platform of images.

use std::str::FromStr as _;

use pep508_rs::{ExtraName, MarkerEnvironment, MarkerEnvironmentBuilder, MarkerTree};

use crate::versions::{Machine, PythonVersion};

/// Reads a marker. `None`: it is not understood, or is longer and deeper than any that a tool writes.
pub fn marker(text: &str) -> Option<MarkerTree> {
    let variables = text.matches("extra").count() + text.matches(" in ").count();
    let is_short = text.len() <= 4096 && text.matches('(').count() <= 64 && variables <= 24;
    is_short.then(|| MarkerTree::from_str(text).ok()).flatten()
}

/// Whether a marker can hold on Linux, on a processor with a Python that images have. One that is not understood may.
pub fn may_hold(text: &str, machine: Machine) -> bool {
    let Some(tree) = marker(text) else { return true };
    pythons().any(|python| holds(&tree, machine, python))
}

/// The Pythons that images have, nearest to the one of the default base first.
pub fn pythons() -> impl Iterator<Item = PythonVersion> {
    [11, 12, 10, 13, 9, 14, 8, 7].into_iter().map(|minor| PythonVersion { major: 3, minor })
}

/// Whether a marker holds on Linux.
pub fn holds(marker: &MarkerTree, machine: Machine, python: PythonVersion) -> bool {
    holds_with(marker, machine, python, &[])
}

/// Whether a marker holds on Linux, with those extras.
pub fn holds_with(
    marker: &MarkerTree,
    machine: Machine,
    python: PythonVersion,
    extras: &[ExtraName],
) -> bool {
    // Most requirements have none, and an environment is costly.
    marker.is_true()
        || environment_of(machine, python).is_some_and(|environment| marker.evaluate(&environment, extras))
}

/// The environment of images of a processor with that Python.
pub fn environment_of(machine: Machine, python: PythonVersion) -> Option<MarkerEnvironment> {
    let (full, short) = (format!("{python}.0"), python.to_string());
    let machine = machine.to_string();
    let environment = MarkerEnvironmentBuilder {
        implementation_name: "cpython",
        implementation_version: &full,
        os_name: "posix",
        platform_machine: &machine,
        platform_python_implementation: "CPython",
        platform_release: "",
        platform_system: "Linux",
        platform_version: "",
        python_full_version: &full,
        python_version: &short,
        sys_platform: "linux",
    };
    MarkerEnvironment::try_from(environment).ok()
}

//! Markers, evaluated for the platform of images.

use std::str::FromStr as _;

use pep508_rs::{MarkerEnvironment, MarkerEnvironmentBuilder, MarkerTree};

use crate::model::versions::{Machine, PythonVersion};

/// Whether a marker can hold on Linux, on a processor with a Python that images have. One that is not understood may.
pub(crate) fn may_hold(marker: &str, machine: Machine) -> bool {
    if marker.len() > 4096 || marker.matches('(').count() > 64 {
        return true;
    }
    let Ok(tree) = MarkerTree::from_str(marker) else { return true };
    pythons().any(|python| holds(&tree, machine, python))
}

/// The Pythons that images have, nearest to the one of the default base first.
pub(crate) fn pythons() -> impl Iterator<Item = PythonVersion> {
    [11, 12, 10, 13, 9, 14, 8, 7].into_iter().map(|minor| PythonVersion { major: 3, minor })
}

/// Whether a marker holds on Linux.
pub(crate) fn holds(marker: &MarkerTree, machine: Machine, python: PythonVersion) -> bool {
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
    MarkerEnvironment::try_from(environment).is_ok_and(|environment| marker.evaluate(&environment, &[]))
}

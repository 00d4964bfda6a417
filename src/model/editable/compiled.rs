//! Parts of a project that only a build makes.

use super::project_tree::{PathKind, ProjectTree};
use super::reader::Declared;

/// Returns the line that names what is compiled; `None`: nothing is known to be.
pub(super) fn note(declared: &Declared, tree: &dyn ProjectTree) -> Option<String> {
    let mut signs: Vec<String> = Vec::new();
    match declared.backend.as_deref() {
        Some("maturin") => signs.push("maturin".to_owned()),
        Some("mesonpy") => signs.push("meson-python".to_owned()),
        Some("scikit_build_core") => signs.push("scikit-build-core".to_owned()),
        _ => {}
    }
    let modules = declared.at(&["tool", "setuptools", "ext-modules"]);
    if modules.and_then(toml::Value::as_array).is_some_and(|list| !list.is_empty()) {
        signs.push("`ext-modules`".to_owned());
    }
    let requires = declared.build_requires();
    for name in ["cffi", "cython", "mypy", "nanobind", "pybind11", "scikit-build", "setuptools-rust", "torch"]
    {
        if requires.contains(name) {
            signs.push(format!("build requirement `{name}`"));
        }
    }
    if let Some(text) = tree.text("setup.py") {
        let words = ["ext_modules", "Extension(", "CUDAExtension", "CppExtension", "cythonize("];
        if let Some(word) = words.iter().find(|word| text.contains(*word)) {
            signs.push(format!("`{}` in setup.py", word.trim_end_matches('(')));
        }
    }
    if tree.kind("Cargo.toml") == PathKind::File && signs.is_empty() {
        signs.push("Cargo.toml".to_owned());
    }
    (!signs.is_empty()).then(|| format!("compiled parts are not built ({})", signs.join(", ")))
}

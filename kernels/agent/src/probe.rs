//! Reads the framework's facts in the image's Python: one import, since it takes seconds.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::products;

const SCRIPT: &str = include_str!("python/probe.py");

/// The frameworks that it asks itself, by the names of the lock; the others have a script in `python/products/`.
const NAMES: [&str; 7] = ["torch", "tensorflow", "jax", "cupy", "numba", "onnxruntime", "vllm"];

/// Whether a framework can be asked.
pub(crate) fn knows(name: &str) -> bool {
    NAMES.contains(&name) || products::script(name).is_some()
}

/// Returns the framework's own facts, or the reason why it cannot be imported.
pub(crate) fn framework(python: &Path, name: &str) -> Result<BTreeMap<String, String>, String> {
    let output = Command::new(python)
        .args(["-c", SCRIPT, name])
        .args(products::script(name))
        .env("CUDA_VISIBLE_DEVICES", "")
        .env("HOME", "/tmp")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start {}: {error}", python.display()))?;
    let answers = parse(&String::from_utf8_lossy(&output.stdout));
    if answers.contains_key("end") {
        return Ok(answers);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no output");
    Err(format!("cannot import the framework: {last}"))
}

fn parse(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// cuDNN's number as a version: 91002 is 9.10.2, 8907 is 8.9.7.
pub(crate) fn cudnn_version(number: &str) -> Option<String> {
    let number: u32 = number.parse().ok()?;
    let (major, minor, patch) = if number >= 90_000 {
        (number / 10_000, number / 100 % 100, number % 100)
    } else {
        (number / 1000, number / 100 % 10, number % 100)
    };
    Some(format!("{major}.{minor}.{patch}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn cudnn_numbers_are_versions() {
        assert_eq!(cudnn_version("91002").as_deref(), Some("9.10.2"));
        assert_eq!(cudnn_version("8907").as_deref(), Some("8.9.7"));
        assert_eq!(cudnn_version("None"), None);
    }

    #[test]
    fn the_script_knows_every_framework_and_no_other() {
        let names = NAMES.join(", ");
        assert!(SCRIPT.contains(&format!("for probe in ({names})}}")), "{names}");
    }

    #[test]
    fn a_python_that_cannot_import_says_why() {
        let folder = tempfile::tempdir().expect("folder");
        let python = folder.path().join("python");
        std::fs::write(
            &python,
            "#!/bin/sh\necho python=3.11\necho 'ImportError: libcudnn.so.9' >&2\nexit 1\n",
        )
        .expect("written");
        std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).expect("mode");
        assert!(framework(&python, "torch").unwrap_err().ends_with("ImportError: libcudnn.so.9"));
    }
}

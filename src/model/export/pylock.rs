//! The Python packages of a lock as a `pylock.toml` (PEP 751), which pip and uv install from.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::model::image::plan::name;
use crate::model::lock::{Lock, LockedWheel};

/// Returns the text of a `pylock.toml`. `addresses`: where each file is, by its SHA-256. A package that was built from its source is
/// listed with that source.
pub(crate) fn pylock(lock: &Lock, addresses: &BTreeMap<String, String>) -> String {
    let (python, machine) = (lock.stack.python, lock.stack.machine);
    let environment = format!(
        "sys_platform == 'linux' and platform_machine == '{machine}' and implementation_name == 'cpython' and python_version == '{python}'"
    );
    let mut text = format!(
        "# The Python packages of {}, by `envforge export pylock`. They need its Linux, Python and CUDA driver.\n\
         lock-version = \"1.0\"\nenvironments = [{}]\nrequires-python = \"=={python}.*\"\ncreated-by = \"envforge\"\n",
        name(lock),
        quoted(&environment),
    );
    let mut wheels: Vec<&LockedWheel> = lock.wheels.iter().collect();
    wheels.sort_by_key(|wheel| &wheel.name);
    for wheel in wheels {
        let _ = write!(
            text,
            "\n[[packages]]\nname = {}\nversion = {}\n",
            quoted(&wheel.name),
            quoted(&wheel.version)
        );
        match lock.sources.iter().find(|source| source.name == wheel.name) {
            Some(source) => {
                let _ = writeln!(text, "sdist = {}", file(&source.as_file(), addresses));
            }
            None => {
                let _ = writeln!(text, "wheels = [{}]", file(wheel, addresses));
            }
        }
    }
    let _ =
        write!(text, "\n[tool.envforge]\nspec = {}\nlock = {}\n", quoted(&lock.spec), quoted(&lock.hash()));
    text
}

/// One file as an inline table.
fn file(wheel: &LockedWheel, addresses: &BTreeMap<String, String>) -> String {
    let address = addresses.get(&wheel.sha256).map(|address| format!(", url = {}", quoted(address)));
    let size = wheel.size.map(|size| format!(", size = {size}"));
    format!(
        "{{ name = {}{}{}, hashes = {{ sha256 = {} }} }}",
        quoted(&wheel.file),
        address.unwrap_or_default(),
        size.unwrap_or_default(),
        quoted(&wheel.sha256),
    )
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::compat;
    use crate::model::lock::{IndexKind, LockedSource, WheelLayer, sample};
    use crate::model::migrate::{LockSelection, tool_versions};

    fn lock() -> Lock {
        let mut lock = sample::lock();
        let built = LockedWheel {
            name: "docopt".to_owned(),
            version: "0.6.2".to_owned(),
            file: "docopt-0.6.2-py2.py3-none-any.whl".to_owned(),
            sha256: "5".repeat(64),
            size: Some(9),
            index: IndexKind::Local,
            index_name: None,
            layer: WheelLayer::User,
        };
        lock.sources = vec![LockedSource {
            name: "docopt".to_owned(),
            version: "0.6.2".to_owned(),
            file: "docopt-0.6.2.tar.gz".to_owned(),
            sha256: "6".repeat(64),
            size: Some(25_901),
            build: Vec::new(),
            recipe: None,
        }];
        lock.wheels.push(built);
        lock
    }

    fn addresses() -> BTreeMap<String, String> {
        let address = |hash: &str, file: &str| (hash.repeat(64), format!("https://files.example.com/{file}"));
        [address("3", "torch.whl"), address("6", "docopt-0.6.2.tar.gz")].into()
    }

    #[test]
    fn each_package_has_its_file_with_hash_and_address() {
        let text = pylock(&lock(), &addresses());
        insta::assert_snapshot!(text.replace(&lock().hash(), "[HASH]"));
    }

    #[test]
    fn own_export_selects_the_same_versions() {
        let lock = lock();
        let text = pylock(&lock, &addresses());
        let selection = LockSelection {
            python: lock.stack.python,
            machine: lock.stack.machine,
            extras: &[],
            groups: &[],
            pyproject: None,
        };
        let found = tool_versions("pylock.toml", &text, &selection, compat::embedded()).expect("its own");
        let wheels = lock.wheels.iter().map(|wheel| (wheel.name.clone(), wheel.version.clone()));
        assert_eq!(found.versions, wheels.collect());
        let other = LockSelection { python: "3.12".parse().expect("a version"), ..selection };
        let error =
            tool_versions("pylock.toml", &text, &other, compat::embedded()).expect_err("another Python");
        assert!(error.to_string().contains("Python `==3.11.*`"), "{error}");
    }
}

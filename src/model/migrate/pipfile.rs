//! Pipfile and Pipfile.lock of pipenv.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Table, Value};

use super::index_use::IndexUse;
use super::locks::pin;
use super::place::Origin;
use super::poetry::dependencies;
use super::pythons::condition;
use super::reading::{Kind, Offered, PythonFact, Reading};
use super::requirements::index;

/// Reads a Pipfile.
pub fn from_pipfile(file: &str, text: &str) -> Reading {
    let table: Table = match toml::from_str(text) {
        Ok(table) => table,
        Err(error) => {
            return Reading::unreadable(
                file,
                Kind::Project,
                &format!("not TOML: {}", error.message().trim()),
            );
        }
    };
    let mut reading = Reading::of(file, Kind::Project);
    let mut indexes = IndexUse::default();
    for (at, source) in table.get("source").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let field = |key: &str| source.get(key).and_then(Value::as_str).unwrap_or_default();
        let url = field("url");
        indexes.declare(field("name"), url, false);
        // The first one is asked for every package, the others for those that name them.
        if at == 0 {
            index(&mut reading, &format!("source {url}"), url, &Origin::holding(file, text, url));
        }
    }
    if let Some(packages) = table.get("packages").and_then(Value::as_table) {
        let found = dependencies(&mut reading, packages, text, &mut indexes).all();
        reading.packages.extend(found);
    }
    let categories = table.iter().filter(|(name, _)| !OWN.contains(&name.as_str()));
    for (name, packages) in categories.filter_map(|(name, value)| Some((name, value.as_table()?))) {
        let found = dependencies(&mut reading, packages, text, &mut indexes).all();
        let origin = Origin::holding(file, text, &format!("[{name}]"));
        let short = name.trim_end_matches("-packages");
        reading.offered.push(Offered::of(origin, short, "category", found));
    }
    let requires = table.get("requires");
    for key in ["python_version", "python_full_version"] {
        let written = requires.and_then(|requires| requires.get(key)).and_then(Value::as_str);
        if let Some((written, versions)) = written.and_then(|written| Some((written, condition(written)?))) {
            let origin = Origin::holding(file, text, key);
            reading.python.push(PythonFact { origin, versions, by: format!("{key} = \"{written}\"") });
        }
    }
    reading
}

/// Tables of a Pipfile that list no packages, or those of every installation.
const OWN: [&str; 6] = ["source", "packages", "requires", "scripts", "pipenv", "categories"];

#[derive(Deserialize)]
struct Lock {
    #[serde(default)]
    default: BTreeMap<String, Locked>,
    #[serde(default, rename = "_meta")]
    meta: Meta,
}

#[derive(Deserialize, Default)]
struct Meta {
    #[serde(default, rename = "pipfile-spec")]
    format: u32,
    #[serde(default)]
    requires: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Locked {
    version: Option<String>,
    markers: Option<String>,
}

/// Reads a Pipfile.lock: the releases of `[packages]`.
pub fn from_pipfile_lock(file: &str, text: &str) -> Reading {
    let lock: Lock = match serde_json::from_str(text) {
        Ok(lock) => lock,
        Err(error) => {
            return Reading::unreadable(file, Kind::Lock, &format!("not a lock of pipenv: {error}"));
        }
    };
    if lock.meta.format != 6 {
        let why = format!("format {} of pipenv's lock: this envforge reads format 6", lock.meta.format);
        return Reading::unreadable(file, Kind::Lock, &why);
    }
    let mut reading = Reading::of(file, Kind::Lock);
    let python =
        ["python_version", "python_full_version"].into_iter().find_map(|key| lock.meta.requires.get(key));
    if let Some((written, versions)) = python.and_then(|written| Some((written, condition(written)?))) {
        let origin = Origin::holding(file, text, written);
        reading.python.push(PythonFact { origin, versions, by: format!("python_version = \"{written}\"") });
    }
    for (name, locked) in lock.default {
        let origin = Origin::holding(file, text, &format!("\"{name}\""));
        match locked.version.as_deref().and_then(|version| version.strip_prefix("==")) {
            Some(version) => pin(&mut reading, &name, version, locked.markers.as_deref(), origin),
            None => reading.leave(origin, &name, "without a version: from a repository or a folder"),
        }
    }
    reading
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::migrate::reading::Asked;

    fn requirements(list: &[Asked]) -> Vec<String> {
        list.iter().map(Asked::requirement).collect()
    }

    #[test]
    fn pipfile_gives_packages_cuda_python_and_categories() {
        let text = r#"
[[source]]
name = "pypi"
url = "https://pypi.org/simple"
[[source]]
name = "pytorch"
url = "https://download.pytorch.org/whl/cu121"
[packages]
torch = {version = "==2.3.1", index = "pytorch"}
transformers = {extras = ["torch"], version = "~=4.41"}
pywin32 = {version = "*", sys_platform = "== 'win32'"}
own = {editable = true, path = "."}
[dev-packages]
pytest = "*"
[requires]
python_version = "3.10"
"#;
        let reading = from_pipfile("Pipfile", text);
        assert_eq!(
            requirements(&reading.packages),
            ["pywin32 ; sys_platform == 'win32'", "torch==2.3.1", "transformers[torch]~=4.41"]
        );
        assert_eq!(reading.cuda[0].cuda.to_string(), "cu121");
        assert_eq!(reading.python[0].versions.to_string(), "==3.10.*");
        assert_eq!((reading.offered[0].name.as_str(), reading.left.len()), ("dev", 1));
        assert!(!from_pipfile("Pipfile", "[packages\n").says_something());
    }

    #[test]
    fn lock_of_pipenv_gives_releases() {
        let text = r#"{"_meta": {"pipfile-spec": 6, "requires": {"python_version": "3.10"}},
            "default": {"torch": {"index": "pytorch", "version": "==2.3.1+cu121", "hashes": []},
                        "own": {"path": "."}}, "develop": {"pytest": {"version": "==8.0"}}}"#;
        let reading = from_pipfile_lock("Pipfile.lock", text);
        assert_eq!(requirements(&reading.pins), ["torch==2.3.1"]);
        assert_eq!(reading.pins[0].local.as_deref(), Some("cu121"));
        assert_eq!((reading.python.len(), reading.left.len()), (1, 1));
        assert!(from_pipfile_lock("Pipfile.lock", "{}").left[0].why.contains("format 0"));
    }
}

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
use super::requirement_line::normalized;
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
    let sources: Vec<Source> = match table.get("source").map(|found| found.clone().try_into()) {
        Some(Ok(sources)) => sources,
        Some(Err(error)) => {
            let why = format!("not sources of pipenv: {}", error.message().trim());
            reading.leave(Origin::holding(file, text, "[[source]]"), "source", why);
            Vec::new()
        }
        None => Vec::new(),
    };
    let mut indexes = declared(&mut reading, &sources, text);
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

#[derive(Deserialize)]
struct Source {
    #[serde(default)]
    name: String,
    #[serde(default)]
    url: String,
}

/// The sources by name. The first one is asked for every package, the others for those that name them.
fn declared(reading: &mut Reading, sources: &[Source], text: &str) -> IndexUse {
    let mut indexes = IndexUse::default();
    for source in sources {
        indexes.declare(&source.name, &source.url, false);
    }
    if let Some(Source { url, .. }) = sources.first() {
        let origin = Origin::holding(&reading.file, text, url);
        index(reading, &format!("source {url}"), url, &origin);
    }
    indexes
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
    #[serde(default)]
    sources: Vec<Source>,
}

#[derive(Deserialize)]
struct Locked {
    version: Option<String>,
    markers: Option<String>,
    index: Option<String>,
    /// Where it comes from, if not from an index.
    path: Option<serde_json::Value>,
    git: Option<serde_json::Value>,
    file: Option<serde_json::Value>,
    editable: Option<serde_json::Value>,
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
    let indexes = declared(&mut reading, &lock.meta.sources, text);
    let python =
        ["python_version", "python_full_version"].into_iter().find_map(|key| lock.meta.requires.get(key));
    if let Some((written, versions)) = python.and_then(|written| Some((written, condition(written)?))) {
        let origin = Origin::holding(file, text, written);
        reading.python.push(PythonFact { origin, versions, by: format!("python_version = \"{written}\"") });
    }
    for (name, locked) in lock.default {
        // Thousands of entries: their lines are not looked for.
        let origin = Origin::file(file);
        let Locked { version, markers, index, path, git, file: place, editable } = locked;
        let elsewhere = [path, git, place, editable].iter().any(Option::is_some);
        match version.as_deref().and_then(|version| version.strip_prefix("==")).filter(|_| !elsewhere) {
            Some(version) => {
                pin(&mut reading, &name, version, markers.as_deref(), origin);
                let pinned = reading.pins.pop_if(|pin| pin.name == normalized(&name));
                if let Some(mut asked) = pinned {
                    if let Some(index) = index {
                        indexes.used(&mut reading, &mut asked, &index);
                    }
                    reading.pins.push(asked);
                }
            }
            None => reading.leave(origin, &name, "from a repository, a path or an address"),
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
        assert_eq!((reading.offered[0].name.as_str(), reading.left.len()), ("dev", 0));
        assert!(
            reading.kept.iter().any(|note| note.why.starts_with("the project's own code")),
            "{reading:?}"
        );
        assert!(!from_pipfile("Pipfile", "[packages\n").says_something());
        let broken = from_pipfile("Pipfile", "source = 3\n[packages]\ntorch = \"*\"\n");
        assert!(broken.left[0].why.starts_with("not sources of pipenv"), "{:?}", broken.left);
    }

    #[test]
    fn lock_of_pipenv_gives_releases() {
        let text = r#"{"_meta": {"pipfile-spec": 6, "requires": {"python_version": "3.10"},
                "sources": [{"name": "pypi", "url": "https://pypi.org/simple"},
                            {"name": "pytorch", "url": "https://download.pytorch.org/whl/cu121"},
                            {"name": "corp", "url": "https://wheels.example.com/simple"}]},
            "default": {"torch": {"index": "pytorch", "version": "==2.3.1+cu121", "hashes": []},
                        "Corp_Secret": {"index": "corp", "version": "==6.0"},
                        "own": {"path": ".", "version": "==6.0"}}, "develop": {"pytest": {"version": "==8.0"}}}"#;
        let reading = from_pipfile_lock("Pipfile.lock", text);
        assert_eq!(requirements(&reading.pins), ["corp-secret==6.0", "torch==2.3.1"]);
        assert_eq!(reading.pins[0].index.as_deref(), Some("corp"));
        assert_eq!(reading.indexes[0].url, "https://wheels.example.com/simple");
        assert_eq!(reading.pins[1].local.as_deref(), Some("cu121"));
        assert_eq!(reading.cuda[0].cuda.to_string(), "cu121");
        assert_eq!((reading.python.len(), reading.left.len()), (1, 1));
        assert!(from_pipfile_lock("Pipfile.lock", "{}").left[0].why.contains("format 0"));
    }
}

//! Locks of Python tools: uv.lock, poetry.lock, pylock.toml.

use serde::Deserialize;

use super::place::Origin;
use super::poetry_lock::PoetryLock;
use super::pylock::Pylock;
use super::reading::{Asked, Kind, PythonFact, Reading};
use super::requirement_line::{Line, line};
use super::uv_lock::UvLock;
use crate::model::local_version::LocalVersion;
use crate::model::marker::{holds, pythons};
use crate::model::versions::Machine;

/// Reads a uv.lock.
pub fn from_uv_lock(file: &str, text: &str, machine: Machine) -> Reading {
    let mut reading = Reading::of(file, Kind::Lock);
    let lock = match UvLock::parse(text) {
        Ok(lock) => lock,
        Err(why) => return Reading::unreadable(file, Kind::Lock, &why),
    };
    python(&mut reading, lock.requires_python.as_deref(), text);
    for package in lock.package {
        let origin = Origin::file(file);
        let here = package.markers.is_empty()
            || package.markers.iter().any(|marker| crate::model::marker::may_hold(marker, machine));
        let local = ["editable", "virtual", "directory", "git", "path"]
            .into_iter()
            .find(|key| package.source.contains_key(*key));
        match (local, &package.version) {
            (Some("git" | "path"), _) => {
                reading.leave(
                    origin,
                    &package.name,
                    "from a repository or a path: it has no file that a hash could pin",
                );
            }
            (None, Some(version)) if here => pin(&mut reading, &package.name, version, None, origin),
            // A part of the project itself, or a release for another platform.
            _ => {}
        }
    }
    reading
}

/// Reads a poetry.lock.
pub fn from_poetry_lock(file: &str, text: &str) -> Reading {
    let mut reading = Reading::of(file, Kind::Lock);
    let lock = match PoetryLock::parse(text) {
        Ok(lock) => lock,
        Err(why) => return Reading::unreadable(file, Kind::Lock, &why),
    };
    python(&mut reading, lock.python(), text);
    for package in lock.package {
        let origin = Origin::file(file);
        if package.left().is_some() {
            reading.leave(origin, &package.name, "from a repository, a path or an address");
            continue;
        }
        let markers = package.markers.as_ref();
        let marker = markers.and_then(|found| found.as_str().or_else(|| found.get("main")?.as_str()));
        pin(&mut reading, &package.name, &package.version, marker, origin);
    }
    reading
}

#[derive(Deserialize)]
struct PdmLock {
    #[serde(default)]
    metadata: toml::Table,
    #[serde(default)]
    package: Vec<PdmPackage>,
}

#[derive(Deserialize)]
struct PdmPackage {
    name: String,
    version: String,
    marker: Option<String>,
    #[serde(default)]
    groups: Vec<String>,
    /// Where it comes from, if not from an index.
    git: Option<String>,
    path: Option<String>,
    url: Option<String>,
}

/// Reads a pdm.lock: the releases of the default group.
pub fn from_pdm_lock(file: &str, text: &str) -> Reading {
    let lock: PdmLock = match toml::from_str(text) {
        Ok(lock) => lock,
        Err(error) => {
            let why = format!("not a lock of PDM: {}", error.message().trim());
            return Reading::unreadable(file, Kind::Lock, &why);
        }
    };
    let written = lock.metadata.get("lock_version").and_then(toml::Value::as_str).unwrap_or_default();
    if !written.starts_with("4.") {
        let why = format!("format `{written}` of PDM's lock: this envforge reads 4");
        return Reading::unreadable(file, Kind::Lock, &why);
    }
    let mut reading = Reading::of(file, Kind::Lock);
    let is_default = |package: &PdmPackage| {
        package.groups.is_empty() || package.groups.iter().any(|group| group == "default")
    };
    for package in lock.package.iter().filter(|package| is_default(package)) {
        let origin = Origin::file(file);
        if package.git.is_some() || package.path.is_some() || package.url.is_some() {
            reading.leave(origin, &package.name, "from a repository, a path or an address");
        } else {
            pin(&mut reading, &package.name, &package.version, package.marker.as_deref(), origin);
        }
    }
    reading
}

/// Reads a pylock.toml (PEP 751): what it lists is what is installed.
pub fn from_pylock(file: &str, text: &str) -> Reading {
    let mut reading = Reading::of(file, Kind::Lock);
    let lock = match Pylock::parse(text) {
        Ok(lock) => lock,
        Err(why) => return Reading::unreadable(file, Kind::Lock, &why),
    };
    python(&mut reading, lock.requires_python.as_deref(), text);
    for package in lock.packages {
        let origin = Origin::file(file);
        match package.version {
            Some(version) => pin(&mut reading, &package.name, &version, package.marker.as_deref(), origin),
            None => reading.leave(origin, &package.name, "without a version: from a repository or a folder"),
        }
    }
    reading
}

fn python(reading: &mut Reading, written: Option<&str>, text: &str) {
    let Some(written) = written else { return };
    if let Some(versions) = super::pythons::condition(written) {
        let origin = Origin::holding(&reading.file, text, written);
        reading.python.push(PythonFact { origin, versions, by: format!("requires-python = \"{written}\"") });
    }
}

/// Notes the release of a package.
pub(super) fn pin(reading: &mut Reading, name: &str, version: &str, marker: Option<&str>, origin: Origin) {
    let marker = marker.map(|marker| format!(" ; {marker}")).unwrap_or_default();
    match line(&format!("{name}=={version}{marker}"), &origin) {
        Line::Package(asked) => add(reading, *asked),
        Line::Wheel { .. } | Line::Not(_) => {
            reading.leave(origin, &format!("{name} {version}"), "not a release");
        }
    }
}

fn add(reading: &mut Reading, asked: Asked) {
    if !pythons().any(|python| {
        holds(&asked.marker, Machine::X86_64, python) || holds(&asked.marker, Machine::Aarch64, python)
    }) {
        return;
    }
    let without = |asked: &Asked| {
        asked.local.as_deref().is_some_and(|local| LocalVersion::read(local).other_accelerator.is_some())
    };
    // Builds of one release without CUDA and with it, for extras that exclude each other.
    if let Some(at) =
        reading.pins.iter().position(|pin| pin.name == asked.name && pin.versions == asked.versions)
    {
        if without(&reading.pins[at]) {
            reading.pins[at] = asked;
        } else if !without(&asked) && reading.pins[at].local != asked.local {
            let why = format!("the lock has it as {} as well, which is taken", reading.pins[at].written);
            reading.leave(asked.origin.clone(), &asked.written, why);
        }
        return;
    }
    let twice = reading.pins.iter().position(|pin| pin.name == asked.name && pin.versions != asked.versions);
    if let Some(at) = twice {
        let other = reading.pins.remove(at);
        let why = format!("the lock has it as {} as well: name one", other.versions);
        reading.leave(asked.origin.clone(), &asked.written, why);
        return;
    }
    reading.pins.push(asked);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pins(reading: &Reading) -> Vec<String> {
        reading.pins.iter().map(Asked::requirement).collect()
    }

    #[test]
    fn lock_of_uv_gives_the_releases_for_this_platform() {
        let text = r#"
version = 1
revision = 3
requires-python = ">=3.11"
[[package]]
name = "own"
version = "0.1.0"
source = { editable = "." }
[[package]]
name = "torch"
version = "2.7.1+cu128"
source = { registry = "https://download.pytorch.org/whl/cu128" }
resolution-markers = ["sys_platform == 'linux'"]
[[package]]
name = "torch"
version = "2.7.1"
source = { registry = "https://pypi.org/simple" }
resolution-markers = ["sys_platform == 'darwin'"]
[[package]]
name = "numpy"
version = "2.3.0"
source = { registry = "https://pypi.org/simple" }
"#;
        let reading = from_uv_lock("uv.lock", text, Machine::X86_64);
        assert_eq!(pins(&reading), ["torch==2.7.1", "numpy==2.3.0"]);
        assert_eq!(reading.pins[0].local.as_deref(), Some("cu128"));
        let newer = from_uv_lock("uv.lock", "version = 2\n", Machine::X86_64);
        assert!(newer.left[0].why.contains("format 2"), "{newer:?}");
    }

    #[test]
    fn other_locks_give_their_releases() {
        let text = "[[package]]\nname = \"torch\"\nversion = \"2.6.0\"\n[metadata]\nlock-version = \"2.1\"\npython-versions = \">=3.11,<3.14\"\n";
        let reading = from_poetry_lock("poetry.lock", text);
        assert_eq!(pins(&reading), ["torch==2.6.0"]);
        assert_eq!(reading.python.len(), 1);
        let text = "lock-version = \"1.0\"\n[[packages]]\nname = \"jax\"\nversion = \"0.6.0\"\n[[packages]]\nname = \"win\"\nversion = \"1\"\nmarker = \"sys_platform == 'win32'\"\n";
        let reading = from_pylock("pylock.toml", text);
        assert_eq!(pins(&reading), ["jax==0.6.0"]);
        assert!(from_pylock("pylock.toml", "lock-version = \"2.0\"\n").left[0].why.contains("format 2.0"));
        let text = "[metadata]\ngroups = [\"default\", \"dev\"]\nlock_version = \"4.5.0\"\n[[package]]\nname = \"torch\"\nversion = \"2.4.1\"\ngroups = [\"default\"]\n[[package]]\nname = \"pytest\"\nversion = \"8\"\ngroups = [\"dev\"]\n[[package]]\nname = \"clip\"\nversion = \"1.0\"\ngit = \"https://h.test/clip.git\"\ngroups = [\"default\"]\n";
        let reading = from_pdm_lock("pdm.lock", text);
        assert_eq!((pins(&reading), reading.left.len()), (vec!["torch==2.4.1".to_owned()], 1));
        assert!(
            from_pdm_lock("pdm.lock", "[metadata]\nlock_version = \"5\"\n").left[0]
                .why
                .contains("format `5`")
        );
        let text = "[[package]]\nname = \"torch\"\nversion = \"2.2.1+cu121\"\n[package.source]\ntype = \"url\"\nurl = \"https://download.pytorch.org/whl/cu121/torch-2.2.1%2Bcu121-cp310-cp310-linux_x86_64.whl\"\n[metadata]\nlock-version = \"2.0\"\n";
        let reading = from_poetry_lock("poetry.lock", text);
        assert_eq!(reading.pins[0].local.as_deref(), Some("cu121"));
    }
}

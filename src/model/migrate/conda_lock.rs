//! Locks of conda's tools: conda-lock.yml, pixi.lock, and lists of conda (`conda list --explicit`, `conda list --export`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::conda::{UNMAPPED, first_line, take};
use super::lock_selection::{LockSelection, Mismatches, Refused, SelectedPackage};
use super::locks::pin;
use super::place::Origin;
use super::reading::{Kind, Reading};
use crate::model::compat::Matrix;
use crate::model::counted::counted;
use crate::model::versions::Machine;

#[derive(Deserialize)]
struct CondaLock {
    version: u32,
    #[serde(default)]
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    manager: String,
    #[serde(default)]
    platform: String,
    #[serde(default)]
    url: String,
}

/// The platform of conda of a processor.
fn platform_of(machine: Machine) -> &'static str {
    if machine == Machine::Aarch64 { "linux-aarch64" } else { "linux-64" }
}

/// Reads a conda-lock.yml.
pub fn from_conda_lock(file: &str, text: &str, machine: Machine, matrix: &Matrix) -> Reading {
    let lock: CondaLock = match serde_saphyr::from_str(text) {
        Ok(lock) => lock,
        Err(error) => {
            return Reading::unreadable(
                file,
                Kind::Lock,
                &format!("not a lock of conda-lock: {}", first_line(&error.to_string())),
            );
        }
    };
    if lock.version != 1 {
        return Reading::unreadable(
            file,
            Kind::Lock,
            &format!("format {} of conda-lock: this envforge reads format 1", lock.version),
        );
    }
    let mut reading = Reading::of(file, Kind::Lock);
    let own = platform_of(machine);
    let is_here = |platform: &str| [own, ""].contains(&platform);
    if !lock.package.iter().any(|locked| is_here(&locked.platform)) {
        let others: BTreeSet<_> = lock.package.iter().map(|locked| locked.platform.as_str()).collect();
        let others: Vec<_> = others.into_iter().collect();
        let why = format!("it has no packages for {own}: it is for {}", others.join(", "));
        reading.leave(Origin::file(file), "the whole file", why);
    }
    for locked in lock.package.iter().filter(|locked| is_here(&locked.platform)) {
        let origin = Origin::holding(file, text, &format!("name: {}", locked.name));
        if locked.manager == "pip" {
            pin(&mut reading, &locked.name, &locked.version, None, origin);
        } else {
            let build = build_of(&locked.url).unwrap_or_default();
            let spec = format!("{}=={}={build}", locked.name, locked.version);
            conda(&mut reading, &spec, origin, matrix);
        }
    }
    reading
}

/// Takes a package of conda as a release of its Python package; libraries of conda are no packages of the index.
fn conda(reading: &mut Reading, spec: &str, origin: Origin, matrix: &Matrix) {
    let before = (reading.left.len(), reading.packages.len());
    take(reading, spec, origin, matrix);
    // Of the hundreds of libraries in such a lock, those without a Python package are conda's own.
    reading.left.truncate(before.0);
    reading.apt.clear();
    let asked: Vec<_> = reading.packages.drain(before.1..).collect();
    reading.pins.extend(asked);
}

/// The build in the name of a package's archive: `…/pytorch-2.3.1-py3.11_cuda12.1_0.conda`.
fn build_of(url: &str) -> Option<String> {
    let file = url.rsplit('/').next()?;
    let stem = file.strip_suffix(".conda").or_else(|| file.strip_suffix(".tar.bz2"))?;
    Some(stem.rsplit('-').next()?.to_owned())
}

#[derive(Deserialize)]
struct PixiLock {
    version: u32,
    #[serde(default)]
    packages: Vec<PixiPackage>,
    #[serde(default)]
    environments: BTreeMap<String, PixiEnvironment>,
}

#[derive(Deserialize)]
struct PixiEnvironment {
    /// The addresses of its packages, by platform.
    #[serde(default)]
    packages: BTreeMap<String, Vec<BTreeMap<String, serde_json::Value>>>,
}

impl PixiLock {
    /// Reads a pixi.lock, or returns why it cannot be read.
    fn parse(text: &str) -> Result<Self, String> {
        let lock: Self = serde_saphyr::from_str(text)
            .map_err(|error| format!("not a lock of pixi: {}", first_line(&error.to_string())))?;
        match lock.version {
            4..=6 => Ok(lock),
            other => Err(format!("format {other} of pixi's lock: this envforge reads 4 to 6")),
        }
    }
}

impl PixiEnvironment {
    /// The addresses of its packages for a platform.
    fn addresses(&self, platform: &str) -> BTreeSet<&str> {
        let entries = self.packages.get(platform).into_iter().flatten();
        entries.flat_map(|entry| entry.values().filter_map(serde_json::Value::as_str)).collect()
    }
}

/// The environment that is meant: the default one, unless another one alone has a build of conda with CUDA.
fn environment_of<'a>(lock: &'a PixiLock, platform: &str) -> Option<(&'a str, BTreeSet<&'a str>)> {
    let has_cuda = |addresses: &BTreeSet<&str>| {
        let of_build = |url: &&str| {
            spec_of(url, platform).is_some_and(|spec| spec.contains("=cuda") || spec.contains("_cuda"))
        };
        addresses.iter().any(of_build)
    };
    let all = || lock.environments.iter().map(|(name, one)| (name.as_str(), one.addresses(platform)));
    let own = all().find(|(name, _)| *name == "default");
    match &own {
        Some((_, addresses)) if has_cuda(addresses) => own,
        _ => all().find(|(_, addresses)| has_cuda(addresses)).or(own).or_else(|| all().next()),
    }
}

#[derive(Deserialize)]
struct PixiPackage {
    conda: Option<String>,
    pypi: Option<String>,
    name: Option<String>,
    version: Option<String>,
    kind: Option<String>,
    sha256: Option<String>,
}

impl PixiPackage {
    /// Whether it is a Python package of no index: a folder or a repository.
    fn is_from_elsewhere(&self) -> bool {
        self.pypi.as_ref().is_some_and(|address| !address.starts_with("http"))
    }
}

/// Reads a pixi.lock.
pub fn from_pixi_lock(file: &str, text: &str, machine: Machine, matrix: &Matrix) -> Reading {
    let lock = match PixiLock::parse(text) {
        Ok(lock) => lock,
        Err(why) => return Reading::unreadable(file, Kind::Lock, &why),
    };
    let mut reading = Reading::of(file, Kind::Lock);
    let platform = platform_of(machine);
    let meant = environment_of(&lock, platform);
    if let (Some((name, _)), true) = (&meant, lock.environments.len() > 1) {
        let others: Vec<_> =
            lock.environments.keys().filter(|other| other != name).map(String::as_str).collect();
        let why = format!("environments of pixi: `{name}` is taken");
        reading.leave(Origin::file(file), &others.join(", "), why);
    }
    let is_meant = |package: &PixiPackage| {
        let address = package.conda.as_deref().or(package.pypi.as_deref());
        let addresses =
            meant.as_ref().map(|(_, addresses)| addresses).filter(|addresses| !addresses.is_empty());
        addresses.is_none_or(|addresses| address.is_none_or(|address| addresses.contains(address)))
    };
    for package in lock.packages.iter().filter(|package| is_meant(package)) {
        take_package(&mut reading, package, text, (platform, matrix));
    }
    reading
}

/// Takes a package of a pixi.lock over.
fn take_package(
    reading: &mut Reading,
    package: &PixiPackage,
    text: &str,
    (platform, matrix): (&str, &Matrix),
) {
    let is_pypi = package.pypi.is_some() || package.kind.as_deref() == Some("pypi");
    let file = reading.file.clone();
    if let (true, Some(name), Some(version)) = (is_pypi, &package.name, &package.version) {
        pin(reading, name, version, None, Origin::holding(&file, text, &format!("name: {name}")));
    } else if let Some(url) = &package.conda {
        archive(reading, url, Origin::holding(&file, text, url), (platform, matrix));
    }
}

/// Returns the packages of an environment of a pixi.lock: the default one, or the only group that is requested.
pub(super) fn selected(
    text: &str,
    selection: &LockSelection<'_>,
    matrix: &Matrix,
) -> Result<Vec<SelectedPackage>, Refused> {
    let lock = PixiLock::parse(text).map_err(Refused::Unreadable)?;
    let platform = platform_of(selection.machine);
    let known: BTreeSet<String> = lock.environments.keys().cloned().collect();
    let name = selection.groups.first().map_or("default", String::as_str);
    let mut mismatches = Mismatches::default();
    mismatches.names("extra", selection.extras, &BTreeSet::new());
    // Environments are alternatives.
    mismatches.names("second environment", selection.groups.get(1..).unwrap_or_default(), &BTreeSet::new());
    let environment = lock.environments.get(name);
    match environment {
        None => mismatches.names("environment", &[name.to_owned()], &known),
        Some(environment) if !environment.packages.contains_key(platform) => {
            mismatches.platforms(environment.packages.keys().cloned().collect(), selection);
        }
        Some(_) => {}
    }
    mismatches.check()?;
    let addresses = environment.map(|environment| environment.addresses(platform)).unwrap_or_default();
    let is_meant = |package: &&PixiPackage| {
        let address = package.conda.as_deref().or(package.pypi.as_deref());
        address.is_some_and(|address| addresses.contains(address))
    };
    let mut found = Vec::new();
    for package in lock.packages.iter().filter(is_meant) {
        if let (Some(name), true) = (&package.name, package.is_from_elsewhere()) {
            let left = Some("it comes from a repository or a path");
            let hashes = BTreeSet::new();
            found.push(SelectedPackage { name: name.clone(), version: None, left, hashes });
            continue;
        }
        // One reading each: a reading has one release of a package.
        let mut reading = Reading::of("", Kind::Lock);
        take_package(&mut reading, package, "", (platform, matrix));
        found.extend(reading.pins.iter().filter_map(|pin| {
            let version = pin.versions.iter().next()?.version().to_string();
            // That of a package of conda is no hash of a wheel.
            let hashes = package.sha256.iter().filter(|_| package.pypi.is_some()).cloned().collect();
            Some(SelectedPackage { name: pin.name.clone(), version: Some(version), left: None, hashes })
        }));
    }
    Ok(found)
}

/// Takes the package over that an address of an archive names.
fn archive(reading: &mut Reading, url: &str, origin: Origin, (platform, matrix): (&str, &Matrix)) {
    if let Some(spec) = spec_of(url, platform) {
        conda(reading, &spec, origin, matrix);
    }
}

/// `pytorch==2.5.1=cuda126_py312h_201` of `…/linux-64/pytorch-2.5.1-cuda126_py312h_201.conda#hash`; `None`: for another platform.
fn spec_of(url: &str, platform: &str) -> Option<String> {
    if !(url.contains(&format!("/{platform}/")) || url.contains("/noarch/")) {
        return None;
    }
    let plain = url.split('#').next().unwrap_or_default();
    let name = plain.rsplit('/').next().unwrap_or_default();
    let stem = name.trim_end_matches(".conda").trim_end_matches(".tar.bz2");
    let mut parts = stem.rsplitn(3, '-');
    let (build, version, name) = (parts.next()?, parts.next()?, parts.next()?);
    Some(format!("{name}=={version}={build}"))
}

/// Whether a text is a list of conda's addresses: a line is `@EXPLICIT`.
pub fn is_conda_explicit(text: &str) -> bool {
    text.lines().any(|line| line.trim() == "@EXPLICIT")
}

/// Reads such a list.
pub fn from_conda_explicit(file: &str, text: &str, machine: Machine, matrix: &Matrix) -> Reading {
    let mut reading = Reading::of(file, Kind::Lock);
    let mut others = Vec::new();
    for (at, line) in text.lines().map(str::trim).enumerate() {
        if line.is_empty() || line.starts_with(['#', '@']) {
            continue;
        }
        let Some(spec) = spec_of(line, platform_of(machine)) else {
            let why = format!("not the address of a package for {}", platform_of(machine));
            reading.leave(Origin::line(file, at + 1), line, why);
            continue;
        };
        listed(&mut reading, &spec, Origin::line(file, at + 1), &mut others, matrix);
    }
    end_of_list(&mut reading, &others);
    reading
}

/// Takes a package of a list over; the names that the table does not know are gathered: they are hundreds of libraries.
fn listed(reading: &mut Reading, spec: &str, origin: Origin, others: &mut Vec<String>, matrix: &Matrix) {
    let before = reading.left.len();
    take(reading, spec, origin, matrix);
    if reading.left.len() > before && reading.left[before].why == UNMAPPED {
        reading.left.truncate(before);
        others.extend(spec.split('=').next().map(str::to_owned));
    }
}

/// Ends a list: its packages are releases, and the names that are not known are one line.
fn end_of_list(reading: &mut Reading, others: &[String]) {
    reading.pins.append(&mut reading.packages);
    if !others.is_empty() {
        let text = format!("{}: {}", counted(others.len(), "package"), others.join(", "));
        let why = "the table of conda's names knows none of them on the package index: libraries of conda need no entry";
        reading.leave(Origin::file(&reading.file.clone()), &text, why);
    }
}

/// Whether a text is what `conda list --export` prints: lines `name=version=build`, behind a comment that names the command.
pub fn is_conda_export(text: &str) -> bool {
    let is_entry = |line: &str| {
        let parts: Vec<_> = line.split('=').collect();
        let is_plain = |part: &&str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-+!".contains(c))
        };
        // `torch>=2.0,!=2.1` has as many signs.
        parts.len() == 3 && parts.iter().all(is_plain) && parts[1].starts_with(|c: char| c.is_ascii_digit())
    };
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_named = lines.clone().any(|line| line.starts_with('#') && line.contains("conda create --name"));
    let entries = || lines.clone().filter(|line| !line.starts_with('#'));
    (is_named || entries().count() > 0) && entries().all(is_entry) && lines.any(|line| !line.starts_with('#'))
}

/// Reads such a list.
pub fn from_conda_export(file: &str, text: &str, matrix: &Matrix) -> Reading {
    let mut reading = Reading::of(file, Kind::Lock);
    let mut others = Vec::new();
    for (at, line) in text.lines().map(str::trim).enumerate() {
        let origin = Origin::line(file, at + 1);
        let mut parts = line.splitn(3, '=');
        let (Some(name), Some(version), Some(build)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if build.starts_with("pypi") {
            pin(&mut reading, name, version, None, origin);
        } else {
            listed(&mut reading, &format!("{name}=={version}={build}"), origin, &mut others, matrix);
        }
    }
    end_of_list(&mut reading, &others);
    reading
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pins(reading: &Reading) -> Vec<String> {
        reading.pins.iter().map(super::super::reading::Asked::requirement).collect()
    }

    #[test]
    fn locks_of_conda_give_releases_python_and_cuda() {
        let text = "version: 1\npackage:\n- name: pytorch\n  version: 2.3.1\n  manager: conda\n  platform: linux-64\n  url: https://conda.anaconda.org/pytorch/linux-64/pytorch-2.3.1-py3.11_cuda12.1_cudnn8.9.2_0.tar.bz2\n- name: python\n  version: 3.11.9\n  manager: conda\n  platform: linux-64\n- name: libzlib\n  version: 1.3.1\n  manager: conda\n  platform: linux-64\n- name: einops\n  version: 0.8.0\n  manager: pip\n  platform: linux-64\n- name: pytorch\n  version: 2.3.0\n  manager: conda\n  platform: osx-arm64\n";
        let reading =
            from_conda_lock("conda-lock.yml", text, Machine::X86_64, crate::model::compat::embedded());
        assert_eq!(pins(&reading), ["torch==2.3.1", "einops==0.8.0"]);
        assert_eq!(reading.cuda[0].cuda.to_string(), "cu121");
        assert_eq!(reading.python[0].versions.to_string(), "==3.11.*");
        assert!(reading.left.is_empty() && reading.packages.is_empty());
        assert!(
            from_conda_lock("c", "version: 2\n", Machine::X86_64, crate::model::compat::embedded()).left[0]
                .why
                .contains("format 2")
        );
    }

    #[test]
    fn lock_of_pixi_gives_releases() {
        let text = "version: 6\nenvironments: {}\npackages:\n- conda: https://conda.anaconda.org/conda-forge/linux-64/pytorch-2.5.1-cuda126_py312h_201.conda\n- conda: https://conda.anaconda.org/conda-forge/osx-arm64/pytorch-2.5.0-cpu_0.conda\n- pypi: https://files.pythonhosted.org/packages/einops-0.8.0-py3-none-any.whl\n  name: einops\n  version: 0.8.0\n";
        let reading = from_pixi_lock("pixi.lock", text, Machine::X86_64, crate::model::compat::embedded());
        assert_eq!(pins(&reading), ["torch==2.5.1", "einops==0.8.0"]);
        assert_eq!(reading.cuda[0].cuda.to_string(), "cu126");
    }

    #[test]
    fn exported_list_gives_releases_python_and_cuda() {
        let text = "# $ conda create --name <env> --file <this file>\n# platform: linux-64\n_libgcc_mutex=0.1=main\npython=3.11.8=h955ad1f_0\npytorch=2.2.1=py3.11_cuda12.1_cudnn8.9.2_0\nlibzlib=1.3.1=h4_0\neinops=0.7.0=pypi_0\n";
        assert!(is_conda_export(text));
        for other in ["torch>=2.0,!=2.1.0,<2.3\n", "torch==2.3.0\n", "# a list\n", "", "torch\nnumpy=1=2\n"] {
            assert!(!is_conda_export(other), "{other}");
        }
        let reading = from_conda_export("spec.txt", text, crate::model::compat::embedded());
        assert_eq!(pins(&reading), ["einops==0.7.0", "torch==2.2.1"]);
        assert_eq!(reading.cuda[0].cuda.to_string(), "cu121");
        assert_eq!(reading.python[0].versions.to_string(), "==3.11.*");
        assert_eq!(reading.left[0].written, "1 package: libzlib");
    }

    #[test]
    fn locks_of_another_processor_and_of_several_environments() {
        let text = "version: 1\npackage:\n- name: pytorch\n  version: 2.5.1\n  manager: conda\n  platform: linux-aarch64\n  url: https://c.test/conda-forge/linux-aarch64/pytorch-2.5.1-cuda126_py311_0.conda\n";
        let reading =
            from_conda_lock("conda-lock.yml", text, Machine::Aarch64, crate::model::compat::embedded());
        assert_eq!(pins(&reading), ["torch==2.5.1"]);
        let reading =
            from_conda_lock("conda-lock.yml", text, Machine::X86_64, crate::model::compat::embedded());
        assert!(
            reading.left[0].why.contains("no packages for linux-64: it is for linux-aarch64"),
            "{reading:?}"
        );
        let entry = |build: &str| format!("https://c.test/conda-forge/linux-64/pytorch-2.6.0-{build}.conda");
        let environment = |name: &str, build: &str| {
            format!("  {name}:\n    packages:\n      linux-64:\n      - conda: {}\n", entry(build))
        };
        let text = format!(
            "version: 6\nenvironments:\n{}{}packages:\n- conda: {}\n- conda: {}\n",
            environment("default", "cpu_py311_0"),
            environment("gpu", "cuda126_py311_0"),
            entry("cpu_py311_0"),
            entry("cuda126_py311_0"),
        );
        let reading = from_pixi_lock("pixi.lock", &text, Machine::X86_64, crate::model::compat::embedded());
        assert_eq!(reading.pins[0].written, "pytorch==2.6.0=cuda126_py311_0");
        assert_eq!((reading.pins.len(), reading.left[0].written.as_str()), (1, "default"));
    }

    #[test]
    fn list_of_addresses_gives_releases_python_and_cuda() {
        let text = "# platform: linux-64\n@EXPLICIT\nhttps://conda.anaconda.org/conda-forge/linux-64/python-3.10.14-hd12c33a_0_cpython.conda#01\nhttps://conda.anaconda.org/pytorch/linux-64/pytorch-2.1.2-py3.10_cuda11.8_cudnn8.7.0_0.tar.bz2\nhttps://conda.anaconda.org/conda-forge/linux-64/libzlib-1.3.1-h4ab18f5_1.conda\n";
        assert!(is_conda_explicit(text) && !is_conda_explicit("torch\n"));
        let reading =
            from_conda_explicit("spec-file.txt", text, Machine::X86_64, crate::model::compat::embedded());
        assert_eq!(pins(&reading), ["torch==2.1.2"]);
        assert_eq!(reading.cuda[0].cuda.to_string(), "cu118");
        assert_eq!(reading.python[0].versions.to_string(), "==3.10.*");
        assert_eq!(reading.left[0].written, "1 package: libzlib");
        let text = "@EXPLICIT\nhttps://c.test/conda-forge/linux-64/pytorch-2.5.1-cpu_mkl_py310_100.conda\nhttps://c.test/conda-forge/osx-arm64/x-1-0.conda\nhttps://c.test/conda-forge/linux-64/ffmpeg-7.1-h0_0.conda\n";
        let reading =
            from_conda_explicit("spec-file.txt", text, Machine::X86_64, crate::model::compat::embedded());
        assert!(
            reading.left[0].why.contains("without CUDA") && reading.left.len() == 2,
            "{:?}",
            reading.left
        );
        assert_eq!(reading.apt[0].1, "ffmpeg");
    }
}

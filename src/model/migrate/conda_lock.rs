//! Locks of conda's tools: conda-lock.yml, pixi.lock, and lists of addresses (`conda list --explicit`).

use serde::Deserialize;

use super::conda::{UNMAPPED, first_line, take};
use super::locks::pin;
use super::place::Origin;
use super::reading::{Kind, Reading};
use crate::model::compat::Matrix;
use crate::model::counted::counted;

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

/// Reads a conda-lock.yml, for linux-64.
pub fn from_conda_lock(file: &str, text: &str, matrix: &Matrix) -> Reading {
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
    for locked in lock.package.iter().filter(|locked| ["linux-64", ""].contains(&locked.platform.as_str())) {
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
}

#[derive(Deserialize)]
struct PixiPackage {
    conda: Option<String>,
    pypi: Option<String>,
    name: Option<String>,
    version: Option<String>,
    kind: Option<String>,
}

/// Reads a pixi.lock, for linux-64.
pub fn from_pixi_lock(file: &str, text: &str, matrix: &Matrix) -> Reading {
    let lock: PixiLock = match serde_saphyr::from_str(text) {
        Ok(lock) => lock,
        Err(error) => {
            return Reading::unreadable(
                file,
                Kind::Lock,
                &format!("not a lock of pixi: {}", first_line(&error.to_string())),
            );
        }
    };
    if !(4..=6).contains(&lock.version) {
        return Reading::unreadable(
            file,
            Kind::Lock,
            &format!("format {} of pixi's lock: this envforge reads 4 to 6", lock.version),
        );
    }
    let mut reading = Reading::of(file, Kind::Lock);
    for package in &lock.packages {
        let is_pypi = package.pypi.is_some() || package.kind.as_deref() == Some("pypi");
        if let (true, Some(name), Some(version)) = (is_pypi, &package.name, &package.version) {
            let origin = Origin::holding(file, text, &format!("name: {name}"));
            pin(&mut reading, name, version, None, origin);
            continue;
        }
        let Some(url) = &package.conda else { continue };
        archive(&mut reading, url, Origin::holding(file, text, url), matrix);
    }
    reading
}

/// Takes the package over that an address of an archive names.
fn archive(reading: &mut Reading, url: &str, origin: Origin, matrix: &Matrix) {
    if let Some(spec) = spec_of(url) {
        conda(reading, &spec, origin, matrix);
    }
}

/// `pytorch==2.5.1=cuda126_py312h_201` of `…/linux-64/pytorch-2.5.1-cuda126_py312h_201.conda#hash`; `None`: for another platform.
fn spec_of(url: &str) -> Option<String> {
    if !(url.contains("/linux-64/") || url.contains("/noarch/")) {
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

/// Reads such a list, for linux-64.
pub fn from_conda_explicit(file: &str, text: &str, matrix: &Matrix) -> Reading {
    let mut reading = Reading::of(file, Kind::Lock);
    let mut others = Vec::new();
    for (at, line) in text.lines().map(str::trim).enumerate() {
        if line.is_empty() || line.starts_with(['#', '@']) {
            continue;
        }
        let Some(spec) = spec_of(line) else {
            reading.leave(Origin::line(file, at + 1), line, "not the address of a package for linux-64");
            continue;
        };
        let before = reading.left.len();
        take(&mut reading, &spec, Origin::line(file, at + 1), matrix);
        // Hundreds of libraries have no name on the package index: they are one line.
        if reading.left.len() > before && reading.left[before].why == UNMAPPED {
            reading.left.truncate(before);
            others.extend(spec.split('=').next().map(str::to_owned));
        }
    }
    reading.pins.append(&mut reading.packages);
    if !others.is_empty() {
        let text = format!("{}: {}", counted(others.len(), "package"), others.join(", "));
        let why = "the table of conda's names knows none of them on the package index: libraries of conda need no entry";
        reading.leave(Origin::file(file), &text, why);
    }
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
        let reading = from_conda_lock("conda-lock.yml", text, Matrix::current());
        assert_eq!(pins(&reading), ["torch==2.3.1", "einops==0.8.0"]);
        assert_eq!(reading.cuda[0].cuda.to_string(), "cu121");
        assert_eq!(reading.python[0].versions.to_string(), "==3.11.*");
        assert!(reading.left.is_empty() && reading.packages.is_empty());
        assert!(from_conda_lock("c", "version: 2\n", Matrix::current()).left[0].why.contains("format 2"));
    }

    #[test]
    fn lock_of_pixi_gives_releases() {
        let text = "version: 6\nenvironments: {}\npackages:\n- conda: https://conda.anaconda.org/conda-forge/linux-64/pytorch-2.5.1-cuda126_py312h_201.conda\n- conda: https://conda.anaconda.org/conda-forge/osx-arm64/pytorch-2.5.0-cpu_0.conda\n- pypi: https://files.pythonhosted.org/packages/einops-0.8.0-py3-none-any.whl\n  name: einops\n  version: 0.8.0\n";
        let reading = from_pixi_lock("pixi.lock", text, Matrix::current());
        assert_eq!(pins(&reading), ["torch==2.5.1", "einops==0.8.0"]);
        assert_eq!(reading.cuda[0].cuda.to_string(), "cu126");
    }

    #[test]
    fn list_of_addresses_gives_releases_python_and_cuda() {
        let text = "# platform: linux-64\n@EXPLICIT\nhttps://conda.anaconda.org/conda-forge/linux-64/python-3.10.14-hd12c33a_0_cpython.conda#01\nhttps://conda.anaconda.org/pytorch/linux-64/pytorch-2.1.2-py3.10_cuda11.8_cudnn8.7.0_0.tar.bz2\nhttps://conda.anaconda.org/conda-forge/linux-64/libzlib-1.3.1-h4ab18f5_1.conda\n";
        assert!(is_conda_explicit(text) && !is_conda_explicit("torch\n"));
        let reading = from_conda_explicit("spec-file.txt", text, Matrix::current());
        assert_eq!(pins(&reading), ["torch==2.1.2"]);
        assert_eq!(reading.cuda[0].cuda.to_string(), "cu118");
        assert_eq!(reading.python[0].versions.to_string(), "==3.10.*");
        assert_eq!(reading.left[0].written, "1 package: libzlib");
        let text = "@EXPLICIT\nhttps://c.test/conda-forge/linux-64/pytorch-2.5.1-cpu_mkl_py310_100.conda\nhttps://c.test/conda-forge/osx-arm64/x-1-0.conda\nhttps://c.test/conda-forge/linux-64/ffmpeg-7.1-h0_0.conda\n";
        let reading = from_conda_explicit("spec-file.txt", text, Matrix::current());
        assert!(
            reading.left[0].why.contains("without CUDA") && reading.left.len() == 2,
            "{:?}",
            reading.left
        );
        assert_eq!(reading.apt[0].1, "ffmpeg");
    }
}

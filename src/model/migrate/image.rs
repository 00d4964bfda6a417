//! An image, by the names of its files and its configuration: what is installed in it. Nothing of it is run.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;

use super::conda::take;
use super::conda_spec::cuda_of;
use super::locks::pin;
use super::place::Origin;
use super::pythons::exact;
use super::reading::{CudaFact, Kind, Note, PythonFact, Reading, Strength};
use crate::model::compat::Matrix;

/// The records and variables of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageContent {
    /// Paths of the folders and files that say what is installed: see [`is_record`].
    pub records: BTreeSet<String>,
    /// The variables of its configuration: `CUDA_VERSION=12.4.1`.
    pub variables: Vec<String>,
}

/// Whether a path in an image says that something is installed: the folder of a Python distribution, the mark that it was asked for, a
/// record of conda, the compiler of CUDA.
pub fn is_record(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let (name, parent) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_of_python = |folder: &str| folder == "site-packages" || folder == "dist-packages";
    let is_metadata = ["METADATA", "REQUESTED"].contains(&name) && parent.ends_with(".dist-info");
    let is_egg = name.ends_with(".egg-info") && is_of_python(parent);
    let is_conda = parent == "conda-meta" && Utf8Path::new(name).extension() == Some("json");
    let is_compiler = name == "nvcc" && parent == "bin";
    is_metadata || is_egg || is_conda || is_compiler
}

/// A Python distribution in a folder of packages.
struct Distribution<'a> {
    /// The folder: `usr/lib/python3.11/site-packages`.
    folder: &'a str,
    name: &'a str,
    version: &'a str,
    is_requested: bool,
}

/// The distributions that the records name.
fn distributions(content: &ImageContent) -> Vec<Distribution<'_>> {
    let each = content.records.iter().filter_map(|path| {
        let plain = path.strip_suffix("/METADATA").unwrap_or(path);
        let (folder, name) = plain.rsplit_once('/')?;
        let stem = name.strip_suffix(".dist-info").or_else(|| name.strip_suffix(".egg-info"))?;
        let mut parts = stem.split('-');
        let (name, version) = (parts.next()?, parts.next()?);
        let is_requested = content.records.contains(&format!("{plain}/REQUESTED"));
        Some(Distribution { folder, name, version, is_requested })
    });
    each.collect()
}

/// Reads an image. Of several Pythons the one with most packages is meant.
pub fn from_image(file: &str, content: &ImageContent, matrix: &Matrix) -> Reading {
    let mut reading = Reading::of(file, Kind::Image);
    surroundings(&mut reading, content);
    let all = distributions(content);
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for one in &all {
        *folders.entry(one.folder).or_default() += 1;
    }
    let meant = folders.iter().max_by_key(|(_, count)| **count).map(|(folder, _)| *folder);
    for (folder, _) in folders.iter().filter(|(folder, _)| Some(**folder) != meant) {
        let why = "another Python of the image, which has fewer packages";
        reading.leave(Origin::file(file), folder, why);
    }
    let Some(meant) = meant else { return reading };
    python_of(&mut reading, meant);
    let own: Vec<_> = all.iter().filter(|one| one.folder == meant).collect();
    let some_requested = own.iter().any(|one| one.is_requested);
    for one in &own {
        pin(&mut reading, one.name, one.version, None, Origin::file(file));
    }
    if some_requested {
        // pip marks what was asked for; the rest are dependencies, which the lock chooses.
        let requested: BTreeSet<_> =
            own.iter().filter(|one| one.is_requested).map(|one| plain(one.name)).collect();
        let (asked, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut reading.pins).into_iter().partition(|pin| requested.contains(&pin.name));
        reading.packages = asked;
        if !others.is_empty() {
            let why = "dependencies of the others: the lock chooses them again";
            reading.keep(Origin::file(file), &format!("{} packages", others.len()), why);
        }
    }
    conda_records(&mut reading, content, matrix);
    reading
}

fn plain(name: &str) -> String {
    name.to_ascii_lowercase().replace(['_', '.'], "-")
}

/// The CUDA and the compiler that surround the packages.
fn surroundings(reading: &mut Reading, content: &ImageContent) {
    let origin = Origin::file(&reading.file);
    for line in &content.variables {
        let Some((name, value)) = line.split_once('=') else { continue };
        if name == "CUDA_VERSION"
            && let Some(cuda) = cuda_of(value)
        {
            let (origin, by) = (origin.clone(), line.clone());
            reading.cuda.push(CudaFact { origin, cuda, strength: Strength::Surroundings, by });
        }
    }
    if let Some(path) = content.records.iter().find(|path| path.ends_with("bin/nvcc")) {
        let why = "a compiler of CUDA: the flavour `devel` has it".to_owned();
        reading.devel = Some(Note { origin, written: format!("/{path}"), why });
    }
}

/// The Python of `usr/lib/python3.11/site-packages`.
fn python_of(reading: &mut Reading, folder: &str) {
    let mut parts = folder.split('/');
    let found = parts.find_map(|part| exact(part.strip_prefix("python")?));
    let (origin, by) = (Origin::file(&reading.file), format!("/{folder}"));
    reading.python.extend(found.map(|versions| PythonFact { origin, versions, by }));
}

/// Conda's records name the build of PyTorch, and so its CUDA; packages are those of Python.
fn conda_records(reading: &mut Reading, content: &ImageContent, matrix: &Matrix) {
    let mut own = Reading::of(&reading.file, Kind::Image);
    for path in content.records.iter().filter(|path| path.contains("/conda-meta/")) {
        let stem = path.rsplit('/').next().unwrap_or_default().trim_end_matches(".json");
        let mut parts = stem.rsplitn(3, '-');
        if let (Some(build), Some(version), Some(name)) = (parts.next(), parts.next(), parts.next()) {
            take(&mut own, &format!("{name}=={version}={build}"), Origin::file(&reading.file), matrix);
        }
    }
    reading.cuda.extend(own.cuda);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(records: &[&str], variables: &[&str]) -> ImageContent {
        ImageContent {
            records: records.iter().map(|path| (*path).to_owned()).collect(),
            variables: variables.iter().map(|line| (*line).to_owned()).collect(),
        }
    }

    fn requirements(list: &[super::super::reading::Asked]) -> Vec<String> {
        list.iter().map(super::super::reading::Asked::requirement).collect()
    }

    #[test]
    fn records_are_those_of_packages_conda_and_the_compiler() {
        for (path, expected) in [
            ("usr/lib/python3.11/site-packages/torch-2.3.1+cu121.dist-info/METADATA", true),
            ("usr/lib/python3.11/site-packages/torch-2.3.1+cu121.dist-info/REQUESTED", true),
            ("opt/conda/lib/python3.10/site-packages/torch-2.3.1-py3.10.egg-info", true),
            ("opt/conda/conda-meta/pytorch-2.3.1-py3.10_cuda12.1_cudnn8_0.json", true),
            ("usr/local/cuda-12.4/bin/nvcc", true),
            ("usr/lib/python3.11/site-packages/torch/METADATA", false),
            ("usr/share/doc/nvcc", false),
        ] {
            assert_eq!(is_record(path), expected, "{path}");
        }
    }

    #[test]
    fn packages_that_were_asked_for_count_and_others_are_the_locks() {
        let here = "usr/lib/python3.10/site-packages";
        let records: Vec<String> = [
            "torch-2.3.1+cu121.dist-info/METADATA",
            "torch-2.3.1+cu121.dist-info/REQUESTED",
            "Flask_Cors-4.0.0.dist-info/METADATA",
            "Flask_Cors-4.0.0.dist-info/REQUESTED",
            "filelock-3.13.1.dist-info/METADATA",
        ]
        .iter()
        .map(|name| format!("{here}/{name}"))
        .chain(["usr/lib/python3/dist-packages/six-1.16.dist-info/METADATA".to_owned()])
        .collect();
        let records: Vec<&str> = records.iter().map(String::as_str).collect();
        let reading = from_image(
            "i.tar",
            &content(&records, &["CUDA_VERSION=12.4.1", "A=1"]),
            crate::model::compat::embedded(),
        );
        assert_eq!(requirements(&reading.packages), ["flask-cors==4.0.0", "torch==2.3.1"]);
        assert_eq!(reading.packages[1].local.as_deref(), Some("cu121"));
        assert_eq!(reading.python[0].versions.to_string(), "==3.10.*");
        assert_eq!((reading.cuda[0].cuda.to_string().as_str(), reading.pins.len()), ("cu124", 0));
        assert_eq!((reading.left.len(), reading.kept[0].written.as_str()), (1, "1 packages"));
    }

    #[test]
    fn all_packages_count_where_none_is_marked_and_conda_says_the_cuda() {
        let records = [
            "opt/conda/lib/python3.11/site-packages/torch-2.3.1-py3.11.egg-info",
            "opt/conda/lib/python3.11/site-packages/numpy-1.26.4.dist-info/METADATA",
            "opt/conda/conda-meta/pytorch-2.3.1-py3.11_cuda12.1_cudnn8.9.2_0.json",
            "usr/local/cuda/bin/nvcc",
        ];
        let reading = from_image("i.tar", &content(&records, &[]), crate::model::compat::embedded());
        assert_eq!(requirements(&reading.pins), ["numpy==1.26.4", "torch==2.3.1"]);
        assert_eq!(reading.cuda[0].cuda.to_string(), "cu121");
        assert!(reading.devel.is_some() && reading.packages.is_empty());
        assert!(
            !from_image("i.tar", &content(&[], &["A=1"]), crate::model::compat::embedded()).says_something()
        );
    }
}

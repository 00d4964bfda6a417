//! Conda's environment.yml and pixi.toml. Names of conda are those of the matrix's table; others are not guessed.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Table, Value};

use super::conda_spec::{CondaSpec, cuda_of};
use super::place::Origin;
use super::pythons::{condition, exact};
use super::reading::{Asked, CudaFact, Kind, Note, Offered, PythonFact, Reading, Strength};
use super::requirement_line::{Line, line};
use super::requirements::take_line;
use crate::model::compat::Matrix;
use crate::model::project::secret::secret_in;

#[derive(Deserialize)]
struct Environment {
    #[serde(default)]
    dependencies: Vec<Dependency>,
    #[serde(default)]
    variables: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Dependency {
    Conda(String),
    Other(serde_json::Map<String, serde_json::Value>),
    Neither(serde_json::Value),
}

/// Reads an environment.yml.
pub fn from_environment(file: &str, text: &str, matrix: &Matrix) -> Reading {
    let mut reading = Reading::of(file, Kind::Environment);
    let environment: Environment = match serde_saphyr::from_str(text) {
        Ok(environment) => environment,
        Err(error) => {
            let why = format!("not an environment of conda: {}", first_line(&error.to_string()));
            reading.leave(Origin::file(file), "the whole file", why);
            return reading;
        }
    };
    for dependency in toolkit_first(environment.dependencies) {
        match dependency {
            Dependency::Conda(written) => {
                let origin = Origin::holding(file, text, &written);
                take(&mut reading, &written, origin, matrix);
            }
            Dependency::Other(table) => {
                for (key, value) in table {
                    mapped(&mut reading, &key, &value, text, matrix);
                }
            }
            Dependency::Neither(value) => {
                let written = value.to_string();
                reading.leave(Origin::holding(file, text, &written), &written, "not a dependency");
            }
        }
    }
    for (name, value) in environment.variables {
        let origin = Origin::holding(file, text, &name);
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let written = format!("{name}={value}");
        let why = match secret_in(&written) {
            Some(_) => "a secret, which would be in the image for everybody",
            None => "add it to [variables]",
        };
        reading.leave(origin, &written, why);
    }
    reading.is_readable_by_lock = false;
    reading
}

/// The dependencies with the toolkit before those whose names depend on its CUDA.
fn toolkit_first(mut all: Vec<Dependency>) -> Vec<Dependency> {
    all.sort_by_key(|one| match one {
        Dependency::Conda(written) => !is_toolkit(written),
        Dependency::Other(_) | Dependency::Neither(_) => true,
    });
    all
}

fn is_toolkit(written: &str) -> bool {
    CondaSpec::read(written).is_some_and(|spec| TOOLKIT.contains(&spec.name.as_str()))
}

/// Reads `pip: […]`, and `python: 3.11`, which people write for `python=3.11`.
fn mapped(reading: &mut Reading, key: &str, value: &serde_json::Value, text: &str, matrix: &Matrix) {
    let plain = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value.as_array() {
        Some(list) if key == "pip" => {
            for entry in list {
                let written = plain(entry);
                let origin = Origin::holding(&reading.file, text, &written);
                take_line(reading, written.trim(), &origin);
            }
        }
        Some(_) => {
            let origin = Origin::holding(&reading.file, text, key);
            reading.leave(origin, &format!("{key}: {value}"), "a list of another program than pip");
        }
        None => {
            let origin = Origin::holding(&reading.file, text, key);
            take(reading, &format!("{key}={}", plain(value)), origin, matrix);
        }
    }
}

/// Packages of conda that are the toolkit or parts of it: their version is the CUDA.
const TOOLKIT: [&str; 11] = [
    "pytorch-cuda",
    "cudatoolkit",
    "cuda-version",
    "cuda-toolkit",
    "cuda",
    "cuda-runtime",
    "cuda-libraries",
    "cudatoolkit-dev",
    "cuda-nvcc",
    "cuda-compiler",
    "cuda-libraries-dev",
];
/// Those of them that compile.
const COMPILERS: [&str; 6] =
    ["cudatoolkit-dev", "cuda-nvcc", "cuda-toolkit", "cuda", "cuda-compiler", "cuda-libraries-dev"];
/// Programs that every image has, or that only conda needs.
const EVERYWHERE: [&str; 12] = [
    "conda",
    "mamba",
    "micromamba",
    "pip",
    "setuptools",
    "wheel",
    "openssl",
    "ca-certificates",
    "libgcc-ng",
    "libstdcxx-ng",
    "_libgcc_mutex",
    "_openmp_mutex",
];
/// Programs of conda's channels and the distribution's package of the same program.
const PROGRAMS: [(&str, &str); 14] = [
    ("ffmpeg", "ffmpeg"),
    ("git", "git"),
    ("git-lfs", "git-lfs"),
    ("cmake", "cmake"),
    ("ninja", "ninja-build"),
    ("make", "make"),
    ("graphviz", "graphviz"),
    ("wget", "wget"),
    ("curl", "curl"),
    ("tmux", "tmux"),
    ("htop", "htop"),
    ("vim", "vim"),
    ("rsync", "rsync"),
    ("aria2", "aria2"),
];

/// Why a package of conda is not taken over.
pub(super) const UNMAPPED: &str =
    "the table of conda's names does not know its name on the package index: add it to `python` by that name";

/// Takes a dependency of conda over.
pub(super) fn take(reading: &mut Reading, written: &str, origin: Origin, matrix: &Matrix) {
    let Some(spec) = CondaSpec::read(written) else {
        return reading.leave(origin, written, "not a dependency of conda");
    };
    let name = spec.name.as_str();
    if name == "python" {
        let versions = exact(spec.version.trim_start_matches('=')).or_else(|| condition(&spec.version));
        return match versions {
            Some(versions) => reading.python.push(PythonFact { origin, versions, by: written.to_owned() }),
            None => reading.leave(origin, written, "not a condition on Python"),
        };
    }
    if TOOLKIT.contains(&name) {
        if COMPILERS.contains(&name) {
            let why = "a compiler of CUDA: the flavour `devel` has it".to_owned();
            reading.devel.get_or_insert(Note { origin: origin.clone(), written: written.to_owned(), why });
        }
        match spec.cuda() {
            Some(cuda) => {
                let strength = if name == "pytorch-cuda" { Strength::Index } else { Strength::Toolkit };
                reading.cuda.push(CudaFact { origin, cuda, strength, by: written.to_owned() });
            }
            None => reading.keep(origin, written, "part of the stack"),
        }
        return;
    }
    if PARTS.contains(&name)
        || (name.starts_with("cuda-") || name.starts_with("libcu")) && !is_known(name, matrix)
    {
        return reading.keep(origin, written, "part of the stack, in the version that fits it");
    }
    if name == "cpuonly" || spec.build.contains("cpu") {
        return reading.leave(origin, written, "a build without CUDA: the image is for NVIDIA GPUs");
    }
    if EVERYWHERE.contains(&name) {
        return reading.keep(origin, written, "part of every image");
    }
    if ["gcc", "gxx", "gcc_linux-64", "gxx_linux-64", "compilers", "c-compiler", "cxx-compiler"]
        .contains(&name)
    {
        let why = "a compiler: the flavour `devel` has one that fits its CUDA".to_owned();
        reading.devel.get_or_insert(Note { origin, written: written.to_owned(), why });
        return;
    }
    if let Some((_, apt)) = PROGRAMS.iter().find(|(conda, _)| *conda == name) {
        return reading.apt.push((origin, (*apt).to_owned()));
    }
    let Some(row) = matrix.conda_names.iter().find(|row| row.name == name) else {
        return reading.leave(origin, written, UNMAPPED);
    };
    if let Some(note) = &row.note {
        return reading.leave(origin, written, note.as_str());
    }
    if let Some(cuda) = spec.cuda_of_build() {
        let by = written.to_owned();
        let strength = if spec.is_of_conda_forge() { Strength::Toolkit } else { Strength::Framework };
        reading.cuda.push(CudaFact { origin: origin.clone(), cuda, strength, by });
    }
    let Some(versions) = spec.versions() else {
        return reading.leave(origin, written, "not a condition on versions that the package index has");
    };
    if spec.is_one_of_several() {
        let why = format!("alternatives that no list of conditions says: {versions}, the newest of them");
        reading.change(origin.clone(), written, why);
    }
    let Some(pypi) = named_for(&row.pypi, reading) else {
        let why = "its package on the index is of one CUDA, which no line says: add `cuda-version`, or its name with `-cu12` or `-cu13` to `python`";
        return reading.leave(origin, written, why);
    };
    let mut versions: Vec<_> = versions.iter().map(ToString::to_string).collect();
    // Conda's builds beside a torch have patch releases that wheels do not have: torchvision 0.15.0 is 0.15.1 there.
    if matrix.companions.iter().any(|row| row.package == pypi) {
        versions = versions.iter().map(|version| of_its_minor(version)).collect();
    }
    match line(&format!("{pypi}{}", versions.join(",")), &origin) {
        Line::Package(mut asked) => {
            written.clone_into(&mut asked.written);
            reading.packages.push(*asked);
        }
        _ => reading.leave(origin, written, "not a requirement"),
    }
}

/// The minor release of an exact one: `==0.15.*` of `==0.15.0`; other conditions as they are.
fn of_its_minor(condition: &str) -> String {
    match condition.rsplit_once('.') {
        Some((minor, patch)) if patch != "*" && condition.starts_with("==") && minor.contains('.') => {
            format!("{minor}.*")
        }
        _ => condition.to_owned(),
    }
}

/// The name of a package for the CUDA that the file names: `cudf-cu12`; `None`: it names none.
fn named_for(pypi: &str, reading: &Reading) -> Option<String> {
    if !pypi.contains("{major}") {
        return Some(pypi.to_owned());
    }
    let major = reading.cuda.iter().max_by_key(|fact| fact.strength)?.cuda.major;
    Some(pypi.replace("{major}", &major.to_string()))
}

fn is_known(name: &str, matrix: &Matrix) -> bool {
    matrix.conda_names.iter().any(|row| row.name == name)
}

/// Libraries of CUDA and of mathematics that every stack has, or that wheels bring along.
const PARTS: [&str; 14] = [
    "cudnn",
    "nccl",
    "cutensor",
    "cusparselt",
    "libnvjitlink",
    "libnpp",
    "libnvjpeg",
    "mkl",
    "mkl-service",
    "blas",
    "libblas",
    "libtorch",
    "pytorch-mutex",
    "intel-openmp",
];

/// Reads a pixi.toml.
pub fn from_pixi(file: &str, text: &str, matrix: &Matrix) -> Reading {
    let mut reading = Reading::of(file, Kind::Project);
    match toml::from_str::<Table>(text) {
        Ok(table) => pixi(&mut reading, &table, text, matrix),
        Err(error) => {
            let why = format!("not TOML: {}", error.message().trim());
            reading.leave(Origin::file(file), "the whole file", why);
        }
    }
    reading
}

/// Reads the tables of a pixi.toml, which are those of `[tool.pixi]` in a pyproject.toml.
pub(super) fn pixi(reading: &mut Reading, table: &Table, text: &str, matrix: &Matrix) {
    reading.is_readable_by_lock = false;
    if let Some(written) = table.get("system-requirements").and_then(|found| found.get("cuda")) {
        let version = written.as_str().map_or_else(|| written.to_string(), str::to_owned);
        let origin = Origin::holding(&reading.file, text, "cuda");
        if let Some(cuda) = cuda_of(&version) {
            let by = format!("[system-requirements] cuda = \"{version}\"");
            reading.cuda.push(CudaFact { origin, cuda, strength: Strength::Surroundings, by });
        }
    }
    let packages = tables(reading, table, text, matrix);
    reading.packages.extend(packages);
    pypi_options(reading, table, text);
    for (name, feature) in table.get("feature").and_then(Value::as_table).into_iter().flatten() {
        let Some(feature) = feature.as_table() else { continue };
        // Nothing of a feature holds unless it is asked for.
        let mut own = Reading::of(&reading.file, Kind::Project);
        let packages = tables(&mut own, feature, text, matrix);
        pypi_options(&mut own, feature, text);
        let origin = Origin::holding(&reading.file, text, &format!("feature.{name}"));
        for (origin, package) in std::mem::take(&mut own.apt) {
            own.leave(origin, &package, "a program of a feature: add it to `apt`");
        }
        for fact in std::mem::take(&mut own.python) {
            own.leave(fact.origin, &fact.by, "the Python of a feature: name it in the spec");
        }
        let Reading { cuda, left, indexes, .. } = own;
        reading.offered.push(Offered {
            packages,
            cuda,
            left,
            indexes,
            ..Offered::of(origin, name, "feature", Vec::new())
        });
    }
}

/// Reads `[dependencies]` and `[pypi-dependencies]`, for Linux.
fn tables(reading: &mut Reading, table: &Table, text: &str, matrix: &Matrix) -> Vec<Asked> {
    let before = std::mem::take(&mut reading.packages);
    let target =
        table.get("target").and_then(|target| target.get("linux-64").or_else(|| target.get("linux")));
    for table in [Some(table), target.and_then(Value::as_table)].into_iter().flatten() {
        let mut all: Vec<_> =
            table.get("dependencies").and_then(Value::as_table).into_iter().flatten().collect();
        all.sort_by_key(|(name, _)| !TOOLKIT.contains(&name.as_str()));
        for (name, value) in all {
            let field = |key: &str| value.get(key).and_then(Value::as_str);
            let version = value.as_str().or_else(|| field("version")).unwrap_or_default();
            let version = if version == "*" { "" } else { version };
            let build = field("build").map(|build| format!("[build='{build}']")).unwrap_or_default();
            let glue = if version.starts_with(|c: char| c.is_ascii_digit()) { "=" } else { "" };
            let origin = Origin::holding(&reading.file, text, &format!("{name} ="));
            take(reading, &format!("{name}{glue}{version}{build}"), origin, matrix);
        }
        for (name, value) in table.get("pypi-dependencies").and_then(Value::as_table).into_iter().flatten() {
            pypi(reading, name, value, text);
        }
    }
    std::mem::replace(&mut reading.packages, before)
}

/// Reads the indexes of `[pypi-options]`.
fn pypi_options(reading: &mut Reading, table: &Table, text: &str) {
    let options = table.get("pypi-options");
    for key in ["index-url", "extra-index-urls", "find-links"] {
        let found = options.and_then(|options| options.get(key));
        let list = found.and_then(Value::as_array).into_iter().flatten().chain(found);
        let url = |one: &Value| one.as_str().or_else(|| one.get("url")?.as_str()).map(str::to_owned);
        for url in list.filter_map(url) {
            let origin = Origin::holding(&reading.file, text, &url);
            super::requirements::index(reading, &format!("{key} {url}"), &url, &origin);
        }
    }
}

fn pypi(reading: &mut Reading, name: &str, value: &Value, text: &str) {
    let origin = Origin::holding(&reading.file, text, &format!("{name} ="));
    let field = |key: &str| value.get(key).and_then(Value::as_str);
    if let Some(place) = ["git", "path", "url"].into_iter().find_map(field) {
        let why = if field("path").is_some() {
            "the project's own code: it is mounted by `envforge shell`"
        } else {
            "an address: packages come from an index, pinned by hash; give a wheel with `--wheel FILE`"
        };
        return reading.leave(origin, &format!("{name} ({place})"), why);
    }
    let written = value.as_str().or_else(|| field("version")).unwrap_or_default();
    let extras: Vec<_> = value
        .get("extras")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let extras = if extras.is_empty() { String::new() } else { format!("[{}]", extras.join(",")) };
    let (plain, local) = crate::model::local_version::without_local(written);
    let Some(found) = super::conditions::alternatives(&plain) else {
        return reading.leave(origin, &format!("{name} = \"{written}\""), "not a condition on versions");
    };
    let versions = found.versions;
    let versions: Vec<_> = versions.iter().map(ToString::to_string).collect();
    if let Line::Package(mut asked) = line(&format!("{name}{extras}{}", versions.join(",")), &origin) {
        asked.local = local;
        if let Some(url) = field("index") {
            super::requirements::index(reading, &format!("index {url}"), url, &origin);
        }
        reading.packages.push(*asked);
    }
}

pub(super) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirements(reading: &Reading) -> Vec<String> {
        reading.packages.iter().map(Asked::requirement).collect()
    }

    #[test]
    fn patch_of_a_companion_and_any_version_of_a_build_are_open() {
        let text = "dependencies:\n  - pytorch=2.0.0\n  - torchvision=0.15.0\n  - torchaudio>=2.0.0\n  - numpy==1.26.4\n  - jaxlib==*=cuda*\n";
        let reading = from_environment("environment.yml", text, crate::model::compat::embedded());
        assert_eq!(
            requirements(&reading),
            ["torch==2.0.0", "torchvision==0.15.*", "torchaudio>=2.0.0", "numpy==1.26.4", "jaxlib"]
        );
    }

    #[test]
    fn environment_gives_framework_cuda_python_and_what_is_not_known() {
        let text = "name: x\nchannels: [pytorch]\ndependencies:\n  - cudatoolkit=11.6\n  - cudatoolkit-dev=11.6\n  - python=3.7.13\n  - pytorch=1.12.1\n  - ffmpeg\n  - strange-thing=1\n  - pip:\n    - submodules/rasterizer\n    - opencv-python\n    - --extra-index-url https://download.pytorch.org/whl/cu116\nvariables:\n  A: 1\n";
        let reading = from_environment("environment.yml", text, crate::model::compat::embedded());
        assert_eq!(requirements(&reading), ["torch==1.12.1", "opencv-python"]);
        let cuda: Vec<_> = reading.cuda.iter().map(|fact| fact.cuda.to_string()).collect();
        assert_eq!(cuda, ["cu116", "cu116", "cu116"]);
        assert_eq!(reading.python[0].versions.to_string(), "==3.7.*");
        assert_eq!(reading.apt[0].1, "ffmpeg");
        assert!(reading.devel.is_some());
        let left: Vec<_> = reading.left.iter().map(|note| note.written.as_str()).collect();
        assert_eq!(left, ["strange-thing=1", "submodules/rasterizer", "A=1"]);
        assert_eq!(reading.left[0].origin.line, Some(9));
    }

    #[test]
    fn environment_that_is_none_is_one_line() {
        for text in ["- just\n- a list\n", "dependencies: [a\n", "dependencies: 3\n"] {
            let reading = from_environment("environment.yml", text, crate::model::compat::embedded());
            assert!(!reading.says_something() && reading.left.len() == 1, "{text}: {reading:?}");
        }
    }

    #[test]
    fn pixi_projects_are_read() {
        let text = "[workspace]\nname = \"x\"\n[system-requirements]\ncuda = \"12.4\"\n[dependencies]\npython = \"3.11.*\"\npytorch-gpu = \"*\"\npytorch = \">=2.5,<3\"\n[pypi-dependencies]\ntransformers = \"==4.50.0\"\nown = { path = \".\", editable = true }\n[feature.dev.dependencies]\npytest = \"*\"\n";
        let reading = from_pixi("pixi.toml", text, crate::model::compat::embedded());
        assert_eq!(requirements(&reading), ["torch>=2.5,<3", "torch", "transformers==4.50.0"]);
        assert_eq!(reading.cuda[0].cuda.to_string(), "cu124");
        assert_eq!(reading.python[0].versions.to_string(), "==3.11.*");
        assert_eq!((reading.offered.len(), reading.left.len()), (1, 1));
        let text = "[dependencies]\npytorch = \"2.8.0\"\n[feature.py39.dependencies]\npython = \"3.9.*\"\n[feature.build.dependencies]\ncuda-nvcc = \"12.4.*\"\nvim = \"*\"\n";
        let reading = from_pixi("pixi.toml", text, crate::model::compat::embedded());
        assert!(
            reading.python.is_empty() && reading.cuda.is_empty() && reading.apt.is_empty(),
            "{reading:?}"
        );
        assert!(reading.devel.is_none() && reading.offered.len() == 2);
    }
}

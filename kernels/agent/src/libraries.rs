//! Finds the CUDA libraries of an image: in its Python environments, on the loader's path and in CUDA's own folders.
//!
//! Each is given by its canonical path: NVRTC and cuDNN look for their parts next to the opened file.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use envforge_protocol::abi::SYSTEM_FOLDERS;

use crate::bounded;

/// Names without `lib` and `.so`.
pub(crate) const NAMES: [&str; 6] = ["cudart", "nvrtc", "cublasLt", "cublas", "cudnn", "nccl"];

/// Folders that may hold Python environments, as `PREFIX/lib/python3.*/site-packages`.
const PREFIXES: [&str; 6] = ["opt/env", "opt/conda", "opt/venv", "usr/local", "usr", "venv"];

/// As much as is read of a file that configures the loader, and as many folders as count.
const LARGEST_CONFIGURATION: u64 = 64 << 10;
const MOST_CONFIGURED: usize = 4096;

/// Why a folder was looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FoundVia {
    /// A Python environment: what a framework's own run path leads to.
    Python,
    /// The variable `LD_LIBRARY_PATH`.
    Variable,
    /// `/etc/ld.so.conf` and the folders the loader knows.
    Loader,
    /// `/usr/local/cuda*`, which nothing searches by itself.
    Toolkit,
}

/// A library that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// One of [`NAMES`].
    pub(crate) name: &'static str,
    /// Its canonical path.
    pub(crate) path: PathBuf,
    pub(crate) via: FoundVia,
}

/// Where to look.
#[derive(Debug, Clone, Default)]
pub(crate) struct SearchPaths {
    /// What stands for `/`.
    pub(crate) root: PathBuf,
    /// The value of `LD_LIBRARY_PATH`.
    pub(crate) variable: String,
    /// Python prefixes besides the usual ones: those that are active.
    pub(crate) prefixes: Vec<PathBuf>,
}

impl SearchPaths {
    /// The places of this process's image.
    pub(crate) fn of(root: &Path) -> Self {
        let variable = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
        Self { root: root.to_owned(), variable, prefixes: active_environments(root) }
    }

    /// Every CUDA library, each file once, the one that a framework would load first.
    pub(crate) fn search(&self) -> Vec<Found> {
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        for (via, folder) in self.folders() {
            for (name, path) in libraries_in(&folder) {
                if seen.insert(path.clone()) {
                    found.push(Found { name, path, via });
                }
            }
        }
        found
    }

    /// The first file of a library that is not among [`NAMES`]: `cufft`.
    pub(crate) fn other(&self, name: &str) -> Option<PathBuf> {
        let is_it = |path: &PathBuf| {
            let file =
                path.file_name().and_then(|file| file.to_str()).and_then(|file| file.strip_prefix("lib"));
            file.and_then(|file| file.split_once(".so.")).is_some_and(|(stem, _)| stem == name)
        };
        let files = self.folders().into_iter().flat_map(|(_, folder)| entries(&folder));
        files.filter(is_it).find_map(|path| path.canonicalize().ok().filter(|path| path.is_file()))
    }

    /// All folders in the order of the search.
    pub(crate) fn folders(&self) -> Vec<(FoundVia, PathBuf)> {
        let mut all: Vec<_> = self.python().into_iter().map(|folder| (FoundVia::Python, folder)).collect();
        all.extend(self.variable_folders().into_iter().map(|folder| (FoundVia::Variable, folder)));
        all.extend(self.configured().into_iter().map(|folder| (FoundVia::Loader, folder)));
        all.extend(SYSTEM_FOLDERS.iter().map(|folder| (FoundVia::Loader, self.root.join(folder))));
        all.extend(self.toolkits().into_iter().map(|folder| (FoundVia::Toolkit, folder)));
        all
    }

    /// Folders of `LD_LIBRARY_PATH`.
    pub(crate) fn variable_folders(&self) -> Vec<PathBuf> {
        let folders = self.variable.split([':', ';']).filter(|folder| folder.starts_with('/'));
        folders.map(|folder| self.below(folder)).collect()
    }

    /// `site-packages/nvidia/*/lib`, CUDA 13's among them, the framework's own folder and conda's.
    fn python(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for packages in self.packages() {
            folders.extend(entries(&packages.join("nvidia")).iter().map(|folder| folder.join("lib")));
            folders.push(packages.join("torch/lib"));
        }
        let conda = self.prefixes().into_iter().filter(|prefix| prefix.join("conda-meta").is_dir());
        folders.extend(conda.map(|prefix| prefix.join("lib")));
        folders
    }

    /// The folders of installed packages: `PREFIX/lib/python3.*/site-packages`.
    pub(crate) fn packages(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for prefix in self.prefixes() {
            for python in entries(&prefix.join("lib")).into_iter().filter(|path| named(path, "python3")) {
                folders.extend(["site-packages", "dist-packages"].map(|packages| python.join(packages)));
            }
        }
        folders.retain(|folder| folder.is_dir());
        folders
    }

    /// The named Python prefixes, then the usual ones.
    fn prefixes(&self) -> Vec<PathBuf> {
        let named = self.prefixes.iter().map(|prefix| self.below(&prefix.to_string_lossy()));
        named.chain(PREFIXES.iter().map(|prefix| self.root.join(prefix))).collect()
    }

    /// Folders named by `/etc/ld.so.conf` and the files it includes.
    fn configured(&self) -> Vec<PathBuf> {
        let mut files = entries(&self.root.join("etc/ld.so.conf.d"));
        files.retain(|path| path.extension().is_some_and(|extension| extension == "conf"));
        files.insert(0, self.root.join("etc/ld.so.conf"));
        let texts = files.iter().filter_map(|file| bounded::text(file, LARGEST_CONFIGURATION));
        let folders = texts.flat_map(|text| {
            let lines = text.lines().map(str::trim).filter(|line| line.starts_with('/'));
            lines.map(|line| self.below(line)).collect::<Vec<_>>()
        });
        folders.take(MOST_CONFIGURED).collect()
    }

    fn toolkits(&self) -> Vec<PathBuf> {
        let all = entries(&self.root.join("usr/local")).into_iter().filter(|path| named(path, "cuda"));
        all.flat_map(|toolkit| {
            let targets = entries(&toolkit.join("targets")).into_iter().map(|target| target.join("lib"));
            std::iter::once(toolkit.join("lib64")).chain(targets).collect::<Vec<_>>()
        })
        .collect()
    }

    fn below(&self, path: &str) -> PathBuf {
        below(&self.root, path)
    }
}

/// The Python environments in use: the one whose Python `PATH` finds first, `VIRTUAL_ENV` and `CONDA_PREFIX`.
fn active_environments(root: &Path) -> Vec<PathBuf> {
    let named = ["VIRTUAL_ENV", "CONDA_PREFIX"].map(|name| std::env::var(name).unwrap_or_default());
    let mut found: Vec<_> =
        first_on_path(root, &std::env::var("PATH").unwrap_or_default()).into_iter().collect();
    for prefix in named.into_iter().filter(|path| !path.is_empty()).map(|path| below(root, &path)) {
        if !found.contains(&prefix) {
            found.push(prefix);
        }
    }
    found
}

/// The virtual environment in use, if one is: nothing but the packages of one Python lies in it.
pub(crate) fn virtual_environment(root: &Path) -> Option<PathBuf> {
    active_environments(root).into_iter().find(|prefix| prefix.join("pyvenv.cfg").is_file())
}

/// Where a `PATH` looks for a Python, in its order.
pub(crate) fn pythons_of(path: &OsStr) -> impl Iterator<Item = PathBuf> {
    std::env::split_paths(path).flat_map(|folder| ["python3", "python"].map(|name| folder.join(name)))
}

/// The same below what stands for the root, and then those of [`PREFIXES`].
pub(crate) fn pythons_below(root: &Path, path: &OsStr) -> Vec<PathBuf> {
    let on_path = pythons_of(path).filter(|python| python.is_absolute());
    let on_path = on_path.map(|python| below(root, &python.to_string_lossy()));
    let usual = PREFIXES.iter().map(|prefix| root.join(prefix).join("bin/python3"));
    on_path.chain(usual).collect()
}

/// The environment of the first Python of a `PATH`; the system's own Python is none.
fn first_on_path(root: &Path, path: &str) -> Option<PathBuf> {
    let pythons = pythons_of(path.as_ref()).filter(|python| python.is_absolute());
    let mut pythons = pythons.map(|python| below(root, &python.to_string_lossy()));
    let python = pythons.find(|python| python.symlink_metadata().is_ok())?;
    let prefix = python.parent()?.parent()?.to_owned();
    (prefix.join("pyvenv.cfg").is_file() || prefix.join("conda-meta").is_dir()).then_some(prefix)
}

/// A path of the image below what stands for its root; one that already lies there stays.
fn below(root: &Path, path: &str) -> PathBuf {
    let path = Path::new(path);
    if path.starts_with(root) {
        return path.to_owned();
    }
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// The first library of that name.
pub(crate) fn first<'a>(found: &'a [Found], name: &str) -> Option<&'a Found> {
    found.iter().find(|library| library.name == name)
}

/// The file a loaded library came from, by the beginning of its file name: `libcuda.so`.
pub(crate) fn mapped(beginning: &str) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mut paths = maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    paths.find(|path| named(path, beginning)).map(Path::to_owned)
}

/// Which library a file name is: `libnvrtc.so.11.2`, and the `libnvrtc-672ee683.so.11.2` of older wheels, are `nvrtc`.
pub(crate) fn name_of(file: &str) -> Option<&'static str> {
    let (stem, _) = file.strip_prefix("lib")?.split_once(".so.")?;
    NAMES.into_iter().find(|name| match stem.strip_prefix(name) {
        Some("") => true,
        Some(rest) => rest
            .strip_prefix('-')
            .is_some_and(|hash| hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())),
        None => false,
    })
}

/// CUDA libraries of one folder by canonical path, sorted.
fn libraries_in(folder: &Path) -> Vec<(&'static str, PathBuf)> {
    let files = entries(folder).into_iter().filter_map(|path| {
        let name = name_of(path.file_name()?.to_str()?)?;
        let canonical = path.canonicalize().ok()?;
        canonical.is_file().then_some((name, canonical))
    });
    files.collect()
}

fn named(path: &Path, beginning: &str) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(beginning))
}

/// What a folder holds, sorted; nothing if it cannot be read.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str) -> PathBuf {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(&path, "").expect("written");
        path.canonicalize().expect("there")
    }

    #[test]
    fn names_of_every_toolkit_are_known_and_parts_are_not_mistaken_for_wholes() {
        for (file, name) in [
            ("libnvrtc.so.11.2", Some("nvrtc")),
            ("libnvrtc-672ee683.so.11.2", Some("nvrtc")),
            ("libnvrtc.so.13", Some("nvrtc")),
            ("libnvrtc-builtins.so.12.8", None),
            ("libnvrtc-builtins-8a1b2c3d.so.12.8", None),
            ("libnvrtc.alt.so.12", None),
            ("libcublasLt.so.12", Some("cublasLt")),
            ("libcublas.so.13", Some("cublas")),
            ("libcudnn_graph.so.9", None),
            ("libcudnn.so.8", Some("cudnn")),
            ("libnccl.so.2.27.3", Some("nccl")),
            ("libnccl.so", None),
        ] {
            assert_eq!(name_of(file), name, "{file}");
        }
    }

    #[test]
    fn every_place_is_searched_in_the_order_of_the_loader() {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path().canonicalize().expect("there");
        let wheel = write(&root, "opt/env/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
        let new = write(&root, "opt/env/lib/python3.11/site-packages/nvidia/cu13/lib/libcudart.so.13");
        let bundled = write(&root, "opt/env/lib/python3.11/site-packages/torch/lib/libcudnn.so.8");
        let toolkit = write(&root, "usr/local/cuda-12.4/targets/x86_64-linux/lib/libnvrtc.so.12.4.127");
        let variable = write(&root, "other/libnvrtc.so.11.2");
        let configured = write(&root, "opt/odd/libnccl.so.2.1");
        std::os::unix::fs::symlink("libnccl.so.2.1", root.join("opt/odd/libnccl.so.2")).expect("a link");
        write(&root, "etc/ld.so.conf.d/odd.conf");
        std::fs::write(root.join("etc/ld.so.conf.d/odd.conf"), "# odd\n/opt/odd\n").expect("written");
        std::os::unix::fs::symlink("/dev/zero", root.join("etc/ld.so.conf.d/endless.conf")).expect("a link");
        let places = SearchPaths { root, variable: ":/other:relative".into(), prefixes: Vec::new() };
        let found = places.search();
        let of = |name: &str| {
            let all = found.iter().filter(|library| library.name == name);
            all.map(|library| (library.via, library.path.clone())).collect::<Vec<_>>()
        };
        assert_eq!(
            of("nvrtc"),
            [(FoundVia::Python, wheel), (FoundVia::Variable, variable), (FoundVia::Toolkit, toolkit)]
        );
        assert_eq!(of("cudart"), [(FoundVia::Python, new)]);
        assert_eq!(of("cudnn"), [(FoundVia::Python, bundled)]);
        assert_eq!(of("nccl"), [(FoundVia::Loader, configured)], "one file under two names is one");
        assert_eq!(first(&found, "cublas"), None);
    }

    #[test]
    fn first_python_of_a_path_names_the_environment_and_the_systems_is_none() {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path().canonicalize().expect("there");
        for path in ["usr/bin/python3", "opt/venv/bin/python", "opt/venv/pyvenv.cfg", "opt/conda/bin/python3"]
        {
            write(&root, path);
        }
        std::fs::create_dir(root.join("opt/conda/conda-meta")).expect("made");
        let found = |path: &str| first_on_path(&root, path);
        assert_eq!(found("/opt/venv/bin:/usr/bin"), Some(root.join("opt/venv")));
        assert_eq!(found("relative:/none:/opt/conda/bin:/opt/venv/bin"), Some(root.join("opt/conda")));
        assert_eq!(found("/usr/bin:/opt/venv/bin"), None, "programs of that image run the system's");
        assert_eq!(found(""), None);
    }

    #[test]
    fn a_loaded_library_is_found_by_its_file() {
        let path = mapped("libc.so").expect("every program has it");
        assert!(path.is_file(), "{}", path.display());
        assert_eq!(mapped("libenvforge-none"), None);
    }
}

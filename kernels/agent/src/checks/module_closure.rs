//! `linker-closure` in an image that envforge did not build: a Python module that cannot load fails, any other library that
//! lacks one is reported.
//!
//! Such an image has no list of libraries that may be missing, and its packages bring plug-ins that nothing loads.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use envforge_protocol::abi::{Unmet, of_another_cuda};
use envforge_protocol::elf::Dynamic;
use envforge_protocol::{CheckId, SkipReason};

use super::extension_abi::is_of_another_python;
use super::{NO_PYTHON, Options, display_path};
use crate::linker::{Loader, objects};
use crate::report::Report;

const ID: CheckId = CheckId::LinkerClosure;
/// Beginnings of the names of modules that their package tries to import and does without.
const ONLY_TRIED: [&str; 4] = ["omppool.", "tbbpool.", "_torchaudio_ffmpeg", "_torchaudio_sox"];
/// CuPy's modules of cuDNN, NCCL and cuTENSOR, each imported when it is used.
const CUPY_LIBRARIES: &str = "cupy_backends/cuda/libs";
/// As much as is read of a text that names a version.
const LARGEST_TEXT: u64 = 64 << 10;
/// Needs of libraries that no module loads: as many are named.
const NAMED: usize = 5;

pub(super) fn run(options: &Options) -> Report {
    let folders = options.packages();
    if folders.is_empty() {
        return Report::skipped(ID, SkipReason::NotInImage, NO_PYTHON);
    }
    let libraries = libraries(&folders);
    let unmet = Loader::of(&options.root).with(options.loader_folders()).unmet(&libraries);
    let loaded = loaded_by_modules(&libraries);
    let (problems, others): (Vec<Unmet>, Vec<Unmet>) =
        unmet.into_iter().partition(|one| loaded.contains(one.path.as_path()));
    let text = |one: &Unmet| format!("{} needs {}", display_path(&options.root, &one.path), one.soname);
    let mut good = format!("{} libraries: every Python module finds those it needs", libraries.len());
    if !others.is_empty() {
        let named: Vec<_> = others.iter().take(NAMED).map(text).collect();
        good.push_str(&format!(
            "; {} of libraries that no module loads are missing: {}",
            others.len(),
            named.join("; ")
        ));
        if others.len() > NAMED {
            good.push_str("; …");
        }
    }
    let hint = hint(&problems);
    let problems: Vec<_> = problems.iter().map(text).collect();
    let report = Report::of_problems(ID, good, &problems).hint(&hint);
    if problems.is_empty() && !others.is_empty() {
        report.with_warning("a library is missing")
    } else {
        report
    }
}

fn hint(problems: &[Unmet]) -> String {
    let missing = problems.first().map(|one| one.soname.as_str()).unwrap_or_default();
    format!(
        "install the package that has the library, or remove the one that needs it: `envforge doctor --explain \"ImportError: \
         {missing}: cannot open shared object file: No such file or directory\"`"
    )
}

/// The libraries of these folders that the image's Python may load.
fn libraries(folders: &[PathBuf]) -> BTreeMap<PathBuf, Dynamic> {
    let mut all = BTreeMap::new();
    for packages in folders {
        let mut found = objects(packages);
        found.retain(|path, _| !is_of_another_python(packages, file(path)));
        all.append(&mut found);
    }
    if let Some(cuda) = folders.iter().find_map(|packages| cuda_of_torch(packages)) {
        for path in of_another_cuda(&all, &cuda) {
            all.remove(&path);
        }
    }
    all
}

/// The CUDA that the installed torch was built with: `cuda: Optional[str] = '12.8'` of its `version.py`.
fn cuda_of_torch(packages: &Path) -> Option<String> {
    let path = packages.join("torch/version.py");
    let mut text = String::new();
    let file = path.is_file().then(|| File::open(&path).ok()).flatten()?;
    file.take(LARGEST_TEXT).read_to_string(&mut text).ok()?;
    let line = text.lines().find(|line| line.starts_with("cuda"))?;
    let value = line.split(['\'', '"']).nth(1)?;
    value.starts_with(|character: char| character.is_ascii_digit()).then(|| value.to_owned())
}

/// The Python modules, and the libraries that they load.
fn loaded_by_modules(libraries: &BTreeMap<PathBuf, Dynamic>) -> BTreeSet<&Path> {
    let mut by_name = BTreeMap::<&str, Vec<&Path>>::new();
    for (path, library) in libraries {
        let names: BTreeSet<&str> = std::iter::once(file(path)).chain(library.soname.as_deref()).collect();
        for name in names {
            by_name.entry(name).or_default().push(path);
        }
    }
    let mut wanted: Vec<&Path> =
        libraries.keys().map(PathBuf::as_path).filter(|path| is_module(path)).collect();
    let mut loaded = BTreeSet::new();
    while let Some(path) = wanted.pop() {
        if loaded.insert(path) {
            let needed = libraries.get(path).into_iter().flat_map(|library| &library.needed);
            // Those of a name are wanted once, however many need it.
            wanted.extend(needed.filter_map(|soname| by_name.remove(soname.as_str())).flatten());
        }
    }
    loaded
}

/// Whether a library is a Python module that its package does not do without: `_C.so`, `x.cpython-311-x86_64-linux-gnu.so`.
fn is_module(path: &Path) -> bool {
    let name = file(path);
    path.extension() == Some(OsStr::new("so"))
        && !name.starts_with("lib")
        && !ONLY_TRIED.iter().any(|start| name.starts_with(start))
        && !path.parent().is_some_and(|folder| folder.ends_with(CUPY_LIBRARIES))
}

/// The file name of a path; empty for one that is not text.
fn file(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(needed: &[&str]) -> Dynamic {
        Dynamic { needed: needed.iter().map(|name| (*name).to_owned()).collect(), ..Dynamic::default() }
    }

    #[test]
    fn libraries_of_a_module_are_loaded_and_plug_ins_are_not() {
        let all = BTreeMap::from([
            ("p/a/_C.so", library(&["libone.so"])),
            ("p/a/lib/libone.so", library(&["libtwo.so.2", "libone.so"])),
            ("p/a/lib/libtwo.so.2", library(&[])),
            ("p/a/lib/libplugin.so", library(&["libthree.so"])),
            ("p/a/lib/libthree.so", library(&[])),
            ("p/numba/omppool.cpython-311-x86_64-linux-gnu.so", library(&["libgomp.so.1"])),
            ("p/cupy_backends/cuda/libs/nccl.cpython-311-x86_64-linux-gnu.so", library(&["libnccl.so.2"])),
        ]);
        let all = all.into_iter().map(|(path, library)| (PathBuf::from(path), library)).collect();
        let loaded: Vec<_> = loaded_by_modules(&all).into_iter().collect();
        let expected = ["p/a/_C.so", "p/a/lib/libone.so", "p/a/lib/libtwo.so.2"];
        assert_eq!(loaded, expected.map(Path::new));
    }

    #[test]
    fn cuda_of_torch_is_that_of_its_version_file() {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::create_dir(folder.path().join("torch")).expect("made");
        let cuda = |text: &str| {
            std::fs::write(folder.path().join("torch/version.py"), text).expect("written");
            cuda_of_torch(folder.path())
        };
        let text = "__all__ = ['__version__']\n__version__ = '2.8.0+cu128'\ncuda: Optional[str] = '12.8'\n";
        assert_eq!(cuda(text).as_deref(), Some("12.8"));
        assert_eq!(cuda("cuda = '11.6'\n").as_deref(), Some("11.6"));
        assert_eq!(cuda("cuda: Optional[str] = None\nhip = '6.2'\n"), None);
    }
}

//! The libraries that the loader does not find: one rule for the files of an image and for the wheels that become one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::optional::{is_for_another_cuda, is_plug_in_of_qt, may_be_missing};
use crate::elf::Dynamic;

/// Folders the loader searches by itself; ld.so.conf of Debian and Ubuntu adds the first two.
pub const SYSTEM_FOLDERS: [&str; 8] = [
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "usr/lib64",
    "lib",
    "usr/lib",
];

/// As many files are looked for in the folders that libraries name: a hundred times what the largest images take. Needs beyond are
/// not met.
const MOST_LOOKUPS: usize = 1 << 24;

/// A library that one needs and the loader does not find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// The library that needs it.
    pub path: PathBuf,
    /// The soname.
    pub soname: String,
}

/// What the loader finds beside the libraries that are judged.
pub struct LoaderView<'a> {
    /// The folder that stands for `/`.
    pub root: &'a Path,
    /// File names in the folders that it searches by itself.
    pub system: &'a BTreeSet<String>,
    /// Whether a file exists.
    pub exists: &'a dyn Fn(&Path) -> bool,
}

impl LoaderView<'_> {
    /// Returns each need that nothing meets. A library that another one of the same tree can have loaded before counts: Python
    /// packages preload their siblings' libraries by name. A plug-in of Qt needs nothing.
    pub fn unmet(&self, libraries: &BTreeMap<PathBuf, Dynamic>) -> Vec<Unmet> {
        self.unmet_within(libraries, MOST_LOOKUPS)
    }

    /// The same with so many files that may be looked for.
    fn unmet_within(&self, libraries: &BTreeMap<PathBuf, Dynamic>, mut left: usize) -> Vec<Unmet> {
        let names =
            libraries.iter().flat_map(|(path, library)| [Some(file(path)), library.soname.as_deref()]);
        let loaded: BTreeSet<&str> = names.flatten().collect();
        let mut all = Vec::new();
        for (path, library) in libraries.iter().filter(|(path, _)| !is_plug_in_of_qt(path)) {
            let folders = self.folders(path, library);
            for soname in distinct(&library.needed) {
                let is_met = self.system.contains(soname)
                    || loaded.contains(soname.as_str())
                    || soname.starts_with("ld-linux");
                if is_met || may_be_missing(file(path), soname) {
                    continue;
                }
                let mut searched = folders.iter().take(left);
                let found = searched.position(|folder| (self.exists)(&folder.join(soname)));
                left -= found.map_or(folders.len().min(left), |at| at + 1);
                if found.is_none() {
                    all.push(Unmet { path: path.clone(), soname: soname.clone() });
                }
            }
        }
        all
    }

    /// The folders that a library names itself.
    fn folders(&self, path: &Path, library: &Dynamic) -> Vec<PathBuf> {
        let origin = path.parent().unwrap_or(self.root);
        let folders = if library.runpath.is_empty() { &library.rpath } else { &library.runpath };
        let place = |folder: &String| {
            let folder = folder.replace("${ORIGIN}", "$ORIGIN");
            match folder.strip_prefix("$ORIGIN") {
                Some(rest) => origin.join(rest.trim_start_matches('/')),
                None => self.root.join(folder.trim_start_matches('/')),
            }
        };
        distinct(folders).map(place).collect()
    }
}

/// The names in their order, each once.
fn distinct(names: &[String]) -> impl Iterator<Item = &String> {
    let mut seen = BTreeSet::new();
    names.iter().filter(move |name| seen.insert(name.as_str()))
}

/// Returns the libraries that their package loads with another CUDA than this one (`12.8`) only.
pub fn of_another_cuda(libraries: &BTreeMap<PathBuf, Dynamic>, cuda: &str) -> Vec<PathBuf> {
    // One that another library is linked to is loaded with that.
    let needed: BTreeSet<&str> =
        libraries.values().flat_map(|library| &library.needed).map(String::as_str).collect();
    let is_other = |path: &&PathBuf| {
        let folder = path.parent().map(file).unwrap_or_default();
        let has = |name: &str| libraries.contains_key(&path.with_file_name(name));
        !needed.contains(file(path)) && is_for_another_cuda((folder, file(path)), cuda, has)
    };
    libraries.keys().filter(is_other).cloned().collect()
}

/// The file name of a path; empty for one that is not text.
fn file(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(needed: &[&str], runpath: &[&str]) -> Dynamic {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        Dynamic { needed: owned(needed), runpath: owned(runpath), ..Dynamic::default() }
    }

    fn unmet(libraries: &[(&str, Dynamic)]) -> Vec<(String, String)> {
        let libraries = libraries.iter().map(|(path, one)| (PathBuf::from(path), one.clone())).collect();
        let system = BTreeSet::from(["libc.so.6".to_owned()]);
        let exists = |path: &Path| path == Path::new("env/x/../near/libnear.so.3");
        let view = LoaderView { root: Path::new(""), system: &system, exists: &exists };
        let text = |one: Unmet| (one.path.to_string_lossy().into_owned(), one.soname);
        view.unmet(&libraries).into_iter().map(text).collect()
    }

    #[test]
    fn need_is_met_by_system_sibling_or_own_folder_only() {
        let sibling = Dynamic { soname: Some("libsibling.so.2".to_owned()), ..Dynamic::default() };
        let needed = ["libc.so.6", "ld-linux-x86-64.so.2", "libsibling.so.2", "libnear.so.3", "libcuda.so.1"];
        let found = unmet(&[
            ("env/x/_C.so", library(&needed, &["$ORIGIN/../near"])),
            ("env/x/_D.so", library(&["libnear.so.3"], &["$ORIGIN"])),
            ("env/y/libsibling-1a2b3c4d.so.2", sibling),
        ]);
        assert_eq!(found, [("env/x/_D.so".to_owned(), "libnear.so.3".to_owned())]);
    }

    #[test]
    fn repeated_names_are_looked_for_and_reported_once_in_their_order() {
        let looked = std::cell::Cell::new(0);
        let exists = |_: &Path| {
            looked.set(looked.get() + 1);
            false
        };
        let all = library(&["libz.so.9", "liba.so.9", "libz.so.9"], &["/b", "/a", "/b"]);
        let libraries = BTreeMap::from([(PathBuf::from("env/x/_C.so"), all)]);
        let system = BTreeSet::new();
        let view = LoaderView { root: Path::new(""), system: &system, exists: &exists };
        let sonames: Vec<_> = view.unmet(&libraries).into_iter().map(|one| one.soname).collect();
        assert_eq!(sonames, ["libz.so.9", "liba.so.9"]);
        assert_eq!(looked.get(), 4, "two names in two folders");
    }

    #[test]
    fn lookups_are_bounded_over_all_libraries() {
        let looked = std::cell::Cell::new(0);
        let exists = |_: &Path| {
            looked.set(looked.get() + 1);
            false
        };
        let names =
            |start: &str, count: usize| (0..count).map(|n| format!("{start}{n}")).collect::<Vec<String>>();
        let one = Dynamic { needed: names("lib", 9), runpath: names("/", 10), ..Dynamic::default() };
        let libraries = BTreeMap::from(["a.so", "b.so"].map(|path| (PathBuf::from(path), one.clone())));
        let system = BTreeSet::new();
        let view = LoaderView { root: Path::new(""), system: &system, exists: &exists };
        assert_eq!(view.unmet_within(&libraries, 95).len(), 18, "what was not looked for is not met");
        assert_eq!(looked.get(), 95);
    }

    #[test]
    fn optional_library_may_be_missing_from_its_file_alone() {
        let needs = |path| (path, library(&["libsox.so"], &[]));
        let found = unmet(&[needs("env/torio/libtorchaudio_sox.so"), needs("env/other/_C.so")]);
        assert_eq!(found, [("env/other/_C.so".to_owned(), "libsox.so".to_owned())]);
    }

    #[test]
    fn plug_in_of_qt_may_lack_what_qt_itself_may_not() {
        let needs = |path| (path, library(&["libmimerapi.so"], &[]));
        let found = unmet(&[
            needs("env/PyQt6/Qt6/plugins/sqldrivers/libqsqlmimer.so"),
            needs("env/PyQt6/Qt6/lib/x.so"),
        ]);
        assert_eq!(found, [("env/PyQt6/Qt6/lib/x.so".to_owned(), "libmimerapi.so".to_owned())]);
    }

    #[test]
    fn library_of_another_cuda_is_loaded_where_another_one_needs_it() {
        let path = |kind: &str| PathBuf::from(format!("env/bitsandbytes/libbitsandbytes_{kind}.so"));
        let mut libraries: BTreeMap<_, _> =
            ["cpu", "cuda118", "cuda128", "xpu2026"].map(|kind| (path(kind), library(&[], &[]))).into();
        assert_eq!(of_another_cuda(&libraries, "12.8"), [path("cuda118"), path("xpu2026")]);
        libraries.insert(PathBuf::from("env/x/_C.so"), library(&["libbitsandbytes_cuda118.so"], &[]));
        assert_eq!(of_another_cuda(&libraries, "12.8"), [path("xpu2026")]);
    }
}

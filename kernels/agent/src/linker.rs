//! Whether every library that is needed is there, as the dynamic loader would look for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use envforge_protocol::abi::{LoaderView, SYSTEM_FOLDERS, Unmet};
use envforge_protocol::elf::{self, Dynamic};

use super::walk;

/// What the loader knows: folders it searches by itself, and what it would find there.
pub(crate) struct Loader {
    root: PathBuf,
    system: BTreeSet<String>,
}

/// The dynamic sections of all ELF files below a folder.
pub(crate) fn objects(top: &Path) -> BTreeMap<PathBuf, Dynamic> {
    let mut found = BTreeMap::new();
    walk::visit(top, &mut |path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !(name.contains(".so") || path.parent().is_some_and(|folder| folder.ends_with("bin"))) {
            return;
        }
        if let Some(dynamic) = File::open(path).ok().and_then(|file| elf::dynamic(&file)) {
            found.insert(path.to_owned(), dynamic);
        }
    });
    found
}

impl Loader {
    /// The loader of the system below `root`.
    pub(crate) fn of(root: &Path) -> Self {
        let mut system = BTreeSet::new();
        for folder in SYSTEM_FOLDERS {
            let Ok(entries) = std::fs::read_dir(root.join(folder)) else { continue };
            system.extend(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()));
        }
        Self { root: root.to_owned(), system }
    }

    /// The same with what lies in further folders.
    pub(crate) fn with(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        for folder in folders {
            let Ok(entries) = std::fs::read_dir(folder) else { continue };
            self.system.extend(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()));
        }
        self
    }

    /// Each need that nothing meets.
    pub(crate) fn unmet(&self, objects: &BTreeMap<PathBuf, Dynamic>) -> Vec<Unmet> {
        LoaderView { root: &self.root, system: &self.system, exists: &Path::exists }.unmet(objects)
    }

    /// Each need that nothing meets, as `FILE needs SONAME`.
    pub(crate) fn missing(&self, objects: &BTreeMap<PathBuf, Dynamic>) -> Vec<String> {
        let text = |Unmet { path, soname }: Unmet| {
            let shown = path.strip_prefix(&self.root).unwrap_or(&path);
            format!("/{} needs {soname}", shown.display())
        };
        self.unmet(objects).into_iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(needed: &[&str], runpath: &[&str]) -> Dynamic {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        Dynamic { needed: owned(needed), runpath: owned(runpath), ..Dynamic::default() }
    }

    #[test]
    fn a_need_is_answered_by_system_sibling_or_runpath_only() {
        let root = tempfile::tempdir().expect("folder");
        for file in
            ["env/a/one.so", "usr/lib/libsystem.so.1", "env/deep/libsibling.so.2", "env/near/libnear.so.3"]
        {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, "").expect("written");
        }
        let loader = Loader::of(root.path());
        let at = |name: &str| root.path().join(name);
        let mut objects = BTreeMap::from([
            (at("env/a/one.so"), object(&["libsystem.so.1", "libnear.so.3"], &["$ORIGIN/../near"])),
            (at("env/deep/libsibling.so.2"), object(&[], &[])),
            (at("env/a/two.so"), object(&["libsibling.so.2", "libcuda.so.1"], &[])),
        ]);
        assert_eq!(loader.missing(&objects), Vec::<String>::new());
        objects.insert(at("env/a/three.so"), object(&["libgone.so.9"], &["$ORIGIN"]));
        assert_eq!(loader.missing(&objects), ["/env/a/three.so needs libgone.so.9"]);
    }
}

//! The entries of one layer, sorted, with every parent directory.
//!
//! Owns what a layer contains; `write` turns it into bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::conflicts::Conflicts;
use super::error::AssembleError;
use super::install::{Installation, InstalledContent, InstalledFile};
use super::wheel::Wheel;
use crate::model::entry_name::{collisions, parents, problem, quoted};

/// The content of a layer's entry.
#[derive(Debug, Clone)]
pub enum LayerContent {
    /// A directory.
    Folder,
    /// A file with these bytes.
    File(Bytes),
    /// A symbolic link to this target.
    Symlink(String),
    /// A file of a wheel.
    FromWheel {
        /// The wheel.
        wheel: Arc<Wheel>,
        /// The file's place in the wheel's list of entries.
        entry: usize,
        /// Its SHA-256 by RECORD.
        sha256: Option<[u8; 32]>,
    },
}

/// An entry of a layer.
#[derive(Debug, Clone)]
pub struct LayerFile {
    /// Its mode: 0o755.
    pub mode: u32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its content.
    pub content: LayerContent,
}

impl LayerFile {
    /// Returns a directory of root with mode 0755.
    pub fn folder() -> Self {
        Self { mode: 0o755, uid: 0, gid: 0, content: LayerContent::Folder }
    }

    /// Returns a file of root.
    pub fn of_bytes(mode: u32, bytes: impl Into<Bytes>) -> Self {
        Self { mode, uid: 0, gid: 0, content: LayerContent::File(bytes.into()) }
    }

    fn of_wheel(wheel: &Arc<Wheel>, file: &InstalledFile) -> Self {
        let content = match &file.content {
            InstalledContent::Folder => LayerContent::Folder,
            InstalledContent::Generated(bytes) => LayerContent::File(Bytes::copy_from_slice(bytes)),
            InstalledContent::FromWheel { entry, sha256 } => {
                LayerContent::FromWheel { wheel: Arc::clone(wheel), entry: *entry, sha256: *sha256 }
            }
        };
        Self { mode: file.mode, uid: 0, gid: 0, content }
    }

    /// Bytes of its content; 0 of a directory and of a link.
    pub fn size(&self) -> u64 {
        match &self.content {
            LayerContent::Folder | LayerContent::Symlink(_) => 0,
            LayerContent::File(bytes) => bytes.len() as u64,
            LayerContent::FromWheel { wheel, entry, .. } => wheel.entries()[*entry].size,
        }
    }

    fn is_folder(&self) -> bool {
        matches!(self.content, LayerContent::Folder)
    }
}

/// Everything one layer contains, sorted by the bytes of the paths. Every parent directory is an entry as well.
#[derive(Debug, Clone, Default)]
pub struct LayerPlan {
    files: BTreeMap<String, LayerFile>,
}

impl LayerPlan {
    /// Returns the layer of some wheels and further files, which replace those of wheels. `conflicts` are those of all wheels
    /// of the image; a further path with `/` at either end is an error.
    pub fn new(
        wheels: &[&Installation],
        conflicts: &Conflicts,
        further: BTreeMap<String, LayerFile>,
    ) -> Result<Self, AssembleError> {
        let bad = |path: &String| {
            let trailing = path.ends_with('/').then_some("the path ends with `/`");
            problem(path).or(trailing).map(|problem| format!("{}: {problem}", quoted(path)))
        };
        let of_wheels = wheels.iter().flat_map(|wheel| wheel.files()).map(|file| &file.path);
        let mut reasons: Vec<String> = further.keys().chain(of_wheels).filter_map(bad).collect();
        let mut files = BTreeMap::<String, LayerFile>::new();
        let mut insert = |path: String, file: LayerFile| {
            if files.get(&path).is_some_and(|other| other.is_folder() != file.is_folder()) {
                reasons.push(format!("{}: it is a file and a directory", quoted(&path)));
            }
            files.insert(path, file);
        };
        // Equal files of two wheels may be compressed differently: which one is taken must not depend on the caller's order.
        let mut wheels = wheels.to_vec();
        wheels.sort_by(|one, other| one.wheel().distribution().cmp(other.wheel().distribution()));
        for installation in wheels {
            let wheel = installation.wheel();
            let left_out = conflicts.left_out(wheel.distribution());
            let kept = installation.files().iter().filter(|file| !left_out.contains(file.path.as_str()));
            kept.for_each(|file| insert(file.path.clone(), LayerFile::of_wheel(wheel, file)));
        }
        for (path, file) in further {
            insert(path, file);
        }
        let name = |(path, file): (&String, &LayerFile)| {
            if file.is_folder() { format!("{path}/") } else { path.clone() }
        };
        let names: Vec<String> = files.iter().map(name).collect();
        reasons.extend(collisions(names.iter().map(String::as_str)));
        if !reasons.is_empty() {
            return Err(AssembleError::Layer { reasons });
        }
        let missing: BTreeSet<String> =
            files.keys().flat_map(|path| parents(path)).map(str::to_owned).collect();
        for parent in missing {
            files.entry(parent).or_insert_with(LayerFile::folder);
        }
        Ok(Self { files })
    }

    /// Every entry by its path, sorted; directories have no `/` at the end.
    pub fn files(&self) -> &BTreeMap<String, LayerFile> {
        &self.files
    }

    /// Bytes of wheels that are read to write the layer.
    pub fn packed_size(&self) -> u64 {
        let packed = |file: &LayerFile| match &file.content {
            LayerContent::FromWheel { wheel, entry, .. } => wheel.entries()[*entry].packed,
            LayerContent::File(bytes) => bytes.len() as u64,
            LayerContent::Folder | LayerContent::Symlink(_) => 0,
        };
        self.files.values().map(packed).sum()
    }
}

//! What the wheels of the cache, or of a vendor folder, require by their METADATA, and which files they install.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use fs_err::File;

use super::local_wheel::metadata;
use crate::model::image::plan::CachedFile;
use crate::model::lock::{LockedWheel, Requirements, required_by_metadata};
use crate::model::misfit::WheelFiles;
use crate::store::{Store, open_regular};

/// Returns the requirements of those wheels that are in the cache, by package. To be told to a person: nothing is hashed, and a wheel
/// that cannot be read is like one that is not there.
pub(crate) fn cached_requirements(store: &Store, wheels: &[LockedWheel]) -> Requirements {
    here_requirements(store, &[], wheels)
}

/// Returns the same of those that are in the cache or in a vendor folder.
pub(crate) fn here_requirements(
    store: &Store,
    vendored: &[(String, CachedFile)],
    wheels: &[LockedWheel],
) -> Requirements {
    each_here(store, vendored, wheels, |file| Some(required_by_metadata(&metadata(file).ok()?)))
}

/// Returns the files of those wheels that are in the cache or in a vendor folder, by package, as their archives list them. Nothing is
/// unpacked.
pub(crate) fn here_files(
    store: &Store,
    vendored: &[(String, CachedFile)],
    wheels: &[LockedWheel],
) -> BTreeMap<String, WheelFiles> {
    each_here(store, vendored, wheels, |file| {
        let mut archive = zip::ZipArchive::new(file).ok()?;
        let mut files = WheelFiles::new();
        for at in 0..archive.len() {
            let entry = archive.by_index_raw(at).ok()?;
            if let Some(path) = installed_path(entry.name()) {
                files.push((path.to_owned(), (entry.crc32(), entry.size())));
            }
        }
        Some(files)
    })
}

/// Where a file of a wheel is installed below site-packages; `None`: it is the wheel's own, or goes elsewhere.
fn installed_path(name: &str) -> Option<&str> {
    let (folder, rest) = name.split_once('/').unwrap_or(("", name));
    match folder.rsplit_once('.') {
        _ if name.ends_with('/') => return None,
        Some((_, "dist-info")) => return None,
        Some((_, "data")) => {}
        _ => return Some(name),
    }
    let path = rest.strip_prefix("purelib/").or_else(|| rest.strip_prefix("platlib/"))?;
    (!path.is_empty()).then_some(path)
}

/// Reads those wheels that are in the cache or in a vendor folder, several at a time.
fn each_here<T: Send>(
    store: &Store,
    vendored: &[(String, CachedFile)],
    wheels: &[LockedWheel],
    read: impl Fn(File) -> Option<T> + Sync,
) -> BTreeMap<String, T> {
    let folder: BTreeMap<&str, &Utf8PathBuf> =
        vendored.iter().map(|(_, file)| (file.sha256.as_str(), &file.path)).collect();
    let one = |wheel: &LockedWheel| {
        let path = match folder.get(wheel.sha256.as_str()) {
            Some(path) => (*path).clone(),
            None => store.find(&wheel.sha256).ok()??,
        };
        let file = open_regular(&path).ok()?;
        Some((wheel.name.clone(), read(file)?))
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let part = wheels.len().div_ceil(workers).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = wheels
            .chunks(part)
            .map(|part| scope.spawn(|| part.iter().filter_map(one).collect::<BTreeMap<_, _>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::installed_path;

    #[test]
    fn files_of_a_wheel_have_the_path_at_which_they_are_installed() {
        for (name, path) in [
            ("cv2/__init__.py", Some("cv2/__init__.py")),
            ("single.py", Some("single.py")),
            ("gmsh-4.15.data/purelib/gmsh.py", Some("gmsh.py")),
            ("gmsh-4.15.data/data/lib/libgmsh.so", None),
            ("gmsh-4.15.dist-info/RECORD", None),
            ("cv2/", None),
        ] {
            assert_eq!(installed_path(name), path, "{name}");
        }
    }
}

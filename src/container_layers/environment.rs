//! Layers of a step above wheels: the files of the environment are those of its wheels, whatever a package of the distribution
//! or its scripts did there.
#![expect(clippy::disallowed_methods, reason = "edge: reads the cache")]

use super::error::LayerError;
use super::kept::KeptLayer;
use crate::archive::content_digest::relative;
use crate::model::bounded_tar::BoundedTar;
use crate::model::whiteout::{deleted, deletes};
use crate::store::Store;

/// The environment of the wheels, relative to the root.
const ENVIRONMENT: &[u8] = b"opt/env";

/// Refuses layers that replace or delete something of the environment.
pub fn check_environment(store: &Store, layers: &[KeptLayer], what: &'static str) -> Result<(), LayerError> {
    for layer in layers {
        let mut tar = BoundedTar::new(fs_err::File::open(store.blob_path(&layer.sha256)?)?.into_file());
        for entry in tar.entries_with_seek()? {
            let entry = entry?;
            let path = relative(&entry.path_bytes()).to_owned();
            if touches(&path, entry.header().entry_type().is_dir()) {
                let path = String::from_utf8_lossy(&path).escape_debug().to_string();
                return Err(LayerError::Environment { what, path });
            }
        }
    }
    Ok(())
}

/// Whether an entry changes what the environment shows: anything but a directory in it or above it.
fn touches(path: &[u8], is_folder: bool) -> bool {
    let is_in = |path: &[u8], folder: &[u8]| {
        folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
    };
    if let Some(path) = deleted(path) {
        return is_in(&path, ENVIRONMENT) || is_in(ENVIRONMENT, &path);
    }
    let concerns = is_in(path, ENVIRONMENT) || is_in(ENVIRONMENT, path);
    concerns && (!is_folder || deletes(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_leave_the_environment_as_it_is() {
        for (path, is_folder) in [
            ("opt/env/lib/python3.11/site-packages/torch/__init__.py", false),
            ("opt/env/lib/python3.11/site-packages/.wh.torch", false),
            ("opt/env/.wh..wh..opq", false),
            ("opt/.wh.env", false),
            ("opt/.wh..wh..opq", false),
            (".wh.opt", false),
            (".wh..wh..opq", false),
            ("opt/env", false),
            ("opt", false),
            ("opt/env/.wh.a", true),
        ] {
            assert!(touches(path.as_bytes(), is_folder), "{path}");
        }
        for (path, is_folder) in [
            ("opt", true),
            ("opt/env/lib", true),
            ("opt/environment/x", false),
            ("opt/.wh.envx", false),
            ("usr/lib/.wh.x", false),
            ("usr/.wh..wh..opq", false),
            ("usr/lib/x", false),
        ] {
            assert!(!touches(path.as_bytes(), is_folder), "{path}");
        }
    }

    #[test]
    fn layer_that_replaces_a_file_of_the_environment_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let layer = |paths: &[&str]| {
            let mut tar = tar::Builder::new(Vec::new());
            for path in paths {
                let mut header = tar::Header::new_gnu();
                header.set_size(0);
                tar.append_data(&mut header, path, std::io::empty()).expect("in memory");
            }
            let tar = tar.into_inner().expect("in memory");
            let sha256 = crate::model::sha256::sha256_hex(&tar);
            store.put(&sha256, &tar).expect("stored");
            [KeptLayer { sha256, size: tar.len() as u64 }]
        };
        check_environment(&store, &layer(&["usr/bin/htop", "usr/.wh.x"]), "a layer").expect("others");
        let error = check_environment(&store, &layer(&["usr/bin/htop", "opt/env/bin/python"]), "a layer");
        let error = error.expect_err("refused").to_string();
        assert!(error.contains("a layer") && error.contains("`/opt/env/bin/python`"), "{error}");
    }
}

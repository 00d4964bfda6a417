//! The directories of an image with their modes and owners: a layer that lists a directory must repeat them. Its libraries, which the
//! wheels above may need, are listed with them.
#![expect(clippy::disallowed_methods, reason = "edge: reads the cache")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::error::LayerError;
use super::kept::KeptLayer;
use super::limits::LARGEST_RECORD;
use super::step::Tools;
use crate::archive::content_digest::relative;
use crate::engine::{RunLimits, RunRequest};
use crate::model::bounded_tar::BoundedTar;
use crate::model::sha256::sha256_hex;
use crate::store::{SealedRecords, Store};

/// Listing a large image from a slow disk takes minutes.
const TIME: Duration = Duration::from_mins(20);
/// Bytes of the list: a directory has some 60.
const LARGEST_LIST: usize = 64 << 20;

/// Mode and owner of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Directory {
    /// Permission bits.
    pub mode: u32,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

impl Directory {
    /// One that everybody may read and root may write.
    pub const ROOT: Self = Self { mode: 0o755, uid: 0, gid: 0 };
}

/// Directories by path, relative to the root: `usr/local`.
pub type Directories = BTreeMap<String, Directory>;

/// What is known of the files of an image of base and system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemFiles {
    /// Its directories.
    pub directories: Directories,
    /// The paths of its libraries, relative to the root: of every file and link with `.so` in its name.
    pub libraries: BTreeSet<String>,
}

/// Lists an image of base and system, by its tag. `layers` names its content.
pub async fn system_files(
    tools: &Tools<'_>,
    image: &str,
    layers: &[String],
) -> Result<SystemFiles, LayerError> {
    let key = sha256_hex(format!("directories 2\n{}", layers.join("\n")).as_bytes());
    let records = SealedRecords::new(tools.store, "layers");
    if let Some(known) = records.read(&key, LARGEST_RECORD).and_then(|bytes| parse(&bytes)) {
        return Ok(known);
    }
    let directories = ["-type", "d", "-printf", "d %m %U %G %P\\0"];
    let libraries = ["-name", "*.so*", "-printf", "l %P\\0"];
    let command = [&["/usr/bin/find", "/", "-xdev"][..], &directories, &["-o"], &libraries].concat();
    let limits = RunLimits::on(tools.engine.info(), TIME, LARGEST_LIST);
    let request = RunRequest {
        user: Some("0:0".to_owned()),
        keeps: vec!["DAC_OVERRIDE".to_owned()],
        ..RunRequest::bounded(image, command.into_iter().map(str::to_owned).collect(), limits)
    };
    let outcome = tools.engine.run(request, Arc::clone(&tools.reporter)).await?;
    let failed = |output| LayerError::Step { what: "the list of directories", code: outcome.code, output };
    if let Some(limit) = outcome.reached {
        return Err(failed(vec![format!("ended: it {limit}")]));
    }
    if outcome.code != 0 {
        let text = String::from_utf8_lossy(&outcome.stderr);
        return Err(failed(text.lines().map(str::to_owned).collect()));
    }
    let known = parse(&outcome.stdout).ok_or_else(|| failed(vec!["it cannot be read".to_owned()]))?;
    records.write(&key, &outcome.stdout)?;
    Ok(known)
}

fn parse(list: &[u8]) -> Option<SystemFiles> {
    let text = String::from_utf8_lossy(list);
    let mut files = SystemFiles::default();
    for line in text.strip_suffix('\0')?.split('\0') {
        let (kind, rest) = line.split_once(' ')?;
        match kind {
            "d" => {
                let (path, directory) = directory(rest)?;
                files.directories.insert(path, directory);
            }
            "l" => drop(files.libraries.insert(rest.to_owned())),
            _ => return None,
        }
    }
    Some(files)
}

/// `755 0 0 usr/local`.
fn directory(line: &str) -> Option<(String, Directory)> {
    let mut fields = line.splitn(4, ' ');
    let mode = u32::from_str_radix(fields.next()?, 8).ok()?;
    let (uid, gid) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((fields.next()?.to_owned(), Directory { mode, uid, gid }))
}

/// Returns the paths of the libraries that layers of the cache add, as [`SystemFiles`] has them.
pub fn libraries_of(store: &Store, layers: &[KeptLayer]) -> Result<BTreeSet<String>, LayerError> {
    let mut all = BTreeSet::new();
    for layer in layers {
        let mut tar = BoundedTar::new(fs_err::File::open(store.blob_path(&layer.sha256)?)?.into_file());
        for entry in tar.entries_with_seek()? {
            let entry = entry?;
            let path = String::from_utf8_lossy(relative(&entry.path_bytes())).into_owned();
            let is_library = path.rsplit('/').next().is_some_and(|name| name.contains(".so"));
            if is_library && !entry.header().entry_type().is_dir() {
                all.insert(path);
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_find_is_read_and_a_cut_one_is_not() {
        let list =
            b"d 755 0 0 \x00d 1777 0 0 workspace\x00d 700 1000 1000 home/dev x\x00l usr/lib/lib x.so.1\x00";
        let SystemFiles { directories, libraries } = parse(list).expect("a list");
        assert_eq!(directories["workspace"], Directory { mode: 0o1777, uid: 0, gid: 0 });
        assert_eq!(directories["home/dev x"], Directory { mode: 0o700, uid: 1000, gid: 1000 });
        assert_eq!((directories.len(), libraries), (3, BTreeSet::from(["usr/lib/lib x.so.1".to_owned()])));
        assert_eq!((parse(&list[..list.len() - 1]), parse(b"x\0"), parse(b"x y\0")), (None, None, None));
    }

    #[test]
    fn libraries_of_a_layer_are_its_files_and_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let mut tar = tar::Builder::new(Vec::new());
        for path in ["usr/lib/libgone.so.1.7", "usr/bin/gone", "etc/some.so.conf/x"] {
            let mut header = tar::Header::new_gnu();
            header.set_size(0);
            tar.append_data(&mut header, path, std::io::empty()).expect("in memory");
        }
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, "usr/lib/libgone.so.1", "libgone.so.1.7").expect("in memory");
        let tar = tar.into_inner().expect("in memory");
        let sha256 = sha256_hex(&tar);
        store.put(&sha256, &tar).expect("stored");
        let layer = KeptLayer { sha256, size: tar.len() as u64 };
        let found: Vec<_> = libraries_of(&store, &[layer]).expect("read").into_iter().collect();
        assert_eq!(found, ["usr/lib/libgone.so.1", "usr/lib/libgone.so.1.7"]);
    }
}

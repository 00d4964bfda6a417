//! Finished layers in a vendor directory: for the hash of their inputs the digests of their tars, which lie there as files.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};

use super::error::StoreError;
use super::files::{read_text, write_atomically};
use super::limits::LARGEST_RECORD;
use super::vendor_dir::{DAMAGED, VendorProblem, verify_file};
use crate::model::sha256::is_sha256_hex;

/// The directory of the records, by the hash of the inputs.
const LAYERS: &str = "layers";

fn path(folder: &Utf8Path, key: &str) -> Utf8PathBuf {
    folder.join(LAYERS).join(key)
}

/// Records the layers of a key: the SHA-256 of each tar, hex, lowest first.
pub(crate) fn write(folder: &Utf8Path, key: &str, layers: &[&str]) -> Result<(), StoreError> {
    let lines: String = layers.iter().flat_map(|sha256| [*sha256, "\n"]).collect();
    write_atomically(&path(folder, key), lines.as_bytes())
}

/// Returns the layers of a key; `None`: there is no record, or an invalid one.
pub(crate) fn read(folder: &Utf8Path, key: &str) -> Option<Vec<String>> {
    let text = read_text(&path(folder, key), LARGEST_RECORD).ok()?;
    text.lines().map(|line| is_sha256_hex(line).then(|| line.to_owned())).collect()
}

/// Reads every layer of a directory; returns how many there are, and the missing or damaged ones.
pub(crate) fn check(folder: &Utf8Path) -> (usize, Vec<VendorProblem>) {
    let (mut all, mut problems) = (BTreeSet::new(), Vec::new());
    for entry in fs_err::read_dir(folder.join(LAYERS)).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !is_sha256_hex(&name) {
            continue;
        }
        let Some(layers) = read(folder, &name) else {
            let (file, path) = ("a record of layers".to_owned(), Some(format!("{LAYERS}/{name}")));
            problems.push(VendorProblem { what: DAMAGED, file, path });
            continue;
        };
        all.extend(layers);
    }
    let wrong = |sha256: &String| {
        let what = verify_file(folder, sha256).err()?;
        Some(VendorProblem::of(what, format!("the layer {sha256}"), sha256))
    };
    problems.extend(all.iter().filter_map(wrong));
    (all.len(), problems)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::vendor_files::place;
    use crate::model::sha256::sha256_hex;

    #[test]
    fn layers_are_read_as_written_and_every_fault_of_a_directory_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let (key, one, two) = ("ab".repeat(32), sha256_hex(b"one"), sha256_hex(b"two"));
        assert_eq!((read(root, &key), check(root).0), (None, 0));
        write(root, &key, &[&one, &two]).expect("written");
        write(root, &"cd".repeat(32), &[]).expect("written");
        assert_eq!(read(root, &key), Some(vec![one.clone(), two.clone()]));
        assert_eq!(read(root, &"cd".repeat(32)), Some(Vec::new()));
        let what = || -> Vec<_> { check(root).1.iter().map(|problem| problem.what).collect() };
        assert_eq!((check(root).0, what()), (2, vec!["missing", "missing"]));
        write_atomically(&root.join(place(&one)), b"one").expect("written");
        write_atomically(&root.join(place(&two)), b"other").expect("written");
        assert_eq!(what(), ["damaged"]);
        write_atomically(&root.join(place(&two)), b"two").expect("written");
        assert_eq!(what(), Vec::<&str>::new());
        write_atomically(&path(root, &key), b"../../etc/passwd\n").expect("written");
        assert_eq!((read(root, &key), what()), (None, vec!["damaged"]));
    }
}

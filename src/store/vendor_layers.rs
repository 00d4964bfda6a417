//! Finished layers in a vendor directory: for the hash of their inputs the digests of their tars, which lie there as files.

use std::collections::BTreeSet;
use std::io::ErrorKind;

use camino::{Utf8Path, Utf8PathBuf};

use super::files::write_atomically;
use super::limits::LARGEST_RECORD;
use super::regular_file::read_regular_text;
use super::vendor_dir::{DAMAGED, MISSING, VendorError, VendorProblem, verify_file};
use crate::model::sha256::is_sha256_hex;

/// The directory of the records, by the hash of the inputs.
const LAYERS: &str = "layers";
/// A list of all records in it: one that is deleted is missed.
const LIST: &str = "list";

fn path(folder: &Utf8Path, key: &str) -> Utf8PathBuf {
    folder.join(LAYERS).join(key)
}

/// Records the layers of a key: the SHA-256 of each tar, hex, lowest first.
pub(crate) fn write(folder: &Utf8Path, key: &str, layers: &[&str]) -> Result<(), VendorError> {
    let mut keys = listed(folder)?;
    if keys.insert(key.to_owned()) {
        let text: String = keys.iter().flat_map(|key| [key, "\n"]).collect();
        write_atomically(&path(folder, LIST), text.as_bytes())?;
    }
    let lines: String = layers.iter().flat_map(|sha256| [*sha256, "\n"]).collect();
    Ok(write_atomically(&path(folder, key), lines.as_bytes())?)
}

/// Returns the layers of a key; `None`: there never was a record. A damaged or deleted one is an error.
pub(crate) fn read(folder: &Utf8Path, key: &str) -> Result<Option<Vec<String>>, VendorError> {
    match lines(folder, key)? {
        Found::Lines(layers) => Ok(Some(layers)),
        Found::Nothing if !listed(folder)?.contains(key) => Ok(None),
        Found::Nothing => Err(wrong_record(folder, MISSING, key)),
        Found::Damaged => Err(wrong_record(folder, DAMAGED, key)),
    }
}

/// What a record has.
enum Found {
    Lines(Vec<String>),
    Nothing,
    Damaged,
}

/// The hashes of a record, one a line.
fn lines(folder: &Utf8Path, name: &str) -> Result<Found, VendorError> {
    let text = match read_regular_text(&path(folder, name), LARGEST_RECORD) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::FileTooLarge) => {
            return Ok(Found::Damaged);
        }
        Err(error) => return Err(VendorError::Unreadable(error)),
    };
    let lines = text.lines().map(|line| is_sha256_hex(line).then(|| line.to_owned()));
    Ok(lines.collect::<Option<_>>().map_or(Found::Damaged, Found::Lines))
}

/// The keys that have a record.
fn listed(folder: &Utf8Path) -> Result<BTreeSet<String>, VendorError> {
    match lines(folder, LIST)? {
        Found::Lines(keys) => Ok(keys.into_iter().collect()),
        Found::Nothing => Ok(BTreeSet::new()),
        Found::Damaged => Err(wrong_record(folder, DAMAGED, LIST)),
    }
}

fn record_problem(what: &'static str, name: &str) -> VendorProblem {
    VendorProblem { what, file: "a record of layers".to_owned(), path: Some(format!("{LAYERS}/{name}")) }
}

fn wrong_record(folder: &Utf8Path, what: &'static str, name: &str) -> VendorError {
    VendorError::Layers { folder: folder.to_string(), wrong: vec![record_problem(what, name).text()] }
}

/// Reads every layer of a directory; returns how many there are, and the missing or damaged ones.
pub(crate) fn check(folder: &Utf8Path) -> Result<(usize, Vec<VendorProblem>), VendorError> {
    let (mut all, mut problems) = (BTreeSet::new(), Vec::new());
    let mut keys = match lines(folder, LIST)? {
        Found::Lines(keys) => keys.into_iter().collect(),
        Found::Nothing => BTreeSet::new(),
        Found::Damaged => {
            problems.push(record_problem(DAMAGED, LIST));
            BTreeSet::new()
        }
    };
    match fs_err::read_dir(folder.join(LAYERS)) {
        Ok(entries) => {
            for entry in entries {
                let name = entry.map_err(VendorError::Unreadable)?.file_name();
                keys.extend(name.to_str().filter(|name| is_sha256_hex(name)).map(str::to_owned));
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(VendorError::Unreadable(error)),
    }
    for key in keys {
        match lines(folder, &key)? {
            Found::Lines(layers) => all.extend(layers),
            Found::Nothing => problems.push(record_problem(MISSING, &key)),
            Found::Damaged => problems.push(record_problem(DAMAGED, &key)),
        }
    }
    let wrong = |sha256: &String| {
        let what = verify_file(folder, sha256).err()?;
        Some(VendorProblem::of(what, format!("the layer {sha256}"), sha256))
    };
    problems.extend(all.iter().filter_map(wrong));
    Ok((all.len(), problems))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test damages files")]
mod tests {
    use super::*;
    use crate::model::lock::vendor_files::place;
    use crate::model::sha256::sha256_hex;

    #[test]
    fn layers_are_read_as_written_and_every_fault_of_a_directory_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let (key, one, two) = ("ab".repeat(32), sha256_hex(b"one"), sha256_hex(b"two"));
        let read = |key: &str| read(root, key).map_err(|error| error.to_string());
        let check = || check(root).expect("readable");
        assert_eq!((read(&key), check().0), (Ok(None), 0));
        write(root, &key, &[&one, &two]).expect("written");
        write(root, &"cd".repeat(32), &[]).expect("written");
        assert_eq!(read(&key), Ok(Some(vec![one.clone(), two.clone()])));
        assert_eq!(read(&"cd".repeat(32)), Ok(Some(Vec::new())));
        let what = || -> Vec<_> { check().1.iter().map(|problem| problem.what).collect() };
        assert_eq!((check().0, what()), (2, vec!["missing", "missing"]));
        write_atomically(&root.join(place(&one)), b"one").expect("written");
        write_atomically(&root.join(place(&two)), b"other").expect("written");
        assert_eq!(what(), ["damaged"]);
        write_atomically(&root.join(place(&two)), b"two").expect("written");
        assert_eq!(what(), Vec::<&str>::new());
        for bytes in [&b"../../etc/passwd\n"[..], b"\xff\n"] {
            write_atomically(&path(root, &key), bytes).expect("written");
            let error = read(&key).expect_err("not a record");
            assert!(error.contains(&format!("a record of layers is damaged (layers/{key})")), "{error}");
            assert_eq!(what(), ["damaged"]);
        }
    }

    #[test]
    fn deleted_or_unreadable_record_is_not_absent() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let key = "ab".repeat(32);
        write(root, &key, &[]).expect("written");
        fs_err::remove_file(path(root, &key)).expect("ours");
        let error = read(root, &key).expect_err("it was there").to_string();
        assert!(error.contains("a record of layers is missing"), "{error}");
        let (_, problems) = check(root).expect("readable");
        assert_eq!(problems, [record_problem(MISSING, &key)]);
        assert!(read(root, &"cd".repeat(32)).expect("never there").is_none());
        // A file in place of the directory.
        fs_err::remove_dir_all(root.join(LAYERS)).expect("ours");
        fs_err::write(root.join(LAYERS), b"").expect("ours");
        assert!(matches!(read(root, &key), Err(VendorError::Unreadable(_))));
        assert!(matches!(check(root), Err(VendorError::Unreadable(_))));
    }
}

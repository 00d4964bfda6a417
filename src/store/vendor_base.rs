//! Base images in a vendor directory: their records and archives.
#![expect(clippy::disallowed_methods, reason = "edge: reads the directory")]

use std::io::Read as _;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::vendor_dir::{VendorProblem, verify_file};
use crate::model::lock::{BaseProvider, Lock, LockedBase};
use crate::model::sha256::is_sha256_hex;
use crate::model::versions::Machine;

/// The directory of the records, by the digests in locks.
const BASES: &str = "bases";

/// The archive of a base image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// The digest in the lock.
    pub(crate) digest: String,
    /// `debian:12`.
    pub(crate) name: String,
    /// The architecture: one digest may have several.
    pub(crate) machine: Machine,
    /// SHA-256 of the archive as `docker save` writes it, hex.
    pub(crate) archive: String,
}

/// Returns the digest of a base that is an image.
pub(crate) fn digest(base: &LockedBase) -> Option<&str> {
    base.digest.as_deref().filter(|_| base.provider == BaseProvider::Image)
}

/// Returns the path of a record.
pub(crate) fn record_path(folder: &Utf8Path, digest: &str, machine: Machine) -> Utf8PathBuf {
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    folder.join(BASES).join(format!("{hex}-{machine}.toml"))
}

/// Parses a record; one without a valid digest and hash counts as missing.
fn parse(text: &str) -> Option<Record> {
    let record: Record = toml::from_str(text).ok()?;
    let digest = record.digest.strip_prefix("sha256:")?;
    (is_sha256_hex(digest) && is_sha256_hex(&record.archive)).then_some(record)
}

/// Returns the record of a digest.
pub(crate) fn read(folder: &Utf8Path, digest: &str, machine: Machine) -> Option<Record> {
    let text = fs_err::read_to_string(record_path(folder, digest, machine)).ok()?;
    parse(&text).filter(|record| record.digest == digest && record.machine == machine)
}

/// Returns the records of a directory, except invalid ones.
pub(crate) fn records(folder: &Utf8Path) -> Vec<Record> {
    let entries = fs_err::read_dir(folder.join(BASES)).into_iter().flatten().flatten();
    entries.filter_map(|entry| parse(&fs_err::read_to_string(entry.path()).ok()?)).collect()
}

/// Returns the problem of a directory's copy of a base image: `missing` or `damaged`.
pub(crate) fn fault(folder: &Utf8Path, lock: &Lock) -> Option<VendorProblem> {
    let digest = digest(&lock.base)?;
    let file = format!("{}@{digest}", lock.base.name);
    let Some(record) = read(folder, digest, lock.stack.machine) else {
        return Some(VendorProblem { what: "missing", file, path: None });
    };
    let what = verify_file(folder, &record.archive).err()?;
    Some(VendorProblem::of(what, file, &record.archive))
}

/// Returns the tags that loading an archive would set.
pub(crate) fn tags_in(archive: &Utf8Path) -> std::io::Result<Vec<String>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Entry {
        #[serde(default)]
        repo_tags: Option<Vec<String>>,
    }
    for entry in tar::Archive::new(fs_err::File::open(archive)?).entries()? {
        let entry = entry?;
        if entry.path()?.as_os_str() == "manifest.json" {
            let entries: Vec<Entry> = serde_json::from_reader(entry.take(1 << 20))?;
            return Ok(entries.into_iter().filter_map(|entry| entry.repo_tags).flatten().collect());
        }
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_record_counts_as_missing() {
        let record = |digest: &str, archive: &str| {
            let text = format!(
                "digest = \"{digest}\"\nname = \"debian:12\"\nmachine = \"x86_64\"\narchive = \"{archive}\"\n"
            );
            parse(&text).is_some()
        };
        let hex = "ab".repeat(32);
        assert!(record(&format!("sha256:{hex}"), &hex));
        for (digest, archive) in [
            (format!("sha256:{hex}"), String::new()),
            (format!("sha256:{hex}"), "a".to_owned()),
            (format!("sha256:{hex}"), "\u{e9}".repeat(32)),
            (hex.clone(), hex.clone()),
        ] {
            assert!(!record(&digest, &archive), "{digest} {archive}");
        }
        assert_eq!(parse("no record"), None);
    }

    #[test]
    fn tags_of_an_archive_are_read_without_loading_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = Utf8PathBuf::from_path_buf(folder.path().join("image.tar")).expect("UTF-8");
        let mut tar = tar::Builder::new(fs_err::File::create(&path).expect("ours").into_file());
        let text = br#"[{"Config":"x.json","RepoTags":["envforge-base:ab","debian:12"]},{"RepoTags":null}]"#;
        for (name, content) in [("x.json", b"{}".as_slice()), ("manifest.json", text)] {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            tar.append_data(&mut header, name, content).expect("written");
        }
        drop(tar.into_inner().expect("written"));
        assert_eq!(tags_in(&path).expect("readable"), ["envforge-base:ab", "debian:12"]);
    }
}

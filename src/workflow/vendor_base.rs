//! The base of a vendor folder that is an image of a registry: saved whole, loaded again where there is no registry.
#![expect(clippy::disallowed_methods, reason = "edge: reads and writes the folder")]

use std::io::Read as _;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::base::{Base, private_tag};
use crate::engine::ImageInfo;
use crate::model::lock::vendor_files::place;
use crate::model::lock::{BaseProvider, Lock, LockedBase};
use crate::model::sha256::is_sha256_hex;
use crate::model::versions::Machine;
use crate::report::Event;
use crate::store::{copy_atomically, write_atomically};
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;
use crate::workflow::vendor_files::{VendorProblem, hash, verify_file};

/// The records lie here, by the digests that locks name.
const BASES: &str = "bases";

/// Which file of the folder holds a base image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    /// What the lock names it by.
    digest: String,
    /// `debian:12`.
    name: String,
    /// The processor: one digest may stand for several.
    machine: Machine,
    /// SHA-256 of the archive as `docker save` writes it, hex.
    archive: String,
}

/// A base image in the folder: its file and size.
pub(crate) struct SavedBase {
    pub(crate) bytes: u64,
    pub(crate) new: bool,
}

/// The digest of a base that is an image.
fn digest(base: &LockedBase) -> Option<&str> {
    base.digest.as_deref().filter(|_| base.provider == BaseProvider::Image)
}

fn record_path(folder: &Utf8Path, digest: &str, machine: Machine) -> Utf8PathBuf {
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    folder.join(BASES).join(format!("{hex}-{machine}.toml"))
}

/// A record that can be relied on: its digest and hash are such. Anything else counts as missing.
fn parse(text: &str) -> Option<Record> {
    let record: Record = toml::from_str(text).ok()?;
    let digest = record.digest.strip_prefix("sha256:")?;
    (is_sha256_hex(digest) && is_sha256_hex(&record.archive)).then_some(record)
}

fn read(folder: &Utf8Path, digest: &str, machine: Machine) -> Option<Record> {
    let text = fs_err::read_to_string(record_path(folder, digest, machine)).ok()?;
    parse(&text).filter(|record| record.digest == digest && record.machine == machine)
}

/// Puts the base image into the folder, unless it lies there; `None` for a base made of packages.
pub(crate) async fn save(
    session: &Session<'_>,
    base: &Base,
    machine: Machine,
    folder: &Utf8Path,
) -> Result<Option<SavedBase>, CommandError> {
    let locked = base.locked();
    let Some(digest) = digest(&locked) else { return Ok(None) };
    let there = read(folder, digest, machine)
        .and_then(|record| fs_err::metadata(folder.join(place(&record.archive))).ok());
    if let Some(file) = there {
        return Ok(Some(SavedBase { bytes: file.len(), new: false }));
    }
    // By a tag of its own: what is loaded again must be found, whatever engine it is.
    let tag = private_tag(digest);
    session.engine.tag(&base.image_id, &tag).await?;
    let passing = session.store.temp_file()?;
    let path =
        Utf8Path::from_path(passing.path()).ok_or_else(|| std::io::Error::other("path is not UTF-8"))?;
    session.engine.save(&tag, path.to_owned()).await?;
    let archive = hash(&mut fs_err::File::open(path)?)?;
    let bytes = fs_err::metadata(path)?.len();
    copy_atomically(path, &folder.join(place(&archive)))?;
    let record = Record { digest: digest.to_owned(), name: base.name.clone(), machine, archive };
    let text = toml::to_string(&record).expect("texts");
    write_atomically(&record_path(folder, digest, machine), text.as_bytes())?;
    Ok(Some(SavedBase { bytes, new: true }))
}

/// What is wrong with the folder's copy of a base image: `missing` or `damaged`.
pub(crate) fn fault(folder: &Utf8Path, lock: &Lock) -> Option<VendorProblem> {
    let digest = digest(&lock.base)?;
    let file = format!("{}@{digest}", lock.base.name);
    let Some(record) = read(folder, digest, lock.stack.machine) else {
        return Some(VendorProblem { what: "missing", file, path: None });
    };
    let what = verify_file(folder, &record.archive).err()?;
    Some(VendorProblem::of(what, file, &record.archive))
}

/// Has the engine hold the folder's base images of that processor, by their private tags. One that is damaged is passed
/// over: it is told when a lock that names it is taken. Gives the name of a user's own base that the engine did not know
/// and knows now, for whoever looks into it; [`forget`] takes the name off again.
pub(crate) async fn load(
    session: &Session<'_>,
    folder: &Utf8Path,
    machine: Machine,
    named: Option<&str>,
) -> Result<Option<String>, CommandError> {
    let engine = &session.engine;
    let mut lent = None;
    for entry in fs_err::read_dir(folder.join(BASES)).into_iter().flatten().flatten() {
        let Some(record) = fs_err::read_to_string(entry.path()).ok().and_then(|text| parse(&text)) else {
            continue;
        };
        if record.machine != machine {
            continue;
        }
        let tag = private_tag(&record.digest);
        let fits = |image: &ImageInfo| image.architecture == machine.debian();
        if !engine.image(&tag).await?.is_some_and(|image| fits(&image)) {
            let Ok(archive) = verify_file(folder, &record.archive) else { continue };
            if !tags_in(&archive).is_ok_and(|tags| tags == [tag.clone()]) {
                continue;
            }
            let text = format!("loading the base {} from {folder}", record.name);
            session.reporter.report(Event::Note { text });
            engine.load(archive, Arc::clone(&session.reporter)).await?;
        }
        if named == Some(&record.name)
            && engine.image(&record.name).await?.is_none()
            && let Some(image) = engine.image(&tag).await?.filter(fits)
        {
            engine.tag(&image.id, &record.name).await?;
            lent = Some(record.name);
        }
    }
    Ok(lent)
}

/// Takes a name off again that [`load`] gave: a later lock would take it for a local image that no registry has.
pub(crate) async fn forget(session: &Session<'_>, lent: Option<String>) -> Result<(), CommandError> {
    if let Some(name) = lent {
        session.engine.remove_image(&name).await?;
    }
    Ok(())
}

/// The tags that loading an archive would set.
fn tags_in(archive: &Utf8Path) -> std::io::Result<Vec<String>> {
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
    fn a_record_that_is_none_counts_as_missing() {
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
    fn the_tags_of_an_archive_are_read_without_loading_it() {
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

//! The content digest: one SHA-256 over the contents of a file system, the same on every engine.
//!
//! The format is defined in `envforge_protocol::content`: the agent computes the digest inside an image, this module from
//! tar streams and from the records that the agent lists. Opens no file.

use std::collections::BTreeMap;
use std::io::Read;

pub(crate) use envforge_protocol::content::{ContentEntry, ContentKind, FOLDERS};
use envforge_protocol::content::{counts, is_left_out, parse_records, record};

use crate::model::bounded_tar::BoundedTar;
use crate::model::sha256::Sha256Hex;

/// A content digest that cannot be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// The archive is damaged or cut.
    #[error("cannot read the archive: {0}")]
    Archive(#[from] std::io::Error),
    /// The target of a hard link does not precede it.
    #[error("target `{target}` of hard link `{path}` not found in the archive")]
    DanglingLink {
        /// The link.
        path: String,
        /// Its target.
        target: String,
    },
    /// A file type that cannot be part of an image.
    #[error("unsupported file type of `{path}`")]
    Kind {
        /// The entry.
        path: String,
    },
}

/// The entries of a file system, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContentDigest(BTreeMap<Vec<u8>, ContentEntry>);

impl ContentDigest {
    /// Adds an entry, replaces one with the same path, and ignores paths that do not count.
    pub(crate) fn insert(&mut self, path: &[u8], entry: ContentEntry) {
        let path = relative(path);
        if !path.is_empty() && !is_left_out(path) {
            self.0.insert(path.to_owned(), entry);
        }
    }

    /// Returns the digest, in hex.
    pub fn hex(&self) -> String {
        let mut hash = Sha256Hex::default();
        for (path, entry) in &self.0 {
            hash.update(&record(path, entry));
        }
        hash.finish()
    }

    /// Returns the records that are hashed.
    pub(crate) fn records(&self) -> Vec<u8> {
        self.0.iter().flat_map(|(path, entry)| record(path, entry)).collect()
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, path: &str) {
        self.0.remove(path.as_bytes());
    }

    /// Adds the entries of another file system.
    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Parses records; `None` if they are not valid.
    pub(crate) fn from_records(records: &[u8]) -> Option<Self> {
        parse_records(records).map(Self)
    }

    /// Returns the paths in which another file system differs.
    pub(crate) fn differences(&self, other: &Self) -> Vec<ContentDifference> {
        let mut paths: Vec<_> = self.0.keys().chain(other.0.keys()).collect();
        paths.sort_unstable();
        paths.dedup();
        let what = |path: &Vec<u8>| match (self.0.get(path), other.0.get(path)) {
            (Some(_), None) => Some("removed"),
            (None, Some(_)) => Some("added"),
            (Some(one), Some(two)) if one == two => None,
            (Some(one), Some(two)) => Some(changed(one, two)),
            (None, None) => None,
        };
        let difference = |path: &Vec<u8>| Some(ContentDifference { path: lossy(path), what: what(path)? });
        paths.into_iter().filter_map(difference).collect()
    }
}

/// A path in which two file systems differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentDifference {
    /// The path, without leading `/`.
    pub path: String,
    /// The difference.
    pub what: &'static str,
}

impl std::fmt::Display for ContentDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "/{}: {}", self.path, self.what)
    }
}

/// Returns the most important property that differs.
fn changed(one: &ContentEntry, two: &ContentEntry) -> &'static str {
    use ContentKind::{File, Symlink};
    match (&one.kind, &two.kind) {
        (File { .. }, File { .. }) if one.kind != two.kind => "content differs",
        (Symlink { .. }, Symlink { .. }) if one.kind != two.kind => "target differs",
        _ if one.kind != two.kind => "type differs",
        _ if (one.uid, one.gid) != (two.uid, two.gid) => "owner differs",
        _ if one.mode != two.mode => "mode differs",
        _ => "extended attributes differ",
    }
}

/// Computes the content digest of a tar stream.
pub fn content_digest_of_tar(archive: impl Read) -> Result<String, ContentError> {
    Ok(content_of_tar(archive)?.hex())
}

/// Reads the entries of a tar stream.
pub(crate) fn content_of_tar(archive: impl Read) -> Result<ContentDigest, ContentError> {
    let mut archive = BoundedTar::new(archive);
    let mut content = ContentDigest::default();
    // Hard links may point at files that are themselves left out.
    let mut files: BTreeMap<Vec<u8>, File> = BTreeMap::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = relative(&entry.path_bytes()).to_owned();
        let mut xattrs = counted_xattrs(&mut entry)?;
        let kind = if entry.header().entry_type() == tar::EntryType::Link {
            let file = linked(&entry, &path, &files)?;
            // tar writes them with the first name only.
            xattrs = file.xattrs;
            file.kind
        } else {
            kind_of(&mut entry, &path)?
        };
        if matches!(kind, ContentKind::File { .. }) {
            files.insert(path.clone(), File { kind: kind.clone(), xattrs: xattrs.clone() });
        }
        let header = entry.header();
        // Some engines write the kind into the mode too.
        let (mode, uid, gid) = (header.mode()? & 0o7777, header.uid()?, header.gid()?);
        content.insert(&path, ContentEntry { kind, mode, uid, gid, xattrs });
    }
    Ok(content)
}

/// The properties that all names of a file share.
#[derive(Clone)]
struct File {
    kind: ContentKind,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Returns the target of a hard link.
fn linked(
    entry: &tar::Entry<'_, impl Read>,
    path: &[u8],
    files: &BTreeMap<Vec<u8>, File>,
) -> Result<File, ContentError> {
    let target = entry.link_name_bytes().map(std::borrow::Cow::into_owned).unwrap_or_default();
    let dangling = || ContentError::DanglingLink { path: lossy(path), target: lossy(&target) };
    files.get(relative(&target)).cloned().ok_or_else(dangling)
}

fn kind_of(entry: &mut tar::Entry<'_, impl Read>, path: &[u8]) -> Result<ContentKind, ContentError> {
    use tar::EntryType as Type;
    let target = entry.link_name_bytes().map(std::borrow::Cow::into_owned).unwrap_or_default();
    let device = |entry: &tar::Entry<'_, _>| -> std::io::Result<(u32, u32)> {
        let header: &tar::Header = entry.header();
        Ok((header.device_major()?.unwrap_or(0), header.device_minor()?.unwrap_or(0)))
    };
    Ok(match entry.header().entry_type() {
        Type::Regular | Type::Continuous | Type::GNUSparse => {
            let mut hash = Sha256Hex::default();
            let size = std::io::copy(entry, &mut hash)?;
            ContentKind::File { size, sha256: hash.finish() }
        }
        Type::Directory => ContentKind::Directory,
        Type::Symlink => ContentKind::Symlink { target },
        Type::Char => device(entry).map(|(major, minor)| ContentKind::Character(major, minor))?,
        Type::Block => device(entry).map(|(major, minor)| ContentKind::Block(major, minor))?,
        Type::Fifo => ContentKind::Pipe,
        _ => return Err(ContentError::Kind { path: lossy(path) }),
    })
}

/// Returns the extended attributes that count, from an entry's PAX records.
pub(crate) fn counted_xattrs(
    entry: &mut tar::Entry<'_, impl Read>,
) -> std::io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let Some(records) = entry.pax_extensions()? else { return Ok(found) };
    for record in records {
        let record = record?;
        if let Some(name) = record.key_bytes().strip_prefix(b"SCHILY.xattr.")
            && counts(name)
        {
            found.insert(name.to_owned(), record.value_bytes().to_owned());
        }
    }
    Ok(found)
}

/// Strips leading `/` and `./` and trailing `/`.
pub(crate) fn relative(path: &[u8]) -> &[u8] {
    let mut path = path;
    while let Some(rest) = path.strip_prefix(b"./").or_else(|| path.strip_prefix(b"/")) {
        path = rest;
    }
    while let Some(rest) = path.strip_suffix(b"/") {
        path = rest;
    }
    if path == b"." { b"" } else { path }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use envforge_protocol::content::TEST_VECTOR as VECTOR;

    use super::*;

    struct Item<'a> {
        path: &'a str,
        kind: tar::EntryType,
        mode: u32,
        owner: u64,
        link: &'a str,
        content: &'a [u8],
        capability: Option<&'a [u8]>,
        mtime: u64,
    }

    fn item(path: &str, kind: tar::EntryType, mode: u32) -> Item<'_> {
        Item { path, kind, mode, owner: 0, link: "", content: b"", capability: None, mtime: 0 }
    }

    fn archive(items: &[Item<'_>]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for item in items {
            if let Some(value) = item.capability {
                let records = [("SCHILY.xattr.security.capability", value), ("SCHILY.xattr.trusted.x", b"y")];
                builder.append_pax_extensions(records).expect("records");
            }
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(item.kind);
            header.set_mode(item.mode);
            header.set_uid(item.owner);
            header.set_gid(item.owner);
            header.set_mtime(item.mtime);
            header.set_size(item.content.len() as u64);
            if item.kind == tar::EntryType::Char {
                header.set_device_major(1).and_then(|()| header.set_device_minor(3)).expect("a device");
            }
            if item.link.is_empty() {
                builder.append_data(&mut header, item.path, item.content).expect("entry");
            } else {
                builder.append_link(&mut header, item.path, item.link).expect("link");
            }
        }
        builder.into_inner().expect("archive")
    }

    fn digest(items: &[Item<'_>]) -> Result<String, ContentError> {
        content_digest_of_tar(archive(items).as_slice())
    }

    fn vector_items() -> Vec<Item<'static>> {
        use tar::EntryType as T;
        vec![
            item("etc/", T::Directory, 0o755),
            Item { content: b"hello\n", ..item("etc/motd", T::Regular, 0o644) },
            Item { owner: 1000, link: "etc/motd", ..item("motd", T::Symlink, 0o777) },
            Item { capability: Some(&[1, 2]), ..item("ping", T::Regular, 0o755) },
        ]
    }

    #[test]
    fn published_vector_has_its_digest() {
        assert_eq!(digest(&vector_items()).expect("digest"), VECTOR);
        let content = content_of_tar(archive(&vector_items()).as_slice()).expect("content");
        assert_eq!(content.0, envforge_protocol::content::test_vector());
    }

    #[test]
    fn order_times_and_left_out_paths_do_not_count() {
        use tar::EntryType as T;
        let mut items = vector_items();
        items.reverse();
        for item in &mut items {
            item.mtime = 99;
        }
        items.push(item("./", T::Directory, 0o700));
        items.push(item("tmp/x", T::Regular, 0o600));
        items.push(Item { content: b"me", ..item("./etc/hostname", T::Regular, 0o644) });
        assert_eq!(digest(&items).expect("digest"), VECTOR);
        items.push(item("tmp", T::Directory, 0o1777));
        assert_ne!(digest(&items).expect("digest"), VECTOR);
    }

    #[test]
    fn every_property_counts() {
        let plain = digest(&vector_items()).expect("digest");
        for change in [
            (|items: &mut Vec<Item<'_>>| items[1].content = b"hellO\n") as fn(&mut Vec<Item<'_>>),
            |items| items[1].mode = 0o600,
            |items| items[1].owner = 7,
            |items| items[2].link = "etc/mot",
            |items| items[3].capability = Some(&[1, 3]),
            |items| items[3].path = "pong",
            |items| items[3].kind = tar::EntryType::Fifo,
        ] {
            let mut items = vector_items();
            change(&mut items);
            assert_ne!(digest(&items).expect("digest"), plain);
        }
    }

    #[test]
    fn hard_link_has_the_content_of_its_target() {
        use tar::EntryType as T;
        let file = |path| Item { content: b"same", ..item(path, T::Regular, 0o644) };
        let linked = [file("a"), Item { link: "./a", ..item("b", T::Link, 0o644) }];
        assert_eq!(digest(&linked).expect("linked"), digest(&[file("a"), file("b")]).expect("copied"));
        let capable = Item { capability: Some(&[1]), ..file("a") };
        let capable_linked =
            digest(&[capable, Item { link: "a", ..item("b", T::Link, 0o644) }]).expect("linked");
        let both =
            [Item { capability: Some(&[1]), ..file("a") }, Item { capability: Some(&[1]), ..file("b") }];
        assert_eq!(capable_linked, digest(&both).expect("copied"), "its attributes are the file's");
        let dangling = digest(&linked[1..]).expect_err("dangling");
        assert!(matches!(dangling, ContentError::DanglingLink { .. }), "{dangling}");
    }

    #[test]
    fn records_parse_back_and_hash_to_the_digest() {
        let mut items = vector_items();
        items.push(item("pipe", tar::EntryType::Fifo, 0o600));
        items.push(item("null", tar::EntryType::Char, 0o666));
        items[0].mode = 0o40_755;
        let content = content_of_tar(archive(&items).as_slice()).expect("content");
        let records = content.records();
        assert_eq!(crate::model::sha256::sha256_hex(&records), content.hex());
        assert_eq!(ContentDigest::from_records(&records), Some(content), "and nothing differs");
        for cut in 1..records.len() {
            let read = ContentDigest::from_records(&records[..cut]);
            assert!(
                read.is_none_or(|read| read.hex() == crate::model::sha256::sha256_hex(&records[..cut])),
                "{cut}"
            );
        }
    }

    #[test]
    fn differences_name_path_and_property() {
        let content = |items: &[Item<'_>]| content_of_tar(archive(items).as_slice()).expect("content");
        let before = content(&vector_items());
        let mut items = vector_items();
        items[1].content = b"hellO\n";
        items[2].link = "etc/mot";
        items[3].path = "pong";
        items[0].owner = 7;
        let after = content(&items);
        let said: Vec<_> = before.differences(&after).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "/etc: owner differs",
                "/etc/motd: content differs",
                "/motd: target differs",
                "/ping: removed",
                "/pong: added"
            ]
        );
        assert_eq!(before.differences(&before), []);
    }

    #[test]
    fn truncated_archive_is_an_error() {
        let whole = archive(&vector_items());
        let error = content_digest_of_tar(&whole[..700]).expect_err("cut");
        assert!(matches!(error, ContentError::Archive(_)), "{error}");
    }
}

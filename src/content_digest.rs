//! The content digest: one SHA-256 over what a file system holds, the same on every engine.
//!
//! Owns the algorithm (DESIGN §6). Reads tar streams given to it; opens nothing.
//!
//! # The algorithm, for those who write it again
//!
//! Every entry below `/` (not `/` itself) makes one record; records are put together in the order of their raw path
//! bytes, and the digest is the SHA-256 of the result, as lower-case hex. A record is a row of netstrings
//! (`LENGTH:BYTES,`, length in decimal):
//!
//! 1. the path, without leading `/` or `./` and without trailing `/`;
//! 2. the kind: `f` regular file, `d` directory, `l` symbolic link, `c` and `b` device, `p` named pipe;
//! 3. `mode & 07777` as four octal digits;
//! 4. the user id and 5. the group id, in decimal;
//! 6. the number of extended attributes, then for each, sorted by name: 7. its name, 8. its value. Only
//!    `security.capability` and `user.*` count;
//! 9. by kind: `f`: the size in decimal, then the SHA-256 of the content as lower-case hex; `l`: the target; `c` and `b`:
//!    `MAJOR:MINOR`; `d` and `p`: nothing.
//!
//! A hard link is a regular file with the content of its target. No times, no size of directories. A socket is an error.
//! Left out: everything below `proc`, `sys`, `dev`, `run`, `tmp` (the folders themselves count), and the paths
//! `.dockerenv`, `etc/hosts`, `etc/hostname`, `etc/resolv.conf`, `etc/mtab`.
//!
//! Test vector: directory `etc` (0755, 0:0), file `etc/motd` (0644, 0:0, content `hello\n`), symbolic link `motd`
//! (0777, 1000:1000) to `etc/motd`, and file `ping` (0755, 0:0, empty, `security.capability` = bytes 01 02) give
//! `83f01b5965ec72d7d313cd1373fabba0e65f7f0ac0b694e738b929277876c77b`.

use std::collections::BTreeMap;
use std::io::Read;

use crate::sha256::Sha256Hex;

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentKind {
    /// A regular file, hard links included.
    File {
        /// Its size in bytes.
        size: u64,
        /// SHA-256 of its content, hex.
        sha256: String,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink {
        /// Where it points, as written.
        target: Vec<u8>,
    },
    /// A character device: major, minor.
    Character(u32, u32),
    /// A block device: major, minor.
    Block(u32, u32),
    /// A named pipe.
    Pipe,
}

/// One entry of a file system, as far as it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentEntry {
    /// What it is.
    pub kind: ContentKind,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u64,
    /// Group.
    pub gid: u64,
    /// Extended attributes; those that do not count are left out.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Why there is no content digest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// The archive cannot be read.
    #[error("the archive cannot be read: {0}")]
    Archive(#[from] std::io::Error),
    /// A hard link points at nothing that came before it.
    #[error("hard link `{path}` points at `{target}`, which is not a file of the archive")]
    DanglingLink {
        /// The link.
        path: String,
        /// Its target.
        target: String,
    },
    /// Something that cannot be part of an image.
    #[error("`{path}` is of a kind that cannot be part of an image")]
    Kind {
        /// The entry.
        path: String,
    },
}

/// The entries of a file system, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContentDigest(BTreeMap<Vec<u8>, ContentEntry>);

impl ContentDigest {
    /// Adds an entry; one of the same path is replaced, one that is left out is ignored.
    pub fn insert(&mut self, path: &[u8], entry: ContentEntry) {
        let path = relative(path);
        if !path.is_empty() && !is_left_out(path) {
            self.0.insert(path.to_owned(), entry);
        }
    }

    /// The digest, hex.
    pub fn hex(&self) -> String {
        let mut hash = Sha256Hex::default();
        for (path, entry) in &self.0 {
            hash.update(&record(path, entry));
        }
        hash.finish()
    }
}

/// The content digest of a file system given as a tar stream.
pub fn content_digest_of_tar(archive: impl Read) -> Result<String, ContentError> {
    let mut archive = tar::Archive::new(archive);
    let mut content = ContentDigest::default();
    // Hard links may point at files that are themselves left out.
    let mut files: BTreeMap<Vec<u8>, ContentKind> = BTreeMap::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = relative(&entry.path_bytes()).to_owned();
        let xattrs = counted_xattrs(&mut entry)?;
        let kind = kind_of(&mut entry, &path, &files)?;
        if matches!(kind, ContentKind::File { .. }) {
            files.insert(path.clone(), kind.clone());
        }
        let header = entry.header();
        let (mode, uid, gid) = (header.mode()?, header.uid()?, header.gid()?);
        content.insert(&path, ContentEntry { kind, mode, uid, gid, xattrs });
    }
    Ok(content.hex())
}

fn kind_of(
    entry: &mut tar::Entry<'_, impl Read>,
    path: &[u8],
    files: &BTreeMap<Vec<u8>, ContentKind>,
) -> Result<ContentKind, ContentError> {
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
        Type::Link => files
            .get(relative(&target))
            .cloned()
            .ok_or_else(|| ContentError::DanglingLink { path: lossy(path), target: lossy(&target) })?,
        Type::Directory => ContentKind::Directory,
        Type::Symlink => ContentKind::Symlink { target },
        Type::Char => device(entry).map(|(major, minor)| ContentKind::Character(major, minor))?,
        Type::Block => device(entry).map(|(major, minor)| ContentKind::Block(major, minor))?,
        Type::Fifo => ContentKind::Pipe,
        _ => return Err(ContentError::Kind { path: lossy(path) }),
    })
}

/// The extended attributes that count, from an entry's PAX records.
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

fn counts(xattr: &[u8]) -> bool {
    xattr == b"security.capability" || xattr.starts_with(b"user.")
}

/// A path without leading `/` or `./` and without trailing `/`.
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

fn is_left_out(path: &[u8]) -> bool {
    const FOLDERS: [&[u8]; 5] = [b"proc/", b"sys/", b"dev/", b"run/", b"tmp/"];
    const PATHS: [&[u8]; 5] = [b".dockerenv", b"etc/hosts", b"etc/hostname", b"etc/resolv.conf", b"etc/mtab"];
    FOLDERS.iter().any(|folder| path.starts_with(folder)) || PATHS.contains(&path)
}

fn record(path: &[u8], entry: &ContentEntry) -> Vec<u8> {
    let mut record = Vec::new();
    let mut field = |bytes: &[u8]| {
        record.extend_from_slice(format!("{}:", bytes.len()).as_bytes());
        record.extend_from_slice(bytes);
        record.push(b',');
    };
    field(path);
    field(match entry.kind {
        ContentKind::File { .. } => b"f",
        ContentKind::Directory => b"d",
        ContentKind::Symlink { .. } => b"l",
        ContentKind::Character(..) => b"c",
        ContentKind::Block(..) => b"b",
        ContentKind::Pipe => b"p",
    });
    field(format!("{:04o}", entry.mode & 0o7777).as_bytes());
    field(entry.uid.to_string().as_bytes());
    field(entry.gid.to_string().as_bytes());
    let xattrs: Vec<_> = entry.xattrs.iter().filter(|(name, _)| counts(name)).collect();
    field(xattrs.len().to_string().as_bytes());
    for (name, value) in xattrs {
        field(name);
        field(value);
    }
    match &entry.kind {
        ContentKind::File { size, sha256 } => {
            field(size.to_string().as_bytes());
            field(sha256.as_bytes());
        }
        ContentKind::Symlink { target } => field(target),
        ContentKind::Character(major, minor) | ContentKind::Block(major, minor) => {
            field(format!("{major}:{minor}").as_bytes());
        }
        ContentKind::Directory | ContentKind::Pipe => {}
    }
    record
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VECTOR: &str = "83f01b5965ec72d7d313cd1373fabba0e65f7f0ac0b694e738b929277876c77b";

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
    fn the_published_vector_holds_and_stands_in_the_docs() {
        assert_eq!(digest(&vector_items()).expect("digest"), VECTOR);
        assert!(include_str!("content_digest.rs").contains(&format!("`{VECTOR}`")));
    }

    #[test]
    fn order_times_names_of_the_root_and_what_is_left_out_do_not_count() {
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
    fn a_hard_link_is_a_file_with_its_targets_content() {
        use tar::EntryType as T;
        let file = |path| Item { content: b"same", ..item(path, T::Regular, 0o644) };
        let linked = [file("a"), Item { link: "./a", ..item("b", T::Link, 0o644) }];
        assert_eq!(digest(&linked).expect("linked"), digest(&[file("a"), file("b")]).expect("copied"));
        let dangling = digest(&linked[1..]).expect_err("dangling");
        assert!(matches!(dangling, ContentError::DanglingLink { .. }), "{dangling}");
    }

    #[test]
    fn a_cut_archive_is_an_error() {
        let whole = archive(&vector_items());
        let error = content_digest_of_tar(&whole[..700]).expect_err("cut");
        assert!(matches!(error, ContentError::Archive(_)), "{error}");
    }
}

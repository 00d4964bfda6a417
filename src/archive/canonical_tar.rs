//! Canonical archives: the same files always give the same bytes.
//!
//! Owns the form of entries and their common time.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::limits::LARGEST_REWRITTEN;
use super::section::Section;
use super::tree::{Kind, Node, Tree, marker_of, parent_of};
use crate::archive::content_digest::{ContentDigest, ContentEntry, ContentError, ContentKind};
use crate::archive::scope::{Fate, MOUNTED_OVER, fate, shadow_without_day};
use crate::model::bounded::read_text_bounded;
use crate::model::sha256::{HashingReader, HashingWriter};

/// The time of every file: 1980-01-02, the first day after the oldest time a zip file can hold.
pub(crate) const TIME: u64 = 315_619_200;

/// The written archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Canonical {
    /// Content digest of the file system, hex.
    pub(crate) content: String,
    /// SHA-256 of the archive, hex.
    pub(crate) sha256: String,
}

/// Names of files by the name that a package gives them too.
pub(crate) type HardLinks = BTreeMap<Vec<u8>, Vec<u8>>;

/// Writes a newly installed system (`source`, a tar) to `out`, without the traces of its installation. Names are one file where
/// the packages say so and they are equal still: what an engine says of it depends on its storage driver.
pub(crate) fn canonicalize(
    source: File,
    out: impl Write,
    links: &HardLinks,
) -> Result<Canonical, ContentError> {
    let mut tree = Tree::default();
    let source = Section::whole(source)?;
    tree.add(&source)?;
    tree.retain(|path| fate(path) != Fate::Drop);
    for path in MOUNTED_OVER {
        if tree.has_directory(parent_of(path)) {
            tree.insert(path.to_vec(), Node::of_root(Kind::File(source.part(0, 0)), 0o644));
        }
    }
    let mut content = ContentDigest::default();
    let mut writer = Writer::new(out);
    let mut first_of: BTreeMap<&[u8], (&[u8], &Node, ContentKind)> = BTreeMap::new();
    for (path, node) in tree.iter() {
        let first = first_of.get(holder(path, links));
        let kind = if let Some((first, linked, kind)) = first
            && node.equals(linked)?
        {
            writer.write_link(path, node, first)?;
            kind.clone()
        } else {
            let kind = write_hashed(&mut writer, path, node)?;
            first_of.entry(holder(path, links)).or_insert((path, node, kind.clone()));
            kind
        };
        let Node { mode, uid, gid, xattrs, .. } = node.clone();
        content.insert(path, ContentEntry { kind, mode, uid, gid, xattrs });
    }
    Ok(Canonical { content: content.hex(), sha256: writer.finish()? })
}

/// The path that all names of a file lead to.
fn holder<'a>(path: &'a [u8], links: &'a HardLinks) -> &'a [u8] {
    let mut holder = path;
    // As many steps as there are links: a circle ends, too.
    for _ in links {
        match links.get(holder) {
            Some(target) => holder = target,
            None => break,
        }
    }
    holder
}

/// Writes a path of a system, and returns what counts of it.
fn write_hashed<W: Write>(
    writer: &mut Writer<W>,
    path: &[u8],
    node: &Node,
) -> Result<ContentKind, ContentError> {
    let kind = match &node.kind {
        Kind::File(content) => {
            let (size, sha256) = write_file_hashed(writer, path, node, content)?;
            return Ok(ContentKind::File { size, sha256 });
        }
        Kind::Symlink(target) => ContentKind::Symlink { target: target.clone() },
        _ => ContentKind::Directory,
    };
    writer.write(path, node)?;
    Ok(kind)
}

/// Returns the size and the SHA-256 of what was written.
fn write_file_hashed<W: Write>(
    writer: &mut Writer<W>,
    path: &[u8],
    node: &Node,
    content: &Section,
) -> std::io::Result<(u64, String)> {
    let rewritten = match path {
        _ if fate(path) == Fate::Empty => Some(String::new()),
        b"etc/shadow" => Some(shadow_without_day(&read_text_bounded(content.ahead(), LARGEST_REWRITTEN)?)),
        _ => None,
    };
    if let Some(text) = rewritten {
        let (size, mut hashed) = (text.len() as u64, HashingReader::new(text.as_bytes()));
        writer.write_file(path, node, size, &mut hashed)?;
        return Ok((size, hashed.finish()));
    }
    let mut hashed = HashingReader::new(content.ahead());
    writer.write_file(path, node, content.size(), &mut hashed)?;
    Ok((content.size(), hashed.finish()))
}

/// A canonical archive in the making.
pub(super) struct Writer<W: Write>(tar::Builder<HashingWriter<W>>);

impl<W: Write> Writer<W> {
    /// An empty archive.
    pub(super) fn new(out: W) -> Self {
        Self(tar::Builder::new(HashingWriter::new(out)))
    }

    /// Writes a path. Devices and pipes are an error: no package of a distribution has any.
    pub(super) fn write(&mut self, path: &[u8], node: &Node) -> Result<(), ContentError> {
        match &node.kind {
            Kind::File(content) => self.write_file(path, node, content.size(), content.ahead())?,
            Kind::Directory => {
                let mut header = header_of(node, tar::EntryType::Directory, 0);
                self.write_xattrs(node)?;
                let with_slash = [path, b"/"].concat();
                self.0.append_data(&mut header, as_path(&with_slash), std::io::empty())?;
            }
            Kind::Symlink(target) => {
                let mut header = header_of(node, tar::EntryType::Symlink, 0);
                self.0.append_link(&mut header, as_path(path), as_path(target))?;
            }
            Kind::Special(..) | Kind::Sparse => {
                return Err(ContentError::Kind { path: String::from_utf8_lossy(path).into_owned() });
            }
        }
        Ok(())
    }

    fn write_file(&mut self, path: &[u8], node: &Node, size: u64, content: impl Read) -> std::io::Result<()> {
        self.write_xattrs(node)?;
        self.0.append_data(&mut header_of(node, tar::EntryType::Regular, size), as_path(path), content)
    }

    /// Writes another name of the file at `first`.
    fn write_link(&mut self, path: &[u8], node: &Node, first: &[u8]) -> std::io::Result<()> {
        let mut header = header_of(node, tar::EntryType::Link, 0);
        self.0.append_link(&mut header, as_path(path), as_path(first))
    }

    /// Writes that a path of the layers below is gone.
    pub(super) fn write_marker(&mut self, path: &[u8]) -> std::io::Result<()> {
        self.0.append_data(
            &mut plain_header(tar::EntryType::Regular, 0),
            as_path(&marker_of(path)),
            std::io::empty(),
        )
    }

    fn write_xattrs(&mut self, node: &Node) -> std::io::Result<()> {
        let name = |name: &Vec<u8>| format!("SCHILY.xattr.{}", String::from_utf8_lossy(name));
        let names: Vec<String> = node.xattrs.keys().map(name).collect();
        if names.is_empty() {
            return Ok(());
        }
        let values = node.xattrs.values().map(Vec::as_slice);
        self.0.append_pax_extensions(names.iter().map(String::as_str).zip(values))
    }

    /// Ends the archive; returns its SHA-256, hex.
    pub(super) fn finish(self) -> std::io::Result<String> {
        let mut done = self.0.into_inner()?;
        done.flush()?;
        Ok(done.finish())
    }
}

fn header_of(node: &Node, kind: tar::EntryType, size: u64) -> tar::Header {
    let mut header = plain_header(kind, size);
    header.set_mode(node.mode);
    header.set_uid(node.uid);
    header.set_gid(node.gid);
    header
}

/// A header of a file of root that nobody else may read.
fn plain_header(kind: tar::EntryType, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o600);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(TIME);
    header.set_size(size);
    header
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::content_digest::{content_digest_of_tar, counted_xattrs};

    type Entry<'a> = (&'a str, tar::EntryType, &'a str);

    fn archive(entries: &[Entry<'_>], mtime: u64) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, kind, content) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o100_644);
            header.set_uid(0);
            header.set_gid(42);
            header.set_mtime(mtime);
            header.set_username("somebody").expect("name");
            if matches!(kind, tar::EntryType::Link | tar::EntryType::Symlink) {
                header.set_size(0);
                builder.append_link(&mut header, path, content).expect("link");
            } else {
                header.set_size(content.len() as u64);
                builder.append_data(&mut header, path, content.as_bytes()).expect("entry");
            }
        }
        builder.into_inner().expect("archive")
    }

    fn file_of(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        file
    }

    fn canonical_of(bytes: &[u8], links: &[(&str, &str)]) -> (Vec<u8>, String) {
        let links =
            links.iter().map(|(path, target)| (path.as_bytes().to_owned(), target.as_bytes().to_owned()));
        let mut out = Vec::new();
        let done = canonicalize(file_of(bytes), &mut out, &links.collect()).expect("canonical");
        assert_eq!(done.sha256, crate::model::sha256::sha256_hex(&out));
        assert_eq!(content_digest_of_tar(out.as_slice()).expect("digest"), done.content);
        (out, done.content)
    }

    fn canonical(bytes: &[u8]) -> (Vec<u8>, String) {
        canonical_of(bytes, &[])
    }

    fn listing(bytes: &[u8]) -> Vec<(String, String)> {
        let mut archive = tar::Archive::new(bytes);
        let read = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
            let mut entry = entry.expect("entry");
            assert_eq!(entry.header().mtime().expect("time"), TIME);
            assert_eq!(entry.header().username(), Ok(Some("")));
            let path = entry.path().expect("path").to_string_lossy().into_owned();
            let mut content = String::new();
            match entry.link_name().expect("link") {
                Some(target) => content = format!("-> {}", target.display()),
                None => drop(entry.read_to_string(&mut content)),
            }
            (path, content)
        };
        archive.entries().expect("entries").map(read).collect()
    }

    use tar::EntryType as T;

    #[test]
    fn archive_is_independent_of_order_and_times() {
        let one: [Entry<'_>; 3] =
            [("b", T::Regular, "2"), ("a/", T::Directory, ""), ("a/x", T::Symlink, "../b")];
        let mut two = one;
        two.reverse();
        let (first, digest) = canonical(&archive(&one, 1));
        assert_eq!(canonical(&archive(&two, 2)), (first.clone(), digest));
        let names: Vec<_> = listing(&first).into_iter().map(|(path, _)| path).collect();
        assert_eq!(names, ["a/", "a/x", "b"]);
    }

    /// However a storage driver shows the names: all as one file, some, or none.
    #[test]
    fn names_are_one_file_where_the_packages_say_so_and_they_are_equal() {
        let links = [("m", "z"), ("z", "a"), ("other", "a"), ("circle", "circle")];
        let other: Entry<'_> = ("other", T::Regular, "another");
        let seen: [[Entry<'_>; 4]; 4] = [
            [("z", T::Regular, "same"), ("a", T::Link, "z"), ("m", T::Link, "/a"), other],
            [("a", T::Regular, "same"), ("m", T::Link, "a"), ("z", T::Link, "m"), other],
            [("a", T::Regular, "same"), ("m", T::Regular, "same"), ("z", T::Link, "m"), other],
            [("a", T::Regular, "same"), ("m", T::Regular, "same"), ("z", T::Regular, "same"), other],
        ];
        let entry = |path: &str, content: &str| (path.to_owned(), content.to_owned());
        for entries in seen {
            let (bytes, _) = canonical_of(&archive(&entries, 1), &links);
            let wanted = [("a", "same"), ("m", "-> a"), ("other", "another"), ("z", "-> a")];
            assert_eq!(listing(&bytes), wanted.map(|(path, content)| entry(path, content)));
            let (bytes, _) = canonical_of(&archive(&entries, 1), &links[1..3]);
            let wanted = [("a", "same"), ("m", "same"), ("other", "another"), ("z", "-> a")];
            assert_eq!(listing(&bytes), wanted.map(|(path, content)| entry(path, content)));
        }
    }

    #[test]
    fn machine_specific_files_are_dropped_or_emptied() {
        let (bytes, _) = canonical(&archive(
            &[
                ("./", T::Directory, ""),
                (".dockerenv", T::Regular, ""),
                ("etc/hostname", T::Symlink, "4f2a"),
                ("etc/machine-id", T::Regular, "4f2a"),
                ("etc/passwd-", T::Regular, "old"),
                ("proc/", T::Directory, ""),
                ("proc/version", T::Regular, "mine"),
                ("usr/bin/sh.distrib", T::Symlink, "dash"),
                ("usr/bin/", T::Directory, ""),
                ("var/cache/debconf/config.dat-old", T::Regular, "old"),
                ("var/cache/ldconfig/aux-cache", T::Regular, "inodes"),
                ("var/lib/dpkg/status", T::Regular, "kept"),
                ("var/lib/dpkg/status-old", T::Regular, "old"),
                ("var/log/dpkg.log", T::Regular, "now"),
                ("var/log/wtmp", T::Regular, "now"),
            ],
            1,
        ));
        let kept = |path: &str, content: &str| (path.to_owned(), content.to_owned());
        let mut archive = tar::Archive::new(bytes.as_slice());
        let modes = archive
            .entries()
            .expect("entries")
            .map(|entry| entry.expect("entry").header().mode().expect("mode"));
        assert_eq!(
            modes.take(3).collect::<Vec<_>>(),
            [0o755, 0o644, 0o644],
            "whatever an engine gave the second"
        );
        assert_eq!(
            listing(&bytes)
                .into_iter()
                .filter(|(path, _)| path == "proc/" || !path.ends_with('/'))
                .collect::<Vec<_>>(),
            [
                kept("etc/hostname", ""),
                kept("etc/hosts", ""),
                kept("etc/machine-id", ""),
                kept("etc/resolv.conf", ""),
                kept("proc/", ""),
                kept("var/lib/dpkg/status", "kept"),
                kept("var/log/wtmp", ""),
            ]
        );
    }

    #[test]
    fn shadow_has_one_fixed_day() {
        let shadow = "root:*:20778:0:99999:7:::\nold:!::0:::::\n";
        let (bytes, _) = canonical(&archive(&[("etc/shadow", T::Regular, shadow)], 1));
        let shadow = listing(&bytes).into_iter().find(|(path, _)| path == "etc/shadow").expect("kept");
        assert_eq!(shadow.1, "root:*:3653:0:99999:7:::\nold:!::0:::::\n");
    }

    #[test]
    fn file_capabilities_are_kept() {
        let mut builder = tar::Builder::new(Vec::new());
        builder
            .append_pax_extensions([
                ("SCHILY.xattr.security.capability", &[1_u8, 0, 2][..]),
                ("mtime", b"1.5"),
            ])
            .expect("records");
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        header.set_mode(0o755);
        header.set_uid(0);
        header.set_gid(0);
        builder.append_data(&mut header, "ping", std::io::empty()).expect("entry");
        let (bytes, _) = canonical(&builder.into_inner().expect("archive"));
        let mut archive = tar::Archive::new(bytes.as_slice());
        let mut entry = archive.entries().expect("entries").next().expect("one").expect("entry");
        let xattrs = counted_xattrs(&mut entry).expect("xattrs");
        assert_eq!(xattrs.get(b"security.capability".as_slice()), Some(&vec![1, 0, 2]));
    }

    #[test]
    fn rejects_dangling_links_and_devices() {
        for entries in [[("a", T::Link, "gone")], [("d", T::Block, "")]] {
            let error = canonicalize(file_of(&archive(&entries, 1)), Vec::new(), &HardLinks::new());
            assert!(error.is_err(), "{entries:?}");
        }
    }
}

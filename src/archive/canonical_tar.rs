//! Canonical archives: the same installed packages, or the same layer, always give the same bytes.
//!
//! Owns the order of files and their common time.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::limits::LARGEST_REWRITTEN;
use crate::archive::content_digest::{
    ContentDigest, ContentEntry, ContentError, ContentKind, counted_xattrs, relative,
};
use crate::archive::scope::{Fate, Scope, shadow_without_day};
use crate::model::bounded::read_text_bounded;
use crate::model::bounded_tar::BoundedTar;
use crate::model::sha256::{HashingReader, HashingWriter};

/// The time of every file: 1980-01-02, the first day after the oldest time a zip file can hold.
pub(crate) const TIME: u64 = 315_619_200;
/// One entry of the source archive.
struct Node {
    header: tar::Header,
    link: Vec<u8>,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    offset: u64,
}

/// The written archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Canonical {
    /// Content digest of the file system, hex.
    pub(crate) content: String,
    /// SHA-256 of the archive, hex.
    pub(crate) sha256: String,
}

/// A canonical archive in the making and the archive it is made of.
struct Writer<W: Write, R> {
    tar: tar::Builder<W>,
    source: R,
    scope: Scope,
}

/// Writes the canonical archive of `source` to `out`.
pub(crate) fn canonicalize(
    mut source: impl Read + Seek,
    out: impl Write,
    scope: Scope,
) -> Result<Canonical, ContentError> {
    let (nodes, groups) = read_nodes(&mut source, scope)?;
    let mut content = ContentDigest::default();
    let tar = tar::Builder::new(HashingWriter::new(out));
    let mut writer = Writer { tar, source, scope };
    let mut first_of: BTreeMap<&[u8], (&[u8], ContentKind)> = BTreeMap::new();
    for (path, node) in &nodes {
        let group = groups.get(path).map(Vec::as_slice);
        if let Some((first, kind)) = group.and_then(|group| first_of.get(group)) {
            append_link(&mut writer.tar, path, node, tar::EntryType::Link, first)?;
            content.insert(path, entry_of(node, kind.clone())?);
            continue;
        }
        // The content of a linked file is at its first path of the source archive.
        let holder = group.and_then(|group| nodes.get(group)).unwrap_or(node);
        let kind = writer.write(path, node, holder)?;
        if let Some(group) = group {
            first_of.insert(group, (path, kind.clone()));
        }
        content.insert(path, entry_of(node, kind)?);
    }
    let mut done = writer.tar.into_inner()?;
    done.flush()?;
    Ok(Canonical { content: content.hex(), sha256: done.finish() })
}

type Nodes = BTreeMap<Vec<u8>, Node>;
/// For each hard-linked path, the path with the content.
type Links = BTreeMap<Vec<u8>, Vec<u8>>;

/// Returns all entries that are not dropped.
fn read_nodes(source: &mut (impl Read + Seek), scope: Scope) -> Result<(Nodes, Links), ContentError> {
    let (mut nodes, mut groups) = (Nodes::new(), Links::new());
    source.seek(SeekFrom::Start(0))?;
    let mut archive = BoundedTar::new(source);
    for entry in archive.entries_with_seek()? {
        let mut entry = entry?;
        let path = relative(&entry.path_bytes()).to_owned();
        if path.is_empty() || scope.fate(&path) == Fate::Drop {
            continue;
        }
        let link = entry.link_name_bytes().map(std::borrow::Cow::into_owned).unwrap_or_default();
        if entry.header().entry_type() == tar::EntryType::Link {
            let target = relative(&link).to_owned();
            if !nodes.contains_key(&target) {
                let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                return Err(ContentError::DanglingLink { path: lossy(&path), target: lossy(&target) });
            }
            let holder = groups.get(&target).cloned().unwrap_or_else(|| target.clone());
            groups.insert(holder.clone(), holder.clone());
            groups.insert(path.clone(), holder);
        }
        let mut xattrs = counted_xattrs(&mut entry)?;
        if let Some(holder) = groups.get(&path).and_then(|holder| nodes.get(holder)) {
            // tar writes them with the first name only.
            xattrs.clone_from(&holder.xattrs);
        }
        let (header, offset) = (entry.header().clone(), entry.raw_file_position());
        nodes.insert(path, Node { header, link, xattrs, offset });
    }
    Ok((nodes, groups))
}

fn entry_of(node: &Node, kind: ContentKind) -> std::io::Result<ContentEntry> {
    let (mode, uid, gid) = (node.header.mode()? & 0o7777, node.header.uid()?, node.header.gid()?);
    Ok(ContentEntry { kind, mode, uid, gid, xattrs: node.xattrs.clone() })
}

impl<W: Write, R: Read + Seek> Writer<W, R> {
    /// Writes one path; `holder` is the entry that has its content.
    fn write(&mut self, path: &[u8], node: &Node, holder: &Node) -> Result<ContentKind, ContentError> {
        use tar::EntryType as Type;
        match holder.header.entry_type() {
            Type::Regular | Type::Continuous => self.write_file(path, node, holder),
            Type::Directory => {
                let mut header = header_of(node, Type::Directory, 0)?;
                append_xattrs(&mut self.tar, node)?;
                let with_slash = [path, b"/"].concat();
                self.tar.append_data(&mut header, as_path(&with_slash), std::io::empty())?;
                Ok(ContentKind::Directory)
            }
            Type::Symlink => {
                append_link(&mut self.tar, path, node, Type::Symlink, &node.link)?;
                Ok(ContentKind::Symlink { target: node.link.clone() })
            }
            _ => Err(ContentError::Kind { path: String::from_utf8_lossy(path).into_owned() }),
        }
    }

    fn write_file(&mut self, path: &[u8], node: &Node, holder: &Node) -> Result<ContentKind, ContentError> {
        append_xattrs(&mut self.tar, node)?;
        self.source.seek(SeekFrom::Start(holder.offset))?;
        let incoming = (&mut self.source).take(holder.header.size()?);
        let (size, hash) = match rewritten(path, incoming, self.scope)? {
            Incoming::Bytes(bytes) => {
                append_file(&mut self.tar, path, node, bytes.len() as u64, bytes.as_slice())?
            }
            Incoming::Stream(stream, size) => append_file(&mut self.tar, path, node, size, stream)?,
        };
        Ok(ContentKind::File { size, sha256: hash })
    }
}

enum Incoming<R> {
    Bytes(Vec<u8>),
    Stream(R, u64),
}

fn rewritten<R: Read>(
    path: &[u8],
    incoming: std::io::Take<R>,
    scope: Scope,
) -> std::io::Result<Incoming<std::io::Take<R>>> {
    if scope.fate(path) == Fate::Empty {
        return Ok(Incoming::Bytes(Vec::new()));
    }
    if path == b"etc/shadow" && scope == Scope::System {
        let text = read_text_bounded(incoming, LARGEST_REWRITTEN)?;
        return Ok(Incoming::Bytes(shadow_without_day(&text).into_bytes()));
    }
    let size = incoming.limit();
    Ok(Incoming::Stream(incoming, size))
}

fn append_file(
    tar: &mut tar::Builder<impl Write>,
    path: &[u8],
    node: &Node,
    size: u64,
    content: impl Read,
) -> std::io::Result<(u64, String)> {
    let mut header = header_of(node, tar::EntryType::Regular, size)?;
    let mut hashed = HashingReader::new(content);
    tar.append_data(&mut header, as_path(path), &mut hashed)?;
    Ok((size, hashed.finish()))
}

fn append_link(
    tar: &mut tar::Builder<impl Write>,
    path: &[u8],
    node: &Node,
    kind: tar::EntryType,
    target: &[u8],
) -> std::io::Result<()> {
    let mut header = header_of(node, kind, 0)?;
    tar.append_link(&mut header, as_path(path), as_path(target))
}

fn append_xattrs(tar: &mut tar::Builder<impl Write>, node: &Node) -> std::io::Result<()> {
    let names: Vec<String> =
        node.xattrs.keys().map(|name| format!("SCHILY.xattr.{}", String::from_utf8_lossy(name))).collect();
    if names.is_empty() {
        return Ok(());
    }
    tar.append_pax_extensions(names.iter().map(String::as_str).zip(node.xattrs.values().map(Vec::as_slice)))
}

fn header_of(node: &Node, kind: tar::EntryType, size: u64) -> std::io::Result<tar::Header> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(node.header.mode()? & 0o7777);
    header.set_uid(node.header.uid()?);
    header.set_gid(node.header.gid()?);
    header.set_mtime(TIME);
    header.set_size(size);
    Ok(header)
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::archive::content_digest::content_digest_of_tar;

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

    fn canonical(bytes: &[u8]) -> (Vec<u8>, String) {
        let mut out = Vec::new();
        let done = canonicalize(Cursor::new(bytes), &mut out, Scope::System).expect("canonical");
        assert_eq!(done.sha256, crate::model::sha256::sha256_hex(&out));
        (out, done.content)
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
        assert_eq!(canonical(&archive(&two, 2)), (first.clone(), digest.clone()));
        assert_eq!(content_digest_of_tar(first.as_slice()).expect("digest"), digest);
        let names: Vec<_> = listing(&first).into_iter().map(|(path, _)| path).collect();
        assert_eq!(names, ["a/", "a/x", "b"]);
    }

    #[test]
    fn first_path_of_a_hard_link_has_the_content() {
        let (one, digest_one) =
            canonical(&archive(&[("z", T::Regular, "same"), ("a", T::Link, "z"), ("m", T::Link, "/a")], 1));
        let (two, digest_two) =
            canonical(&archive(&[("a", T::Regular, "same"), ("m", T::Link, "a"), ("z", T::Link, "m")], 1));
        assert_eq!((&one, &digest_one), (&two, &digest_two));
        let linked = |path: &str, to: &str| (path.to_owned(), to.to_owned());
        assert_eq!(listing(&one), [linked("a", "same"), linked("m", "-> a"), linked("z", "-> a")]);
        assert_eq!(content_digest_of_tar(one.as_slice()).expect("digest"), digest_one);
    }

    #[test]
    fn machine_specific_files_are_dropped_or_emptied() {
        let (bytes, _) = canonical(&archive(
            &[
                ("./", T::Directory, ""),
                (".dockerenv", T::Regular, ""),
                ("etc/hostname", T::Regular, "4f2a"),
                ("etc/machine-id", T::Regular, "4f2a"),
                ("etc/passwd-", T::Regular, "old"),
                ("proc/", T::Directory, ""),
                ("proc/version", T::Regular, "mine"),
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
        assert_eq!(
            listing(&bytes),
            [
                kept("etc/hostname", ""),
                kept("etc/machine-id", ""),
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
        assert_eq!(listing(&bytes)[0].1, "root:*:3653:0:99999:7:::\nold:!::0:::::\n");
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
        let (bytes, digest) = canonical(&builder.into_inner().expect("archive"));
        assert_eq!(content_digest_of_tar(bytes.as_slice()).expect("digest"), digest);
        let mut archive = tar::Archive::new(bytes.as_slice());
        let mut entry = archive.entries().expect("entries").next().expect("one").expect("entry");
        let xattrs = counted_xattrs(&mut entry).expect("xattrs");
        assert_eq!(xattrs.get(b"security.capability".as_slice()), Some(&vec![1, 0, 2]));
    }

    #[test]
    fn rejects_dangling_links_and_devices() {
        for entries in [[("a", T::Link, "gone")], [("d", T::Block, "")]] {
            let error = canonicalize(Cursor::new(archive(&entries, 1)), Vec::new(), Scope::System);
            assert!(error.is_err(), "{entries:?}");
        }
    }
}

//! The files of an image as its layers make them: everything of each path that counts, and where its content lies.
//!
//! Owns what the entries of a layer mean to the layers below: markers of removed paths, hard links, missing parents.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};

use super::content_digest::{ContentError, counted_xattrs};
use super::section::Section;
use crate::model::bounded_tar::BoundedTar;

/// Marks a path of the layers below as removed, before its name.
pub(super) const REMOVED: &[u8] = b".wh.";
/// Marks a directory of which nothing below shows. Other names that begin so are an old storage driver's own.
const OPAQUE: &[u8] = b".wh..wh..opq";

/// A path; `F` is where the content of a file lies.
#[derive(Debug, Clone)]
pub(crate) struct Node<F = Section> {
    pub(crate) kind: Kind<F>,
    pub(crate) mode: u32,
    pub(crate) uid: u64,
    pub(crate) gid: u64,
    /// Seconds since 1970; no difference between two paths.
    pub(crate) time: u64,
    /// Extended attributes that count.
    pub(crate) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind<F = Section> {
    Directory,
    /// A regular file. Its names are files of their own: whether they are one is lost when a storage driver copies one up. What an
    /// archive has as hard links has the same content here.
    File(F),
    Symlink(Vec<u8>),
    /// A device or a pipe: kind, major, minor.
    Special(tar::EntryType, u32, u32),
    /// One whose content is not as it stands in the archive: it differs from every other.
    Sparse,
}

impl<F> Node<F> {
    /// A path of root of 1970 without extended attributes.
    pub(crate) fn of_root(kind: Kind<F>, mode: u32) -> Self {
        Self { kind, mode, uid: 0, gid: 0, time: 0, xattrs: BTreeMap::new() }
    }

    fn is_directory(&self) -> bool {
        matches!(self.kind, Kind::Directory)
    }
}

impl Node {
    /// Whether two paths are the same but for their times. Contents are read where nothing else differs.
    pub(super) fn equals(&self, other: &Self) -> std::io::Result<bool> {
        let attributes = |node: &Self| (node.mode, node.uid, node.gid);
        if attributes(self) != attributes(other) || self.xattrs != other.xattrs {
            return Ok(false);
        }
        Ok(match (&self.kind, &other.kind) {
            (Kind::Directory, Kind::Directory) => true,
            (Kind::File(one), Kind::File(other)) => one.equals(other)?,
            (Kind::Symlink(one), Kind::Symlink(other)) => one == other,
            (Kind::Special(kind, major, minor), Kind::Special(other, a, b)) => {
                (kind, major, minor) == (other, a, b)
            }
            _ => false,
        })
    }
}

/// What a layer says.
struct Layer<F> {
    /// Its paths in their order.
    nodes: Vec<(Vec<u8>, Node<F>)>,
    /// Paths of the layers below that are gone.
    removed: Vec<Vec<u8>>,
    /// Directories of which nothing below is left.
    emptied: Vec<Vec<u8>>,
}

/// The paths of an image, without its root.
#[derive(Debug, Clone)]
pub(crate) struct Tree<F = Section>(BTreeMap<Vec<u8>, Node<F>>);

impl<F> Default for Tree<F> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl Tree {
    /// Puts a layer on top.
    pub(super) fn add(&mut self, layer: &Section) -> Result<(), ContentError> {
        self.add_with(layer, &mut |content| content)
    }
}

impl<F: Clone> Tree<F> {
    /// Puts a layer on top whose files have what `place` makes of their contents.
    pub(crate) fn add_with(
        &mut self,
        layer: &Section,
        place: &mut dyn FnMut(Section) -> F,
    ) -> Result<(), ContentError> {
        let Layer { nodes, removed, emptied } = self.read(layer, place)?;
        for path in &emptied {
            self.empty(path);
        }
        for path in &removed {
            self.remove(path);
        }
        for (path, node) in nodes {
            self.insert(path, node);
        }
        Ok(())
    }

    /// All paths, sorted; a directory comes before what it holds.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], &Node<F>)> {
        self.0.iter().map(|(path, node)| (path.as_slice(), node))
    }

    pub(crate) fn get(&self, path: &[u8]) -> Option<&Node<F>> {
        self.0.get(path)
    }

    /// Whether a path is a directory; the root is one.
    pub(crate) fn has_directory(&self, path: &[u8]) -> bool {
        path.is_empty() || self.get(path).is_some_and(Node::is_directory)
    }

    /// Leaves out what a filter does not keep.
    pub(crate) fn retain(&mut self, keeps: impl Fn(&[u8]) -> bool) {
        self.0.retain(|path, _| keeps(path));
    }

    /// Reads a layer that is to lie on this tree.
    fn read(&self, section: &Section, place: &mut dyn FnMut(Section) -> F) -> Result<Layer<F>, ContentError> {
        let mut layer = Layer { nodes: Vec::new(), removed: Vec::new(), emptied: Vec::new() };
        let mut known: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        let mut archive = BoundedTar::new(section.ahead());
        for entry in archive.entries_with_seek()? {
            let mut entry = entry?;
            let path = clean(&entry.path_bytes())?;
            let is_comment = entry.header().entry_type().is_pax_global_extensions();
            if is_comment || path.is_empty() || layer.takes_marker(&path) {
                continue;
            }
            let node = if entry.header().entry_type() == tar::EntryType::Link {
                let target = clean(&entry.link_name_bytes().unwrap_or_default())?;
                let linked = known.get(&target).map(|at| &layer.nodes[*at].1).or_else(|| self.get(&target));
                let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                linked.filter(|node| !node.is_directory()).cloned().ok_or_else(|| {
                    ContentError::DanglingLink { path: lossy(&path), target: lossy(&target) }
                })?
            } else {
                node_of(&mut entry, &path, |start, size| place(section.part(start, size)))?
            };
            known.insert(path.clone(), layer.nodes.len());
            layer.nodes.push((path, node));
        }
        Ok(layer)
    }

    /// Puts a path on top.
    pub(crate) fn insert(&mut self, path: Vec<u8>, node: Node<F>) {
        let mut parent = parent_of(&path);
        while !self.has_directory(parent) {
            // A directory that no layer lists.
            self.0.insert(parent.to_owned(), Node::of_root(Kind::Directory, 0o755));
            parent = parent_of(parent);
        }
        if !node.is_directory() {
            self.empty(&path);
        }
        self.0.insert(path, node);
    }

    fn remove(&mut self, path: &[u8]) {
        self.empty(path);
        self.0.remove(path);
    }

    /// Removes what lies below a path.
    fn empty(&mut self, path: &[u8]) {
        if path.is_empty() {
            self.0.clear();
            return;
        }
        // `0` is the byte after `/`.
        let (start, end) = ([path, b"/"].concat(), [path, b"0"].concat());
        let below: Vec<_> = self.0.range(start..end).map(|(path, _)| path.clone()).collect();
        for path in below {
            self.0.remove(&path);
        }
    }
}

impl<F> Layer<F> {
    /// Takes note of a path that is a marker.
    fn takes_marker(&mut self, path: &[u8]) -> bool {
        let folder = parent_of(path);
        // What lies below a marker is a storage driver's own.
        if folder.split(|byte| *byte == b'/').any(|name| name.starts_with(REMOVED)) {
            return true;
        }
        let Some(name) = name_of(path).strip_prefix(REMOVED) else { return false };
        if name_of(path) == OPAQUE {
            self.emptied.push(folder.to_owned());
        } else if !name.is_empty() && !name.starts_with(REMOVED) {
            self.removed.push(join(folder, name));
        }
        true
    }
}

fn node_of<F>(
    entry: &mut tar::Entry<'_, impl std::io::Read>,
    path: &[u8],
    place: impl FnOnce(u64, u64) -> F,
) -> Result<Node<F>, ContentError> {
    use tar::EntryType as Type;
    let xattrs = counted_xattrs(entry)?;
    let header = entry.header();
    let kind = match header.entry_type() {
        Type::Regular | Type::Continuous => Kind::File(place(entry.raw_file_position(), entry.size())),
        Type::Directory => Kind::Directory,
        Type::Symlink => {
            Kind::Symlink(entry.link_name_bytes().map(std::borrow::Cow::into_owned).unwrap_or_default())
        }
        Type::GNUSparse => Kind::Sparse,
        Type::Fifo => Kind::Special(Type::Fifo, 0, 0),
        kind @ (Type::Char | Type::Block) => {
            let (major, minor) = (header.device_major()?, header.device_minor()?);
            Kind::Special(kind, major.unwrap_or(0), minor.unwrap_or(0))
        }
        _ => return Err(ContentError::Kind { path: String::from_utf8_lossy(path).into_owned() }),
    };
    // Some engines write the kind into the mode too.
    let (mode, uid, gid) = (header.mode()? & 0o7777, header.uid()?, header.gid()?);
    // An empty field and a time before 1970 are that day.
    let time = header.mtime().ok().filter(|time| i64::try_from(*time).is_ok()).unwrap_or(0);
    Ok(Node { kind, mode, uid, gid, time, xattrs })
}

/// A path of an archive in its one spelling: without `.`, doubled slashes, and those around it.
fn clean(path: &[u8]) -> std::io::Result<Vec<u8>> {
    let names = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    let names: Vec<&[u8]> = names.collect();
    if names.contains(&b"..".as_slice()) {
        let text = format!("the path `{}` leads out of its folder", String::from_utf8_lossy(path));
        return Err(Error::new(ErrorKind::InvalidData, text));
    }
    Ok(names.join(b"/".as_slice()))
}

/// The directory of a path; that of a name alone is the root, an empty path.
pub(crate) fn parent_of(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(b"", |at| &path[..at])
}

pub(crate) fn name_of(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(path, |at| &path[at + 1..])
}

/// The path of a marker for a removed path.
pub(super) fn marker_of(path: &[u8]) -> Vec<u8> {
    join(parent_of(path), &[REMOVED, name_of(path)].concat())
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_owned() } else { [folder, b"/", name].concat() }
}

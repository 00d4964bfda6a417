//! The tables of a squashfs: inodes and directories.
//!
//! Owns numbers, names and kinds. A path is written before the directory that holds it, so the tree is walked from its end.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tar::EntryType;

use super::blocks::Block;
use super::contents::{Slot, WrittenFile};
use super::error::ClusterFileError;
use super::metadata::{Metadata, Place};
use crate::archive::tree::{Kind, Node, Tree, name_of, parent_of};
use crate::model::entry_name::quoted;
use crate::model::file_compression::FileCompression;

/// The longest name, bytes: that of Linux.
const LONGEST_NAME: usize = 255;
/// The longest target of a link, bytes: that of Linux.
const LONGEST_TARGET: usize = 4095;
/// Users and groups of a file system; that of `/` among them.
const MOST_IDS: usize = 65_534;
/// Names below one header of a directory.
const MOST_NAMES: usize = 256;
/// No fragment, no extended attributes.
const NONE: u32 = u32::MAX;

/// The kinds of inodes, as directories list them; one with more fields has a number of its own.
const DIRECTORY: u16 = 1;
const FILE: u16 = 2;
const SYMLINK: u16 = 3;
const BLOCK_DEVICE: u16 = 4;
const CHARACTER_DEVICE: u16 = 5;
const PIPE: u16 = 6;
const LARGE_DIRECTORY: u16 = 8;
const LARGE_FILE: u16 = 9;

/// Inodes and directories, as they are written.
pub(super) struct Tables {
    pub(super) inodes: Vec<u8>,
    pub(super) directories: Vec<u8>,
    /// Users and groups, by the numbers that inodes have for them.
    pub(super) ids: Vec<u32>,
    /// The inode of `/`.
    pub(super) root: u64,
    pub(super) count: u32,
}

/// Refuses what a squashfs of ours does not hold, every path by name.
pub(super) fn check(tree: &Tree<Slot>) -> Result<(), ClusterFileError> {
    let mut reasons: Vec<String> = tree.iter().filter_map(|(path, node)| problem(path, node)).collect();
    let owners: BTreeSet<u64> = tree.iter().flat_map(|(_, node)| [node.uid, node.gid]).collect();
    if owners.len() > MOST_IDS {
        reasons.push(format!("{} users and groups, more than {MOST_IDS}", owners.len()));
    }
    if reasons.is_empty() { Ok(()) } else { Err(ClusterFileError::Paths { reasons }) }
}

fn problem(path: &[u8], node: &Node<Slot>) -> Option<String> {
    let text = if !node.xattrs.is_empty() {
        let names: Vec<_> = node.xattrs.keys().map(|name| String::from_utf8_lossy(name)).collect();
        format!("extended attributes ({})", names.join(", "))
    } else if matches!(node.kind, Kind::Sparse) {
        "a sparse file".to_owned()
    } else if name_of(path).len() > LONGEST_NAME {
        format!("a name of more than {LONGEST_NAME} bytes")
    } else if path.contains(&0) {
        "a name with a NUL byte".to_owned()
    } else if let Kind::Symlink(target) = &node.kind
        && (target.is_empty() || target.len() > LONGEST_TARGET || target.contains(&0))
    {
        format!("a link whose target is empty, has a NUL byte or more than {LONGEST_TARGET} bytes")
    } else if [node.uid, node.gid].iter().any(|id| *id >= u64::from(u32::MAX)) {
        format!("the owner {}:{}", node.uid, node.gid)
    } else {
        return None;
    };
    Some(format!("{}: {text}", quoted(&String::from_utf8_lossy(path))))
}

/// Returns the tables of a tree that [`check`] accepts, with the content of its files.
pub(super) fn tables(
    tree: &Tree<Slot>,
    files: &HashMap<Slot, WrittenFile>,
    blocks: &[Block],
    compression: FileCompression,
) -> Result<Tables, ClusterFileError> {
    let mut writer = TableWriter {
        numbers: numbers(tree),
        inodes: Metadata::new(compression)?,
        directories: Metadata::new(compression)?,
        ids: Vec::new(),
        known_ids: HashMap::new(),
        linked: HashMap::new(),
        children: HashMap::new(),
        contents: Contents { files, blocks },
    };
    for (path, node) in tree.iter().rev() {
        writer.add(path, node)?;
    }
    writer.finish()
}

/// The number of `/`; that of the directory above it is one that no inode has.
const ROOT: u32 = 1;

/// What makes two names one file.
type LinkKey = (Slot, u32, u64, u64);

fn link_key(node: &Node<Slot>) -> Option<LinkKey> {
    match node.kind {
        Kind::File(slot) => Some((slot, node.mode, node.uid, node.gid)),
        _ => None,
    }
}

/// The numbers of inodes, without a gap: by path, and how many names each file has.
struct Numbers<'a> {
    by_path: HashMap<&'a [u8], u32>,
    names: HashMap<LinkKey, u32>,
    count: u32,
}

fn numbers(tree: &Tree<Slot>) -> Numbers<'_> {
    let mut found = Numbers { by_path: HashMap::new(), names: HashMap::new(), count: ROOT };
    let mut first: HashMap<LinkKey, u32> = HashMap::new();
    for (path, node) in tree.iter() {
        let known = link_key(node).and_then(|key| {
            *found.names.entry(key).or_default() += 1;
            first.get(&key).copied()
        });
        let number = known.unwrap_or_else(|| {
            found.count += 1;
            found.count
        });
        if let Some(key) = link_key(node) {
            first.insert(key, number);
        }
        found.by_path.insert(path, number);
    }
    found
}

/// What the files of a tree hold.
struct Contents<'a> {
    files: &'a HashMap<Slot, WrittenFile>,
    blocks: &'a [Block],
}

/// A name in a directory.
struct Child {
    place: Place,
    number: u32,
    kind: u16,
}

struct TableWriter<'a> {
    numbers: Numbers<'a>,
    inodes: Metadata,
    directories: Metadata,
    ids: Vec<u32>,
    known_ids: HashMap<u32, u16>,
    /// Files that were written under another of their names.
    linked: HashMap<LinkKey, Place>,
    children: HashMap<&'a [u8], BTreeMap<&'a [u8], Child>>,
    contents: Contents<'a>,
}

impl<'a> TableWriter<'a> {
    fn add(&mut self, path: &'a [u8], node: &Node<Slot>) -> Result<(), ClusterFileError> {
        let number = self.numbers.by_path[path];
        let parent = parent_of(path);
        let (place, kind) = match &node.kind {
            Kind::Directory => {
                let above = if parent.is_empty() { ROOT } else { self.numbers.by_path[parent] };
                (self.directory(path, node, (number, above))?, DIRECTORY)
            }
            Kind::File(slot) => (self.file(*slot, node, number)?, FILE),
            Kind::Symlink(target) => (self.symlink(target, node, number)?, SYMLINK),
            Kind::Special(kind, major, minor) => self.special((*kind, *major, *minor), node, number)?,
            Kind::Sparse => unreachable!("the tree was checked"),
        };
        self.children.entry(parent).or_default().insert(name_of(path), Child { place, number, kind });
        Ok(())
    }

    fn finish(mut self) -> Result<Tables, ClusterFileError> {
        let above = self.numbers.count + 1;
        let root = Node::of_root(Kind::Directory, 0o755);
        let root = self.directory(b"", &root, (ROOT, above))?.reference();
        let (inodes, _) = self.inodes.finish()?;
        let (directories, _) = self.directories.finish()?;
        Ok(Tables { inodes, directories, ids: self.ids, root, count: self.numbers.count })
    }

    /// Begins an inode with what all have.
    fn inode(&mut self, kind: u16, node: &Node<Slot>, number: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mode = u16::try_from(node.mode & 0o7777).expect("twelve bits");
        let (user, group) = (self.id(node.uid), self.id(node.gid));
        for value in [kind, mode, user, group] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        // The field ends in 2106.
        let time = u32::try_from(node.time).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&time.to_le_bytes());
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes
    }

    /// The number that inodes have for a user or a group.
    fn id(&mut self, id: u64) -> u16 {
        let id = u32::try_from(id).expect("the tree was checked");
        let next = u16::try_from(self.ids.len()).expect("the tree was checked");
        *self.known_ids.entry(id).or_insert_with(|| {
            self.ids.push(id);
            next
        })
    }

    fn put(&mut self, inode: &[u8]) -> Result<Place, ClusterFileError> {
        let place = self.inodes.place();
        self.inodes.write(inode)?;
        Ok(place)
    }

    fn file(&mut self, slot: Slot, node: &Node<Slot>, number: u32) -> Result<Place, ClusterFileError> {
        let key = link_key(node).expect("it is a file");
        if let Some(place) = self.linked.get(&key) {
            return Ok(*place);
        }
        let names = self.numbers.names[&key];
        let file = &self.contents.files[&slot];
        let blocks = &self.contents.blocks[file.blocks.clone()];
        let start = blocks.first().map_or(0, |block| block.start);
        let (fragment, offset) = file.fragment.unwrap_or((NONE, 0));
        let sizes = blocks.iter().flat_map(|block| block.size.to_le_bytes());
        let small = u32::try_from(start).ok().zip(u32::try_from(file.size).ok()).filter(|_| names == 1);
        let mut inode = self.inode(if small.is_some() { FILE } else { LARGE_FILE }, node, number);
        if let Some((start, size)) = small {
            for value in [start, fragment, offset, size] {
                inode.extend_from_slice(&value.to_le_bytes());
            }
        } else {
            for value in [start, file.size, 0] {
                inode.extend_from_slice(&value.to_le_bytes());
            }
            for value in [names, fragment, offset, NONE] {
                inode.extend_from_slice(&value.to_le_bytes());
            }
        }
        inode.extend(sizes);
        let place = self.put(&inode)?;
        self.linked.insert(key, place);
        Ok(place)
    }

    fn symlink(&mut self, target: &[u8], node: &Node<Slot>, number: u32) -> Result<Place, ClusterFileError> {
        let mut inode = self.inode(SYMLINK, node, number);
        let length = u32::try_from(target.len()).expect("a header of an archive is bounded");
        for value in [1, length] {
            inode.extend_from_slice(&value.to_le_bytes());
        }
        inode.extend_from_slice(target);
        self.put(&inode)
    }

    fn special(
        &mut self,
        (kind, major, minor): (EntryType, u32, u32),
        node: &Node<Slot>,
        number: u32,
    ) -> Result<(Place, u16), ClusterFileError> {
        let kind = match kind {
            EntryType::Block => BLOCK_DEVICE,
            EntryType::Char => CHARACTER_DEVICE,
            _ => PIPE,
        };
        let mut inode = self.inode(kind, node, number);
        inode.extend_from_slice(&1_u32.to_le_bytes());
        if kind != PIPE {
            let device = minor & 0xff | major << 8 | (minor & !0xff) << 12;
            inode.extend_from_slice(&device.to_le_bytes());
        }
        Ok((self.put(&inode)?, kind))
    }

    fn directory(
        &mut self,
        path: &[u8],
        node: &Node<Slot>,
        (number, above): (u32, u32),
    ) -> Result<Place, ClusterFileError> {
        let children = self.children.remove(path).unwrap_or_default();
        let place = self.directories.place();
        let listing = listing(&children);
        self.directories.write(&listing)?;
        let folders = children.values().filter(|child| child.kind == DIRECTORY).count();
        let links = u32::try_from(folders + 2).expect("an image has some folders");
        // With the entries `.` and `..`, which are not listed.
        let size = u32::try_from(listing.len() + 3).expect("a listing of an image has some megabytes");
        let inode = if let Ok(size) = u16::try_from(size) {
            let mut inode = self.inode(DIRECTORY, node, number);
            inode.extend_from_slice(&place.block.to_le_bytes());
            inode.extend_from_slice(&links.to_le_bytes());
            inode.extend_from_slice(&size.to_le_bytes());
            inode.extend_from_slice(&place.offset.to_le_bytes());
            inode.extend_from_slice(&above.to_le_bytes());
            inode
        } else {
            let mut inode = self.inode(LARGE_DIRECTORY, node, number);
            for value in [links, size, place.block, above] {
                inode.extend_from_slice(&value.to_le_bytes());
            }
            // No index: a name is looked for from the beginning.
            inode.extend_from_slice(&0_u16.to_le_bytes());
            inode.extend_from_slice(&place.offset.to_le_bytes());
            inode.extend_from_slice(&NONE.to_le_bytes());
            inode
        };
        self.put(&inode)
    }
}

/// The names of a directory, in runs that share a block of inodes and have numbers near each other.
fn listing(children: &BTreeMap<&[u8], Child>) -> Vec<u8> {
    let mut listing = Vec::new();
    let all: Vec<_> = children.iter().collect();
    let mut rest = all.as_slice();
    while let Some((_, first)) = rest.first() {
        let distance = |child: &Child| i16::try_from(i64::from(child.number) - i64::from(first.number)).ok();
        let fits = |child: &Child| child.place.block == first.place.block && distance(child).is_some();
        let count = rest.iter().take(MOST_NAMES).take_while(|(_, child)| fits(child)).count();
        let (run, after) = rest.split_at(count);
        let names = u32::try_from(count).expect("256 at most");
        for value in [names - 1, first.place.block, first.number] {
            listing.extend_from_slice(&value.to_le_bytes());
        }
        for (name, child) in run {
            listing.extend_from_slice(&child.place.offset.to_le_bytes());
            listing.extend_from_slice(&distance(child).expect("the run ends before").to_le_bytes());
            listing.extend_from_slice(&child.kind.to_le_bytes());
            let length = u16::try_from(name.len()).expect("the tree was checked");
            listing.extend_from_slice(&(length - 1).to_le_bytes());
            listing.extend_from_slice(name);
        }
        rest = after;
    }
    listing
}

//! The layer that makes one image of another: a function of the files of both alone.
//!
//! An engine's own difference also lists what was touched, and marks what its storage driver did. Here a path is an entry where
//! its kind, content, mode, owner, extended attributes or target differ from the layers below, or where it holds such a path: an
//! engine that unpacks a layer by itself gives directories that the layer does not list attributes of its own. What is gone has a
//! marker, by name, wherever its directory is left.

use std::collections::BTreeMap;
use std::io::Write;

use super::canonical_tar::Writer;
use super::content_digest::ContentError;
use super::scope::is_of_the_engine;
use super::tree::{Node, Tree, marker_of, parent_of};

/// What a layer says of a path.
enum Change<'a> {
    Entry(&'a [u8], &'a Node),
    Gone(&'a [u8]),
}

/// Writes the layer that makes `above` of `below`; returns its SHA-256, hex.
pub(super) fn write_difference(below: &Tree, above: &Tree, out: impl Write) -> Result<String, ContentError> {
    let mut writer = Writer::new(out);
    for change in changes(below, above)?.values() {
        match change {
            Change::Entry(path, node) => writer.write(path, node)?,
            Change::Gone(path) => writer.write_marker(path)?,
        }
    }
    Ok(writer.finish()?)
}

/// The entries of the layer, by their paths in it.
fn changes<'a>(below: &'a Tree, above: &'a Tree) -> std::io::Result<BTreeMap<Vec<u8>, Change<'a>>> {
    let mut changes = BTreeMap::new();
    for (path, node) in above.iter().filter(|(path, _)| !is_of_the_engine(path)) {
        let is_same = below.get(path).map(|old| old.equals(node)).transpose()?;
        if is_same != Some(true) {
            changes.insert(path.to_owned(), Change::Entry(path, node));
            list_parents(above, path, &mut changes);
        }
    }
    for (path, _) in below.iter().filter(|(path, _)| !is_of_the_engine(path)) {
        // Without its directory a path is gone anyway.
        if above.get(path).is_none() && above.has_directory(parent_of(path)) {
            changes.insert(marker_of(path), Change::Gone(path));
            list_parents(above, path, &mut changes);
        }
    }
    Ok(changes)
}

fn list_parents<'a>(above: &'a Tree, path: &'a [u8], changes: &mut BTreeMap<Vec<u8>, Change<'a>>) {
    let mut parent = parent_of(path);
    while let Some(node) = above.get(parent) {
        if changes.insert(parent.to_owned(), Change::Entry(parent, node)).is_some() {
            return;
        }
        parent = parent_of(parent);
    }
}

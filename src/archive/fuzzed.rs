//! Fuzzed parsers: tars of containers and saved images.

use std::io::Write as _;

use super::difference::write_difference;
use super::section::Section;
use super::tree::Tree;

/// An archive: a layer that is made of one is made of itself again.
pub(crate) fn archive(bytes: &[u8]) {
    let tree_of = |bytes: &[u8]| {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        let (mut tree, section) = (Tree::default(), Section::whole(file).expect("a file"));
        tree.add(&section).map(|()| tree)
    };
    let layer_of = |bytes: &[u8]| {
        let mut layer = Vec::new();
        write_difference(&Tree::default(), &tree_of(bytes)?, &mut layer).map(|_| layer)
    };
    let Ok(first) = layer_of(bytes) else { return };
    assert_eq!(layer_of(&first).expect("our own archive"), first);
}

//! Fuzzed parsers: tars of containers and saved images.

use std::io::Cursor;

use super::canonical_tar::canonicalize;
use super::scope::Scope;

/// An archive: what has a canonical form has the same one again.
pub(crate) fn archive(bytes: &[u8]) {
    let mut first = Vec::new();
    let Ok(made) = canonicalize(Cursor::new(bytes), &mut first, Scope::Layer) else { return };
    let mut second = Vec::new();
    let again = canonicalize(Cursor::new(&first), &mut second, Scope::Layer).expect("our own archive");
    assert_eq!((again.sha256, again.content, second), (made.sha256, made.content, first));
}

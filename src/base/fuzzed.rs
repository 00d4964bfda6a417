//! Fuzzed parsers: the files of a mirror.

use std::io::{Cursor, Read as _};

use jiff::Timestamp;

use super::closure::base_closure;
use super::deb::data_tar;
use super::packages::PackageIndex;
use super::release::Release;

/// Parses a `Packages` file and computes the closure over its packages.
pub(crate) fn packages(text: &str) {
    let mut index = PackageIndex::default();
    index.add(text);
    for package in index.all() {
        assert_eq!(index.package(&package.deb.name), Some(package));
    }
    let _ = base_closure(&index);
}

/// A `Release` file, read and checked.
pub(crate) fn release(text: &str) {
    let Ok(release) = Release::parse(text) else { return };
    for accept_expired in [false, true] {
        let _ = release.check("bookworm", Timestamp::UNIX_EPOCH, accept_expired);
    }
    let _ = release.file("main/binary-amd64/Packages.xz");
}

/// A package: its files are unpacked or refused.
pub(crate) fn deb(bytes: &[u8]) {
    if let Ok(files) = data_tar(&mut Cursor::new(bytes)) {
        // A small package may unpack to gigabytes, which take their time.
        let _ = files.take(1 << 20).read_to_end(&mut Vec::new());
    }
}

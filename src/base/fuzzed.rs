//! What of this module is fuzzed: the readers of a mirror's files.

use jiff::Timestamp;

use super::closure::base_closure;
use super::packages::PackageIndex;
use super::release::Release;

/// A `Packages` file, read, and the closure over what is in it.
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

//! The most that is read of files whose size nothing lists, or only their publisher: one place for this room.

/// An `InRelease`: Debian's have some 200 kilobytes.
pub(super) const LARGEST_RELEASE: u64 = 1 << 20;
/// The most lines of an `InRelease`: its parser looks at everything before it for each line. Debian's have some 2,000.
pub(super) const MOST_RELEASE_LINES: usize = 20_000;
/// A `Packages` file, packed or unpacked, whatever the signed index says. Debian's has some 50 MB unpacked.
pub(super) const LARGEST_PACKAGES: u64 = 512 << 20;
/// The files of a package, unpacked, all together. The largest of a base has some 30 MB.
pub(super) const LARGEST_DEB: u64 = 1 << 30;
/// A file of a package that is kept in memory: apt's example of its sources has a few hundred bytes.
pub(super) const LARGEST_SOURCES: u64 = 1 << 20;
/// Memory for unpacking xz: its largest preset takes 65 MB.
pub(super) const XZ_MEMORY: u64 = 256 << 20;

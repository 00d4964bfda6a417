//! The most that is read of vendor directories, which come from anybody, and of the cache and state directories, which CI
//! restores: one place for this room.

/// A lock file: one of 500 wheels has some 200 kilobytes.
pub(super) const LARGEST_LOCK: u64 = 64 << 20;
/// A record of a base, and a list of an image archive.
pub(super) const LARGEST_RECORD: u64 = 1 << 20;
/// A blob of the cache that is read whole, a package of the toolkit: the largest has 1.1 GB.
pub(super) const LARGEST_BLOB: u64 = 4 << 30;
/// A record of the state directory: a report of a thousand checks has some megabytes.
pub(super) const LARGEST_STATE: u64 = 64 << 20;

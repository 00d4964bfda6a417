//! The most that is read of vendor directories, which come from anybody: one place for this room.

/// A lock file: one of 500 wheels has some 200 kilobytes.
pub(super) const LARGEST_LOCK: u64 = 64 << 20;
/// A record of a base, and a list of an image archive.
pub(super) const LARGEST_RECORD: u64 = 1 << 20;

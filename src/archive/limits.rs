//! The most that is read of archives into memory: one place for this room.

/// Manifest and configuration of a saved image, bytes.
pub(super) const LARGEST_MANIFEST: u64 = 64 << 20;
/// A layer as it is unpacked, bytes: it goes to the disk.
pub(super) const LARGEST_LAYER: u64 = 256 << 30;
/// A file that is written anew, bytes: `/etc/shadow` has a few hundred.
pub(super) const LARGEST_REWRITTEN: u64 = 16 << 20;

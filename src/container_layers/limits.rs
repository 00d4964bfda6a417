//! The most that is read of containers and of the cache of their layers: one place for this room.

/// Byte code of one container, and of one wheel in the cache, bytes. It has less than twice the size of its sources; one
/// distribution may exceed a batch.
pub(super) const MOST_CODE: usize = 1 << 30;
/// What the directories of the toolkit hold before or after the step, bytes: CUDA with its profilers has some 6 GB.
pub(super) const LARGEST_TOOLKIT: u64 = 8 << 30;
/// A layer whose size no lock records, bytes: it goes to the disk.
pub(super) const LARGEST_LAYER: u64 = 256 << 30;
/// A record of the cache, bytes: the list of directories has some 5 MB.
pub(super) const LARGEST_RECORD: u64 = 64 << 20;

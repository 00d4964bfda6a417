//! The most that is read of indexes, wheels and the container of the resolver: one place for this room.

/// A page of an index: those of packages with many releases have some 20 MB.
pub(super) const LARGEST_PAGE: u64 = 64 << 20;
/// METADATA of a wheel.
pub(super) const LARGEST_METADATA: u64 = 16 << 20;
/// The program uv, unpacked.
pub(super) const LARGEST_PROGRAM: u64 = 512 << 20;
/// The wheel of uv in a tar: it has some 20 MB.
pub(super) const LARGEST_UV: u64 = 256 << 20;

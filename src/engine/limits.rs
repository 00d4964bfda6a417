//! The most that is read of a container into memory: one place for this room.

/// Output of a container that has no bound of its own, bytes. The largest of ours is a resolver's, with some 2 MB.
pub(in crate::engine) const LARGEST_OUTPUT: usize = 64 << 20;
/// Files collected from a container without a bound of its own, bytes of all tars together.
pub(in crate::engine) const LARGEST_COLLECTED: u64 = 64 << 20;
/// A line of output, bytes: a longer one is shown up to here.
pub(in crate::engine) const LONGEST_LINE: usize = 16 << 10;
/// A message of the engine in a response of lines, and a refusal, bytes.
pub(in crate::engine) const LARGEST_MESSAGE: usize = 1 << 20;

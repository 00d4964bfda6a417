//! The most that is read of a wheel into memory: one place for this room. Other files are streamed.

/// A bound, and the reason for a refusal that names it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    pub(super) bytes: u64,
    pub(super) reason: &'static str,
}

/// A file of `.dist-info`: RECORD of the largest wheels has some 3 MB.
pub(super) const METADATA: Limit =
    Limit { bytes: 16 << 20, reason: "it is larger than 16 MiB, the limit for metadata" };
/// A module that is compiled, or a script that is written anew.
pub(super) const MODULE: Limit =
    Limit { bytes: 64 << 20, reason: "it is larger than 64 MiB, the limit for modules and scripts" };

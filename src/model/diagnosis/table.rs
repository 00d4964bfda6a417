//! All rows in one order.

use super::entry::KnownError;
use super::{containers, cuda, libraries, packages, several_gpus, start, wsl, xid};

/// Returns all rows, specific ones before general ones.
pub fn entries() -> impl Iterator<Item = &'static KnownError> {
    xid::ENTRIES
        .iter()
        .chain(wsl::ENTRIES)
        .chain(start::ENTRIES)
        .chain(several_gpus::ENTRIES)
        .chain(containers::ENTRIES)
        .chain(libraries::ENTRIES)
        .chain(packages::ENTRIES)
        .chain(cuda::ENTRIES)
}

//! All rows in one order.

use super::entry::KnownError;
use super::{
    collectives, containers, cuda, downloads, extensions, frameworks, gpu_access, hosts, installing,
    libraries, packages, remote, several_gpus, start, starting, wsl, xid,
};

/// Returns all rows, specific ones before general ones.
pub fn entries() -> impl Iterator<Item = &'static KnownError> {
    xid::ENTRIES
        .iter()
        .chain(wsl::ENTRIES)
        .chain(start::ENTRIES)
        .chain(several_gpus::ENTRIES)
        .chain(containers::ENTRIES)
        .chain(frameworks::ENTRIES)
        .chain(libraries::ENTRIES)
        .chain(packages::ENTRIES)
        .chain(cuda::ENTRIES)
        .chain(extensions::ENTRIES)
        .chain(gpu_access::ENTRIES)
        .chain(remote::ENTRIES)
        .chain(hosts::ENTRIES)
        .chain(collectives::ENTRIES)
        .chain(starting::ENTRIES)
        .chain(downloads::ENTRIES)
        .chain(installing::ENTRIES)
}

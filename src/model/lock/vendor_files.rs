//! Files of a lock in a vendor directory: `files/<2>/<sha256>`, one for each content, shared by all locks.
//!
//! Pure. `commands/vendor.rs` fills and verifies the directory.

use std::collections::BTreeMap;

use crate::model::lock::{Lock, LockedDeb, LockedSource, LockedWheel};

/// A file listed in a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VendorFile<'a> {
    /// A package of the distribution.
    Deb(&'a LockedDeb),
    /// A wheel.
    Wheel(&'a LockedWheel),
    /// A source distribution that one of the wheels was built from.
    Source(&'a LockedSource),
    /// A tool's wheel.
    Tool(&'a crate::model::lock::LockedTool),
}

impl<'a> VendorFile<'a> {
    /// Its SHA-256, hex.
    pub fn sha256(self) -> &'a str {
        match self {
            Self::Deb(deb) => &deb.sha256,
            Self::Wheel(wheel) => &wheel.sha256,
            Self::Source(source) => &source.sha256,
            Self::Tool(tool) => &tool.sha256,
        }
    }

    /// Its file name.
    pub fn file(self) -> &'a str {
        match self {
            Self::Deb(deb) => deb.path.rsplit('/').next().unwrap_or(&deb.path),
            Self::Wheel(wheel) => &wheel.file,
            Self::Source(source) => &source.file,
            Self::Tool(tool) => &tool.file,
        }
    }

    /// The name of its package.
    pub fn package(self) -> &'a str {
        match self {
            Self::Deb(deb) => &deb.name,
            Self::Wheel(wheel) => &wheel.name,
            Self::Source(source) => &source.name,
            Self::Tool(tool) => &tool.name,
        }
    }
}

/// Returns every file of a lock, each content once, sorted by hash.
pub fn items(lock: &Lock) -> Vec<VendorFile<'_>> {
    let debs = lock.base.packages.iter().chain(lock.debs()).map(VendorFile::Deb);
    let tools = lock.tools.iter().map(VendorFile::Tool);
    let wheels = lock.wheels.iter().map(VendorFile::Wheel);
    let sources = lock.sources.iter().map(VendorFile::Source);
    let all: BTreeMap<_, _> =
        debs.chain(tools).chain(wheels).chain(sources).map(|item| (item.sha256(), item)).collect();
    all.into_values().collect()
}

/// The path of a file with that hash in a vendor directory.
pub fn place(sha256: &str) -> String {
    format!("files/{}/{sha256}", &sha256[..2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;

    #[test]
    fn every_file_of_a_lock_is_listed_once() {
        let mut lock = sample::lock();
        lock.apt = lock.system.clone();
        let all = items(&lock);
        let mut files: Vec<_> =
            all.iter().map(|item| item.file().split('_').next().unwrap_or_default()).collect();
        files.sort_unstable();
        assert_eq!(files.len(), 4, "{files:?}");
        assert!(all.windows(2).all(|pair| pair[0].sha256() < pair[1].sha256()));
        assert!(place(all[0].sha256()).starts_with(&format!("files/{}/", &all[0].sha256()[..2])));
    }
}

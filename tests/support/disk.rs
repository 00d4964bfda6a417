//! A small file system in memory, for tests of what happens when it is full.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system in memory; unmounted with this value.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one of that size (`8m`) on a folder, which is made.
    pub(crate) fn on(folder: PathBuf, size: &str) -> Self {
        std::fs::create_dir_all(&folder).expect("a folder of ours");
        mount(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"], &folder);
        Self(folder)
    }

    /// Gives it another size.
    pub(crate) fn grow(&self, size: &str) {
        mount(&["-o", &format!("remount,size={size}")], &self.0);
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

fn mount(args: &[&str], folder: &Path) {
    let mounted = Command::new("mount").args(args).arg(folder).status().expect("mount starts");
    assert!(mounted.success(), "this test mounts a tmpfs, which needs root");
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

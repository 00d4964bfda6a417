//! Files that the scripts of the temporary containers read.

use crate::engine::ContainerFile;

/// The directory the scripts read.
pub(super) const FOLDER: &str = "/envforge";

/// The time limit of a script, minutes. It is kept inside the container: logins do not outlive a killed envforge by more.
pub(super) const MINUTES: u32 = 60;

/// The command of a script of that directory.
pub(super) fn command(script: &str) -> Vec<String> {
    let limit = (MINUTES * 60).to_string();
    ["/usr/bin/timeout", "--kill-after=10", &limit, "/bin/sh", script].map(str::to_owned).to_vec()
}

/// A file of the scripts' directory.
pub(super) fn file(name: &str, mode: u32, text: impl Into<String>) -> ContainerFile {
    ContainerFile { path: format!("{FOLDER}/{name}"), mode, bytes: text.into().into() }
}

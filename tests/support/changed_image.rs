//! An image made from another.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::engine::docker;

/// An image made from another, removed with this value.
pub(crate) struct ChangedImage(pub(crate) String);

impl ChangedImage {
    /// The image after a command ran in it as root, with those bytes on its input; then these changes of its configuration.
    pub(crate) fn of(from: &str, name: &str, command: &str, input: &[u8], changes: &[&str]) -> Self {
        let container = format!("envforge-changed-{name}-{}", std::process::id());
        let image = Self(format!("{container}:1"));
        let mut running = Command::new("docker")
            .args(["run", "-i", "--name", &container, "--user", "0:0", "--network", "none"])
            .args(["--entrypoint", "/bin/sh", from, "-c", command])
            .stdin(Stdio::piped())
            .spawn()
            .expect("docker starts");
        let mut stdin = running.stdin.take().expect("piped");
        // A command that reads nothing may have ended before.
        if !input.is_empty() {
            stdin.write_all(input).expect("the command reads its input");
        }
        drop(stdin);
        assert!(running.wait().expect("docker ends").success(), "{name}");
        let changes = changes.iter().flat_map(|change| ["--change", change]);
        let commit: Vec<&str> =
            std::iter::once("commit").chain(changes).chain([&*container, &*image.0]).collect();
        docker(&commit);
        docker(&["rm", "-f", &container]);
        image
    }
}

impl Drop for ChangedImage {
    fn drop(&mut self) {
        drop(Command::new("docker").args(["rmi", "-f", &self.0]).output());
    }
}

//! Files that the scripts of the temporary containers read.

use crate::engine::ContainerFile;

/// The directory the scripts read.
pub(super) const FOLDER: &str = "/envforge";

/// The time limit of a script, minutes. It is kept inside the container: logins do not outlive a killed envforge by more.
pub(super) const MINUTES: u32 = 60;

/// The command of a script of that directory.
pub(super) fn command(script: &str) -> Vec<String> {
    within(script, MINUTES * 60)
}

/// The command of a script that is ended after some seconds, whatever became of envforge.
fn within(script: &str, seconds: u32) -> Vec<String> {
    let limit = seconds.to_string();
    ["/usr/bin/timeout", "--kill-after=10", &limit, "/bin/sh", script].map(str::to_owned).to_vec()
}

/// A file of the scripts' directory.
pub(super) fn file(name: &str, mode: u32, text: impl Into<String>) -> ContainerFile {
    ContainerFile { path: format!("{FOLDER}/{name}"), mode, bytes: text.into().into() }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test writes a script")]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::host::{Bounds, child, run_within};

    #[test]
    fn script_that_never_ends_is_ended_where_it_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = camino::Utf8Path::from_path(folder.path()).expect("UTF-8").join("x.sh");
        fs_err::write(&script, "sleep 100\n").expect("ours");
        let command = within(script.as_str(), 1);
        let bounds = Bounds { time: Duration::from_mins(1), output: 1 };
        let output = run_within(child(&command[0]).args(&command[1..]), bounds).expect("it ends");
        assert_eq!(output.status.code(), Some(124), "the code that stands for it in the errors");
        assert_eq!(super::command("x"), within("x", MINUTES * 60));
    }
}

//! Proves that a login shell finds the image's Python: Debian's /etc/profile sets a PATH of its own.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use envforge_protocol::{CheckId, Key, Outcome, SkipReason};

use super::{Options, display_path, errored};
use crate::report::Report;

const ID: CheckId = CheckId::LoginShell;
const ASKS: &str = "command -v python";

pub(crate) fn run(options: &Options) -> Vec<Report> {
    match options.expectation_if_given() {
        Err(problem) => return errored(&[ID], &problem),
        Ok(expected) if expected.value(Key::LoginPath).is_none() => {
            let text =
                "the lock is of an earlier envforge: `envforge lock` gives login shells the image's PATH";
            return vec![Report::skipped(ID, SkipReason::NotInStack, text)];
        }
        Ok(_) => {}
    }
    let (wanted, found) = (options.python(), found(options));
    let report = match found {
        Err(problem) => Report::new(ID, Outcome::Failed, problem),
        Ok(found) if found == wanted => Report::new(ID, Outcome::Passed, display_path(&options.root, &found)),
        Ok(found) => {
            let [wanted, found] = [&wanted, &found].map(|path| display_path(&options.root, path));
            let found = if found.is_empty() { "none".to_owned() } else { format!("`{found}`") };
            Report::new(
                ID,
                Outcome::Failed,
                format!("expected `{wanted}` (PATH of the image), found {found}"),
            )
        }
    };
    vec![report.hint(
        "a file of /etc/profile.d or ~/.profile sets another PATH: leave it out, or add to PATH instead",
    )]
}

/// The Python that a login shell finds; empty: none.
fn found(options: &Options) -> Result<PathBuf, String> {
    let mut bash = Command::new("bash");
    if options.root.as_os_str() == "/" {
        bash.args(["-lc", ASKS]);
    } else {
        // A login shell reads the files of the system that it runs on.
        let profile = options.root.join("etc/profile");
        bash.args(["--noprofile", "-c", &format!(". \"$0\"; {ASKS}")]).arg(profile);
    }
    let output = bash.stdin(Stdio::null()).output().map_err(|error| format!("bash: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().last().unwrap_or_default().trim().into())
}

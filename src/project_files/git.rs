//! The files of a directory as the program git lists them. Nothing of the directory runs: its configuration may name programs, and git
//! would start one to fetch an object that a partial clone lacks.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::process::Output;
use std::time::Duration;

use camino::Utf8Path;

use super::sources_error::SourcesError;
use crate::host::{self, Bounds};

/// Variables of the caller's repository, if a hook of it runs this.
const OF_ANOTHER_REPOSITORY: [&str; 8] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
];

/// Settings that go before those of the directory.
const SETTINGS: [&str; 3] =
    ["core.fsmonitor=false", "core.hooksPath=/dev/null", "safe.bareRepository=explicit"];
/// A list of a million files takes a second.
const BOUNDS: Bounds = Bounds { time: Duration::from_secs(30), output: 64 << 20 };

/// What git has at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tracked {
    /// A file or a symbolic link.
    File,
    /// The commit of another repository.
    Submodule,
}

/// Returns the paths that git knows below a directory; `None`: there is no git, or the directory is in no repository.
pub(super) fn tracked(folder: &Utf8Path) -> Result<Option<BTreeMap<String, Tracked>>, SourcesError> {
    let Some(output) = git(folder, &["ls-files", "-z", "--stage"])? else { return Ok(None) };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_outside = said.contains("not a git repository") || said.contains("must be run in a work tree");
        return if is_outside { Ok(None) } else { Err(SourcesError::git(&said)) };
    }
    let mut found = BTreeMap::new();
    for entry in entries(&output.stdout)? {
        // `100644 HASH 0<tab>PATH`
        let Some((facts, path)) = entry.split_once('\t') else { continue };
        check(path)?;
        let kind = if facts.starts_with("160000") { Tracked::Submodule } else { Tracked::File };
        found.insert(path.to_owned(), kind);
    }
    if found.is_empty() { Err(SourcesError::NothingAdded) } else { Ok(Some(found)) }
}

/// Returns the paths below a directory of a repository that git neither knows nor ignores.
pub(super) fn unknown(folder: &Utf8Path) -> Result<Vec<String>, SourcesError> {
    match git(folder, &["ls-files", "-z", "--others", "--exclude-standard"])? {
        Some(output) if output.status.success() => names(&output.stdout),
        _ => Ok(Vec::new()),
    }
}

/// Returns the paths below a directory of no repository that its `.gitignore` files do not name; directories of repositories end in `/`.
/// `None`: there is no git.
pub(super) fn not_ignored(folder: &Utf8Path) -> Result<Option<Vec<String>>, SourcesError> {
    let empty = tempfile::tempdir()?;
    let place = empty.path().to_string_lossy().into_owned();
    let Some(made) = git(folder, &["init", "--quiet", "--bare", &place])? else { return Ok(None) };
    if !made.status.success() {
        return Err(SourcesError::git(&String::from_utf8_lossy(&made.stderr)));
    }
    let (empty_repository, folder_of_files) = (format!("--git-dir={place}"), format!("--work-tree={folder}"));
    let list = [
        empty_repository.as_str(),
        &folder_of_files,
        "ls-files",
        "-z",
        "--others",
        "--exclude-per-directory=.gitignore",
    ];
    let Some(output) = git(folder, &list)? else { return Ok(None) };
    if !output.status.success() {
        return Err(SourcesError::git(&String::from_utf8_lossy(&output.stderr)));
    }
    names(&output.stdout).map(Some)
}

/// Runs git in a directory; `None`: there is no git.
fn git(folder: &Utf8Path, arguments: &[&str]) -> Result<Option<Output>, SourcesError> {
    let mut command = host::child("git");
    command.arg("-C").arg(folder);
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    for name in OF_ANOTHER_REPOSITORY {
        command.env_remove(name);
    }
    // Before git 2.45 the first is unknown; the second forbids every way to another repository.
    command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none");
    command.args(arguments).env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0");
    // A pipe in a file's place would never end, and a list may have any length.
    match host::run_within(&mut command, BOUNDS) {
        Ok(output) => Ok(Some(output)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(problem(error)),
    }
}

/// Git that was beyond a bound, or that cannot be run.
fn problem(error: Error) -> SourcesError {
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::FileTooLarge => SourcesError::git(&error.to_string()),
        _ => error.into(),
    }
}

/// The paths of a list, each checked.
fn names(list: &[u8]) -> Result<Vec<String>, SourcesError> {
    let names = entries(list)?;
    names.iter().try_for_each(|path| check(path))?;
    Ok(names)
}

fn entries(list: &[u8]) -> Result<Vec<String>, SourcesError> {
    let one = |entry: &[u8]| match std::str::from_utf8(entry) {
        Ok(entry) => Ok(entry.to_owned()),
        Err(_) => Err(SourcesError::Name { path: String::from_utf8_lossy(entry).into_owned() }),
    };
    list.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).map(one).collect()
}

/// Refuses a path that does not lead down from its directory: an index may be made by anybody.
fn check(path: &str) -> Result<(), SourcesError> {
    let goes_down = |part: &str| !["", ".", ".."].contains(&part);
    if path.trim_end_matches('/').split('/').all(goes_down) {
        Ok(())
    } else {
        Err(SourcesError::Path { path: path.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_that_leads_elsewhere_than_down_is_refused() {
        assert_eq!(
            names(b"a.py\0b c/d\te.py\0nested/\0").expect("paths"),
            ["a.py", "b c/d\te.py", "nested/"]
        );
        for list in [&b"."[..], b"a\0./.", b"../a", b"/etc/passwd", b"a//b", b"a/../../b"] {
            let error = names(list).expect_err("refused").to_string();
            assert!(error.contains("in git's index"), "{error}");
        }
    }

    #[test]
    fn git_that_does_not_end_or_lists_too_much_is_an_error_of_git() {
        for ([program, argument], bounds) in [
            (["sleep", "60"], Bounds { time: Duration::from_millis(50), ..BOUNDS }),
            (["cat", "/dev/zero"], Bounds { output: 10, ..BOUNDS }),
        ] {
            let ended = host::run_within(host::child(program).arg(argument), bounds);
            let error = problem(ended.expect_err("beyond a bound"));
            assert!(matches!(&error, SourcesError::Git { .. }), "{error}");
        }
        let absent = problem(Error::from(ErrorKind::PermissionDenied));
        assert!(matches!(&absent, SourcesError::File(_)), "{absent}");
    }
}

//! The files of a directory as the program git lists them. Nothing of the directory runs: its configuration may name programs, and git
//! would start one to fetch an object that a partial clone lacks.
#![expect(clippy::disallowed_methods, reason = "edge: runs git and waits for it")]

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use camino::Utf8Path;

use super::sources_error::SourcesError;
use crate::host;

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
const LIMIT: Duration = Duration::from_secs(30);
/// Bytes of a list, and of what git says of a failure.
const MOST: u64 = 64 << 20;
const MOST_SAID: u64 = 64 << 10;

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
    command.args(arguments).env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0").stdin(Stdio::null());
    match command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
        Ok(child) => output(child, LIMIT).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Waits for git within bounds of time and output: a pipe in a file's place would never end, and a list may have any length.
fn output(mut child: Child, limit: Duration) -> Result<Output, SourcesError> {
    let stdout = read_beside(child.stdout.take(), MOST + 1);
    let stderr = read_beside(child.stderr.take(), MOST_SAID);
    let end = Instant::now() + limit;
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
            None => {
                child.kill()?;
                child.wait()?;
                return Err(SourcesError::git(&format!("it did not end within {} s", limit.as_secs())));
            }
        }
    };
    let read = |reader: JoinHandle<Vec<u8>>| reader.join().unwrap_or_default();
    let (stdout, stderr) = (read(stdout), read(stderr));
    if stdout.len() as u64 > MOST {
        return Err(SourcesError::git(&format!("its list is longer than {} MiB", MOST >> 20)));
    }
    Ok(Output { status, stdout, stderr })
}

/// Reads a pipe in a thread, up to a bound: then it is closed, which ends its writer.
fn read_beside(pipe: Option<impl Read + Send + 'static>, most: u64) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // What was read before an error is shorter than the whole, and git's status says why.
            drop(pipe.take(most).read_to_end(&mut bytes));
        }
        bytes
    })
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
    fn git_that_does_not_end_is_ended() {
        let sleep = host::child("sleep").arg("60").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let error = output(sleep.expect("it starts"), Duration::from_millis(50)).expect_err("ended");
        assert!(error.to_string().contains("it did not end within"), "{error}");
    }
}

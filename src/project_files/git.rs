//! The files of a directory as the program git lists them. Nothing of the directory runs: its configuration may name programs, and git
//! would start one to fetch an object that a partial clone lacks.

use std::collections::BTreeMap;
use std::process::{Output, Stdio};

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
    for entry in names(&output.stdout)? {
        // `100644 HASH 0<tab>PATH`
        let Some((facts, path)) = entry.split_once('\t') else { continue };
        let kind = if facts.starts_with("160000") { Tracked::Submodule } else { Tracked::File };
        found.insert(path.to_owned(), kind);
    }
    Ok((!found.is_empty()).then_some(found))
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
    for setting in ["core.fsmonitor=false", "core.hooksPath=/dev/null", "safe.bareRepository=explicit"] {
        command.args(["-c", setting]);
    }
    for name in OF_ANOTHER_REPOSITORY {
        command.env_remove(name);
    }
    // Before git 2.45 the first is unknown; the second forbids every way to another repository.
    command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none");
    command.args(arguments).env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0").stdin(Stdio::null());
    match command.output() {
        Ok(output) => Ok(Some(output)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn names(list: &[u8]) -> Result<Vec<String>, SourcesError> {
    let one = |name: &[u8]| match std::str::from_utf8(name) {
        Ok(name) => Ok(name.to_owned()),
        Err(_) => Err(SourcesError::Name { path: String::from_utf8_lossy(name).into_owned() }),
    };
    list.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(one).collect()
}

//! The sources that a project's own wheel is built from, as one archive.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};

use super::git::{self, Tracked};
use super::sources_error::{LIMIT, SourcesError};
use super::{LEFT_OUT, is_lock};
use crate::model::byte_size::readable;
use crate::model::editable::PYPROJECT;
use crate::model::project::secret::credential_in_file;
use crate::model::sha256::sha256_hex;
use crate::store::read_regular_at;

/// The directory of the archive that holds them.
const TOP: &str = "project";
/// The time of each entry: the earliest of a wheel.
const TIME: u64 = 315_532_800;
/// Files that are named one by one.
const NAMED: usize = 3;

/// The sources of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectSources {
    /// A tar of all of them below one directory: the same for the same paths, modes and contents.
    pub archive: Vec<u8>,
    /// Its SHA-256, hex.
    pub sha256: String,
    /// The text of its pyproject.toml.
    pub pyproject: Option<String>,
    /// What a person should know of them, one line each.
    pub notes: Vec<String>,
}

/// A file of the archive.
enum Source {
    File { real: Utf8PathBuf, size: u64, executable: bool },
    Link { to: String },
}

/// Collects the files that git knows; in no repository, all that `.gitignore` does not name.
pub fn collect_sources(project: &Utf8Path) -> Result<ProjectSources, SourcesError> {
    let root = project.canonicalize_utf8()?;
    let mut paths = BTreeSet::new();
    let mut notes = Vec::new();
    if known_below(&root, "", &mut paths)? {
        notes.extend(unknown_note(&root)?);
    } else {
        others_below(&root, &mut paths)?;
    }
    paths.retain(|path| !path.split('/').any(|name| LEFT_OUT.contains(&name)) && !is_lock(path));
    let mut sources = BTreeMap::new();
    for path in paths {
        if let Some(source) = source(&root, &path)? {
            sources.insert(path, source);
        }
    }
    check_size(&sources)?;
    let (archive, pyproject) = archive(&sources)?;
    Ok(ProjectSources { sha256: sha256_hex(&archive), archive, pyproject, notes })
}

/// Adds the paths that git knows below a directory of the project, those of its submodules too. Whether it is in a repository.
fn known_below(root: &Utf8Path, below: &str, paths: &mut BTreeSet<String>) -> Result<bool, SourcesError> {
    let Some(found) = git::tracked(&root.join(below))? else { return Ok(false) };
    for (path, kind) in found {
        let path = format!("{below}{path}");
        if kind == Tracked::File {
            paths.insert(path);
        } else if !is_repository(&root.join(&path)) || !known_below(root, &format!("{path}/"), paths)? {
            return Err(SourcesError::Submodule { path });
        }
    }
    Ok(true)
}

/// Whether a directory has a repository of its own. One that a link leads to may be the one around it.
fn is_repository(folder: &Utf8Path) -> bool {
    folder.join(".git").exists() && folder.canonicalize_utf8().is_ok_and(|real| real == folder)
}

/// Names files that git does not know: a new module is easily forgotten.
fn unknown_note(root: &Utf8Path) -> Result<Option<String>, SourcesError> {
    let mut unknown = git::unknown(root)?;
    unknown.retain(|path| !path.split('/').any(|name| LEFT_OUT.contains(&name)) && !is_lock(path));
    if unknown.is_empty() {
        return Ok(None);
    }
    let more = match unknown.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named: Vec<_> = unknown.iter().take(NAMED).map(|path| format!("`{path}`")).collect();
    Ok(Some(format!(
        "left out of the project's wheel, since git does not know them: {}{more}",
        named.join(", ")
    )))
}

/// Adds the paths below a directory of no repository.
fn others_below(root: &Utf8Path, paths: &mut BTreeSet<String>) -> Result<(), SourcesError> {
    let Some(found) = git::not_ignored(root)? else {
        return if root.join(".gitignore").exists() {
            Err(SourcesError::NoGit)
        } else {
            walk(root, "", paths)
        };
    };
    for path in found {
        if !path.ends_with('/') {
            paths.insert(path);
        } else if !known_below(root, &path, paths)? {
            walk(root, &path, paths)?;
        }
    }
    Ok(())
}

/// Adds every path below a directory, without following links.
fn walk(root: &Utf8Path, below: &str, paths: &mut BTreeSet<String>) -> Result<(), SourcesError> {
    for entry in fs_err::read_dir(root.join(below))? {
        let entry = entry?;
        let name = entry.file_name();
        let name =
            name.to_str().ok_or_else(|| SourcesError::Name { path: entry.path().display().to_string() })?;
        let path = format!("{below}{name}");
        if entry.file_type()?.is_dir() {
            if !LEFT_OUT.contains(&name) {
                walk(root, &format!("{path}/"), paths)?;
            }
        } else {
            paths.insert(path);
        }
    }
    Ok(())
}

/// Looks at a path; `None`: git knows a file that was removed.
fn source(root: &Utf8Path, path: &str) -> Result<Option<Source>, SourcesError> {
    let unreadable = |cause| SourcesError::Unreadable { path: path.to_owned(), cause };
    let place = root.join(path);
    let found = match fs_err::symlink_metadata(&place) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        found => found.map_err(unreadable)?,
    };
    // A directory of the path may be a link, too.
    let Ok(real) = place.canonicalize_utf8() else {
        let to = fs_err::read_link(&place).map_err(unreadable)?.to_string_lossy().into_owned();
        return Err(SourcesError::Link { path: path.to_owned(), to });
    };
    if !real.starts_with(root) {
        return Err(SourcesError::Outside { path: path.to_owned(), to: real });
    }
    if found.is_symlink() {
        let to = fs_err::read_link(&place).map_err(unreadable)?.to_string_lossy().into_owned();
        let is_absolute = to.starts_with('/');
        return if is_absolute {
            Err(SourcesError::Link { path: path.to_owned(), to })
        } else {
            Ok(Some(Source::Link { to }))
        };
    }
    if !found.is_file() {
        return Err(SourcesError::Special { path: path.to_owned() });
    }
    let executable = found.permissions().mode() & 0o111 != 0;
    Ok(Some(Source::File { real, size: found.len(), executable }))
}

fn check_size(sources: &BTreeMap<String, Source>) -> Result<(), SourcesError> {
    let size_of = |source: &Source| match source {
        Source::File { size, .. } => *size,
        Source::Link { .. } => 0,
    };
    let size = sources.values().map(size_of).fold(0_u64, u64::saturating_add);
    if size <= LIMIT {
        return Ok(());
    }
    let mut sizes: Vec<(u64, &String)> =
        sources.iter().map(|(path, source)| (size_of(source), path)).collect();
    sizes.sort_by(|one, other| other.cmp(one));
    let largest = sizes.into_iter().take(NAMED);
    let largest = largest.map(|(size, path)| format!("`{path}` ({})", readable(size))).collect();
    Err(SourcesError::TooLarge { size, largest })
}

/// The archive and the text of pyproject.toml: the one place where contents are read. Each is looked through for a secret.
fn archive(sources: &BTreeMap<String, Source>) -> Result<(Vec<u8>, Option<String>), SourcesError> {
    let mut pyproject = None;
    let mut tar = tar::Builder::new(Vec::new());
    for (path, source) in sources {
        let mut header = tar::Header::new_gnu();
        header.set_mtime(TIME);
        let name = format!("{TOP}/{path}");
        match source {
            Source::Link { to } => {
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_mode(0o777);
                header.set_size(0);
                tar.append_link(&mut header, &name, to)?;
            }
            Source::File { real, size, executable } => {
                // It may have become another file since.
                let read = read_regular_at(real, *size);
                let bytes = read.map_err(|cause| SourcesError::Unreadable { path: path.clone(), cause })?;
                let text = std::str::from_utf8(&bytes).ok();
                let file = path.rsplit('/').next();
                if path == PYPROJECT {
                    pyproject = text.map(str::to_owned);
                }
                if let Some(what) = text.and_then(|text| credential_in_file(file, text)) {
                    return Err(SourcesError::Secret { path: path.clone(), what });
                }
                header.set_mode(if *executable { 0o755 } else { 0o644 });
                header.set_size(bytes.len() as u64);
                tar.append_data(&mut header, &name, bytes.as_slice())?;
            }
        }
    }
    Ok((tar.into_inner()?, pyproject))
}

#[cfg(test)]
#[path = "sources_tests.rs"]
mod tests;

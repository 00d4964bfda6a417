//! Layers of given files: envforge's own, the project's, byte code.

use std::collections::BTreeMap;

use crate::assemble::{Conflicts, LayerContent, LayerFile, LayerPlan};
use crate::container_layers::directories::{Directories, Directory};
use crate::model::image::context::{ContextContent, ContextEntry};
use crate::model::image::description::CopyDescription;
use crate::model::image::plan::BuildPlan;
use crate::model::sha256::sha256_hex;
use crate::store::read_regular;
use crate::workflow::error::CommandError;

/// Entrypoint, wrappers, constraints and agent.
pub(super) fn own_files(plan: &BuildPlan, known: &Directories) -> Result<LayerPlan, CommandError> {
    let mut files = BTreeMap::new();
    for entry in &plan.context {
        if let Some(path) = entry.path.strip_prefix("files/") {
            files.insert(path.to_owned(), layer_file(entry, 0)?);
        }
    }
    with_folders(files, known, 0)
}

/// The files of the project, if there are any.
pub(super) fn copied_files(plan: &BuildPlan, known: &Directories) -> Result<Option<LayerPlan>, CommandError> {
    let mut files = BTreeMap::new();
    for (number, copy) in plan.image.copies.iter().enumerate() {
        let start = format!("copy/{number}/");
        for entry in &plan.context {
            if let Some(path) = entry.path.strip_prefix(&start) {
                let to = copy.to.trim_matches('/');
                let below = format!("{to}/");
                let is_folder =
                    known.contains_key(to) || files.keys().any(|path: &String| path.starts_with(&below));
                files.insert(target(copy, path, is_folder), layer_file(entry, USER)?);
            }
        }
    }
    if files.is_empty() { Ok(None) } else { with_folders(files, known, USER).map(Some) }
}

/// User and group `dev`.
const USER: u32 = 1000;

/// Where a file of a COPY goes: below the target if that is a directory, of the image or of an earlier COPY.
fn target(copy: &CopyDescription, path: &str, is_folder: bool) -> String {
    let to = copy.to.trim_matches('/');
    let is_below = copy.folder || copy.to.ends_with('/') || is_folder;
    match (is_below, to) {
        (true, "") => path.to_owned(),
        (true, to) => format!("{to}/{path}"),
        (false, to) => to.to_owned(),
    }
}

fn layer_file(entry: &ContextEntry, owner: u32) -> Result<LayerFile, CommandError> {
    let bytes = match &entry.content {
        ContextContent::Bytes(bytes) => bytes.clone(),
        ContextContent::File { path, size, sha256 } => {
            let bytes = read_regular(path, *size)?;
            if sha256_hex(&bytes) != *sha256 {
                let text = format!("`{path}` changed while the image was built: build it again");
                return Err(std::io::Error::other(text).into());
            }
            bytes.into()
        }
    };
    let content = LayerContent::File(bytes);
    Ok(LayerFile { mode: entry.mode, uid: owner, gid: owner, content })
}

/// The layer of some files with every directory above them: as the image has it below, or new and its owner's.
fn with_folders(
    mut files: BTreeMap<String, LayerFile>,
    known: &Directories,
    owner: u32,
) -> Result<LayerPlan, CommandError> {
    let paths: Vec<String> = files.keys().cloned().collect();
    for path in paths {
        for (end, _) in path.match_indices('/') {
            let folder = &path[..end];
            let new = Directory { mode: 0o755, uid: owner, gid: owner };
            let Directory { mode, uid, gid } = known.get(folder).copied().unwrap_or(new);
            files.entry(folder.to_owned()).or_insert(LayerFile {
                mode,
                uid,
                gid,
                content: LayerContent::Folder,
            });
        }
    }
    Ok(LayerPlan::new(&[], &Conflicts::default(), files)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_goes_below_a_directory_and_is_the_target_otherwise() {
        let copy = |to: &str, folder| CopyDescription {
            from: "x".to_owned(),
            to: to.to_owned(),
            folder,
            name: "x".to_owned(),
            words: String::new(),
        };
        assert_eq!(target(&copy("/opt/x", false), "a.txt", false), "opt/x");
        assert_eq!(target(&copy("/opt/x", false), "a.txt", true), "opt/x/a.txt");
        assert_eq!(target(&copy("/opt/x/", false), "a.txt", false), "opt/x/a.txt");
        assert_eq!(target(&copy("/opt/x", true), "in/a.txt", false), "opt/x/in/a.txt");
        assert_eq!(target(&copy("/", true), "a.txt", true), "a.txt");
    }
}

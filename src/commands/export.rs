//! `export dockerfile`: the context of a build, written to a folder that any engine can build.
#![expect(clippy::disallowed_methods, reason = "writes the folder")]

use std::os::unix::fs::PermissionsExt as _;

use camino::Utf8Path;

use super::build::{cached_file, files};
use super::lock::{Locked, lock_for, stack};
use super::session::Session;
use super::{CommandError, Exit};
use crate::cli::DockerfileArgs;
use crate::context::{ContextContent, ContextEntry};
use crate::plan::{Bottom, plan};
use crate::report::Printer;
use crate::settings::Settings;

/// Written last, so that a folder which holds it is a whole export of ours.
const MARK: &str = ".envforge-export";

pub(super) async fn dockerfile(args: &DockerfileArgs, settings: &Settings) -> Result<Exit, CommandError> {
    let dir = settings.current_dir.join(&args.dir);
    check_empty(&dir, args.force)?;
    let stack = stack(settings, &args.spec, &args.source, &args.target)?;
    let session = Session::open(settings, args.source.network.as_deref()).await?;
    let Locked { lock, base, .. } = lock_for(&session, stack, &args.spec, &args.source).await?;
    let bottom = match &base.archive {
        Some(archive) => Bottom::Archive(cached_file(archive.clone())?),
        None => Bottom::Image(base.reference.clone()),
    };
    let plan = plan(&lock, files(&session, &lock, &base, bottom).await?);
    write_folder(&dir, &plan.context)?;
    fs_err::write(dir.join("envforge.lock"), lock.to_toml())?;
    fs_err::write(dir.join(".dockerignore"), "envforge.lock\n.dockerignore\n.envforge-export\n")?;
    fs_err::write(dir.join(MARK), format!("{}\n", plan.lock))?;
    Printer.text(dir.as_str());
    Ok(Exit::Done)
}

fn check_empty(dir: &Utf8Path, force: bool) -> Result<(), CommandError> {
    let refuse = || CommandError::NotEmpty { dir: dir.to_string() };
    match fs_err::read_dir(dir) {
        Ok(mut entries) => {
            let ours = dir.join(MARK).is_file();
            if entries.next().is_some() && !(force && ours) { Err(refuse()) } else { Ok(()) }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Writes the entries below `dir`, each through a temporary name.
fn write_folder(dir: &Utf8Path, entries: &[ContextEntry]) -> Result<(), CommandError> {
    for entry in entries {
        let path = dir.join(&entry.path);
        fs_err::create_dir_all(path.parent().unwrap_or(dir))?;
        match &entry.content {
            ContextContent::Bytes(bytes) => fs_err::write(&path, bytes)?,
            ContextContent::File { path: from, .. } => {
                fs_err::copy(from, &path)?;
            }
        }
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(entry.mode))?;
    }
    Ok(())
}

//! The sources of a project that is installed in its image, and the lock of that image.

use crate::failure::{Exit, Failure};
use crate::model::lock::Lock;
use crate::model::project::ProjectMode;
use crate::project_files::{ProjectSources, collect_sources};
use crate::store::Store;
use crate::store::installed_images::installed_image;
use crate::store::known_locks::known_lock;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;

/// No image has the project's sources as they are.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("no image with the project's sources as they are was built here (`project = \"install\"`)")]
pub(crate) struct NotInstalled;

impl Failure for NotInstalled {
    fn exit(&self) -> Exit {
        Exit::No
    }

    fn hints(&self) -> Vec<String> {
        vec!["build it: `envforge build`".to_owned()]
    }
}

/// Whether the project's own wheel is part of its image.
pub(crate) fn is_installed(wanted: &BuildRequest) -> bool {
    wanted.folder.is_some() && wanted.code.mode == Some(ProjectMode::Install)
}

/// The sources of the project; `None`: it is not installed.
pub(crate) fn sources_of(wanted: &BuildRequest) -> Result<Option<ProjectSources>, CommandError> {
    match &wanted.folder {
        Some(folder) if is_installed(wanted) => Ok(Some(collect_sources(folder)?)),
        _ => Ok(None),
    }
}

/// The hash of the lock that the image of a project's lock is built from: of another one if the project is installed. `None`: an image
/// of its sources was never built here.
pub(crate) fn image_hash(
    store: &Store,
    wanted: &BuildRequest,
    lock: &Lock,
) -> Result<Option<String>, CommandError> {
    let Some(sources) = sources_of(wanted)? else { return Ok(Some(lock.hash())) };
    Ok(installed_image(store, &lock.hash(), &sources.sha256)?)
}

/// The same for a caller that needs the image; an error if it was never built here.
pub(crate) fn built_hash(store: &Store, wanted: &BuildRequest, lock: &Lock) -> Result<String, CommandError> {
    image_hash(store, wanted, lock)?.ok_or_else(|| NotInstalled.into())
}

/// The lock that the image of a project's lock is built from: itself, unless the project is installed. `None`: an image of its sources was
/// never built here.
pub(crate) fn image_lock(
    store: &Store,
    wanted: &BuildRequest,
    lock: Lock,
) -> Result<Option<Lock>, CommandError> {
    if !is_installed(wanted) {
        return Ok(Some(lock));
    }
    Ok(image_hash(store, wanted, &lock)?.and_then(|hash| known_lock(store, &hash)))
}

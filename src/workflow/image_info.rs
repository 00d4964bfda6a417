//! An image or lock that was named, with what is known of the other.

use camino::Utf8PathBuf;

use crate::engine::ImageInfo;
use crate::model::image::plan::LOCK_LABEL;
use crate::model::lock::Lock;
use crate::model::project::FILE;
use crate::model::request::{LockOptions, ProjectOptions, SpecArgument, TargetOptions};
use crate::model::spec::strip_unverified;
use crate::model::typed_path::is_path;
use crate::settings::Settings;
use crate::store::Store;
use crate::store::known_locks::known_lock;
use crate::workflow::build_request::{BuildRequest, wanted};
use crate::workflow::error::CommandError;
use crate::workflow::image_error::ImageError;
use crate::workflow::lock_error::LockingError;
use crate::workflow::lock_file::{lock_bytes, lock_path, read_lock};
use crate::workflow::own_images::{images_of_lock, listed_images};
use crate::workflow::project_sources::{image_lock, is_installed};
use crate::workflow::session::Session;
use crate::workflow::stack::stack;
use crate::workflow::verify_target::{local, spec_of};

/// What was named.
pub(crate) struct NamedImage {
    /// As typed, or the tag that was found.
    pub(crate) name: String,
    /// The image; `None`: a lock that is not built.
    pub(crate) image: Option<ImageInfo>,
    /// Its lock; `None`: not on this machine.
    pub(crate) lock: Option<Lock>,
}

/// The image, spec, lock file or project's folder of that name; without a name the project here.
pub(crate) async fn described(
    session: &Session<'_>,
    name: Option<&str>,
    project: &ProjectOptions,
) -> Result<NamedImage, CommandError> {
    let Some(name) = name else { return of_project(session, project).await };
    let path = session.settings.paths.current_dir.join(name);
    let file = if path.is_dir() && is_path(name) { path.join(FILE) } else { path };
    match file.file_name() {
        Some(FILE) if file.is_file() => {
            let project = ProjectOptions { project: Some(file), ..project.clone() };
            return of_project(session, &project).await;
        }
        Some(FILE) if is_path(name) => {
            return Err(ImageError::NoProject { folder: name.to_owned() }.into());
        }
        _ if file.is_file() => return of_lock(session, name).await,
        _ => {}
    }
    let Some(named) = local(session, name).await? else {
        if let Some(spec) = spec_of(strip_unverified(name).0, &session.matrix) {
            return Err(ImageError::SpecNotBuilt { spec: spec.parsed().to_string() }.into());
        }
        let text = "not an image of this engine and not a lock file".to_owned();
        return Err(ImageError::NotFound { image: name.to_owned(), text }.into());
    };
    let lock = named.image.labels.get(LOCK_LABEL).and_then(|hash| known_lock(&session.store, hash));
    Ok(NamedImage { name: named.reference, image: Some(named.image), lock })
}

/// A lock that was named where no engine can be asked.
enum LockAtHand {
    OfFile(Utf8PathBuf),
    Requested(Box<BuildRequest>),
}

impl LockAtHand {
    fn named(
        settings: &Settings,
        name: Option<&str>,
        project: &ProjectOptions,
    ) -> Result<Self, CommandError> {
        let (source, target) = (LockOptions::default(), TargetOptions::default());
        let path = name.map(|name| settings.paths.current_dir.join(name));
        let (spec, project) = match (name, path) {
            (Some(name), Some(path)) if path.is_dir() && is_path(name) => {
                (None, ProjectOptions { project: Some(path.join(FILE)), ..project.clone() })
            }
            (Some(_), Some(path)) if path.is_file() && path.file_name() != Some(FILE) => {
                return Ok(Self::OfFile(path));
            }
            (Some(_), Some(path)) if path.is_file() => {
                (None, ProjectOptions { project: Some(path), ..project.clone() })
            }
            (name, _) => (name, project.clone()),
        };
        let spec = spec.map(|name| SpecArgument::from(name.to_owned()));
        Ok(Self::Requested(Box::new(wanted(spec.as_ref(), &project, &source, &target, settings)?)))
    }

    fn read(&self, settings: &Settings) -> Result<Option<Lock>, CommandError> {
        let wanted = match self {
            Self::OfFile(path) => return read_lock(path),
            Self::Requested(wanted) => wanted,
        };
        if let Some(file) = &wanted.source.lockfile {
            return read_lock(&settings.paths.current_dir.join(file));
        }
        let stack = stack(settings, &wanted.spec, &wanted.source, &wanted.target, None)?;
        read_lock(&lock_path(settings, &stack, &wanted.source))
    }
}

/// The lock of that spec, lock file or project, where no engine can be asked for an image of that name; `None`: there is none.
pub(crate) fn lock_at_hand(
    settings: &Settings,
    name: Option<&str>,
    project: &ProjectOptions,
) -> Result<Option<Lock>, CommandError> {
    LockAtHand::named(settings, name, project)?.read(settings)
}

/// The same of its image, which has the project's own wheel if that is installed; `None`: there is no lock, or no image of these sources
/// was built here.
pub(crate) fn image_lock_at_hand(
    settings: &Settings,
    store: &Store,
    name: Option<&str>,
    project: &ProjectOptions,
) -> Result<Option<Lock>, CommandError> {
    let named = LockAtHand::named(settings, name, project)?;
    let lock = named.read(settings)?;
    match (named, lock) {
        (LockAtHand::Requested(wanted), Some(lock)) => image_lock(store, &wanted, lock),
        (_, lock) => Ok(lock),
    }
}

/// What a build of that spec or project is asked for; `None`: a lock file was named, which does not say what it was made from.
pub(crate) fn build_request_of(
    settings: &Settings,
    name: Option<&str>,
    project: &ProjectOptions,
) -> Result<Option<BuildRequest>, CommandError> {
    match LockAtHand::named(settings, name, project)? {
        LockAtHand::OfFile(_) => Ok(None),
        LockAtHand::Requested(wanted) => Ok(Some(*wanted)),
    }
}

async fn of_project(session: &Session<'_>, project: &ProjectOptions) -> Result<NamedImage, CommandError> {
    let (source, target) = (LockOptions::default(), TargetOptions::default());
    let wanted = wanted(None, project, &source, &target, session.settings)?;
    let file = wanted.source.lockfile.clone().expect("a project has a lock file");
    let found = of_lock(session, file.as_str()).await?;
    if !is_installed(&wanted) {
        return Ok(found);
    }
    // The image of its sources has a lock of its own.
    let lock = match found.lock.clone() {
        Some(lock) => image_lock(&session.store, &wanted, lock)?,
        None => None,
    };
    let Some(lock) = lock else { return Ok(NamedImage { image: None, ..found }) };
    let image = images_of_lock(session, &lock.hash()).await?.into_iter().next().map(|named| named.image);
    Ok(NamedImage { name: crate::model::image::plan::name(&lock), image, lock: Some(lock) })
}

async fn of_lock(session: &Session<'_>, file: &str) -> Result<NamedImage, CommandError> {
    let path = session.settings.paths.current_dir.join(file);
    let bytes = match lock_bytes(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(LockingError::Stale {
                file: path.to_string(),
                differences: Vec::new(),
                locked: false,
                call: None,
            }
            .into());
        }
        Err(error) => return Err(error.into()),
    };
    let lock = Lock::from_bytes(file, &bytes)?;
    let hash = lock.hash();
    let mut image = images_of_lock(session, &hash).await?.into_iter().next().map(|named| named.image);
    if image.is_none() {
        // One from elsewhere, which its label alone connects with the lock.
        let is_of_lock = |image: &ImageInfo| image.labels.get(LOCK_LABEL) == Some(&hash);
        image = listed_images(session).await?.into_iter().find(is_of_lock);
    }
    Ok(NamedImage { name: crate::model::image::plan::name(&lock), image, lock: Some(lock) })
}

//! An image or lock that was named, with what is known of the other.
#![expect(clippy::disallowed_methods, reason = "edge: reads locks")]

use super::CommandError;
use super::known_locks::known_lock;
use super::session::Session;
use super::verify::local;
use super::wanted::wanted;
use crate::cli::{LockSource, ProjectArgs, TargetArgs};
use crate::engine::ImageInfo;
use crate::lock::Lock;
use crate::plan::LOCK_LABEL;

/// What was named.
pub(super) struct Described {
    /// As typed, or the tag that was found.
    pub(super) name: String,
    /// The image; `None`: a lock that is not built.
    pub(super) image: Option<ImageInfo>,
    /// Its lock; `None`: not on this machine.
    pub(super) lock: Option<Lock>,
}

/// The image, spec or lock file of that name; without a name that of the project here.
pub(super) async fn described(
    session: &Session<'_>,
    name: Option<&str>,
    project: &ProjectArgs,
) -> Result<Described, CommandError> {
    let Some(name) = name else {
        let (source, target) = (LockSource::default(), TargetArgs::default());
        let wanted = wanted(None, project, &source, &target, session.settings)?;
        let file = wanted.source.lockfile.expect("a project has its lock beside it");
        return of_lock(session, file.as_str()).await;
    };
    if session.settings.current_dir.join(name).is_file() {
        return of_lock(session, name).await;
    }
    let Some(named) = local(session, name).await? else {
        let text = "it is neither an image of this engine nor a lock file".to_owned();
        return Err(CommandError::NoImage { image: name.to_owned(), text });
    };
    let lock = named.image.labels.get(LOCK_LABEL).and_then(|hash| known_lock(&session.store, hash));
    Ok(Described { name: named.reference, image: Some(named.image), lock })
}

async fn of_lock(session: &Session<'_>, file: &str) -> Result<Described, CommandError> {
    let path = session.settings.current_dir.join(file);
    let bytes = match fs_err::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(CommandError::Stale { file: path.to_string(), differences: Vec::new() });
        }
        Err(error) => return Err(error.into()),
    };
    let lock = Lock::from_bytes(file, &bytes)?;
    let hash = lock.hash();
    let images = session.engine.images(LOCK_LABEL).await?;
    let image = images.into_iter().find(|image| image.labels.get(LOCK_LABEL) == Some(&hash));
    Ok(Described { name: crate::plan::name(&lock), image, lock: Some(lock) })
}

/// Bytes as gigabytes with two decimals.
pub(super) fn gigabytes(bytes: u64) -> String {
    format!("{}.{:02} GB", bytes / 1_000_000_000, bytes / 10_000_000 % 100)
}

/// Bytes in the unit that reads best.
pub(super) fn readable(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        1_000_000..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => gigabytes(bytes),
    }
}

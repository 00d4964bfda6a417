//! Images that were built on this machine, for the verbs that are called without an image.

use crate::engine::ImageInfo;
use crate::failure::{Exit, Failure};
use crate::model::image::plan::{LOCK_LABEL, UNVERIFIED};
use crate::model::request::ProjectOptions;
use crate::report::Event;
use crate::settings::Settings;
use crate::store::built_images::{built_from, last_used};
use crate::workflow::build_request::BuildRequest;
use crate::workflow::custom_base::named_base;
use crate::workflow::error::CommandError;
use crate::workflow::lock_file::{lock_path, read_lock};
use crate::workflow::session::Session;
use crate::workflow::stack::stack;
use crate::workflow::verify_target::Named;

/// No image was named, and none can be chosen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoImageChosen {
    /// There is neither a project nor an image of this machine.
    #[error(
        "no image of envforge on this engine, and no envforge.toml in `{folder}` or any parent directory"
    )]
    NothingBuilt {
        /// The working directory.
        folder: String,
    },
    /// The project here was not built on this engine.
    #[error("no image of `{lock}` on this engine")]
    ProjectNotBuilt {
        /// Its lock file.
        lock: String,
    },
    /// Checks of several images need a terminal to ask on.
    #[error("{} not verified yet; cannot ask without a terminal:\n  {}", counted(images.len()), images.join("\n  "))]
    CannotAsk {
        /// The images.
        images: Vec<String>,
    },
}

impl Failure for NoImageChosen {
    fn exit(&self) -> Exit {
        match self {
            Self::NothingBuilt { .. } | Self::CannotAsk { .. } => Exit::Usage,
            Self::ProjectNotBuilt { .. } => Exit::No,
        }
    }

    fn hints(&self) -> Vec<String> {
        vec![match self {
            Self::NothingBuilt { .. } => {
                "build an image: `envforge build pytorch-cuda`, or create a project: `envforge init`"
                    .to_owned()
            }
            Self::ProjectNotBuilt { .. } => "build it: `envforge build`".to_owned(),
            Self::CannotAsk { images } => {
                format!("pass the images to verify: `envforge verify {}`", images.join(" "))
            }
        }]
    }
}

/// Returns `1 image is`, `2 images are`.
pub(crate) fn counted(count: usize) -> String {
    if count == 1 { "1 image is".to_owned() } else { format!("{count} images are") }
}

/// Whether neither the working directory nor one above it has a project file.
pub(crate) fn is_outside_project(settings: &Settings) -> bool {
    crate::workflow::project::found(&ProjectOptions::default(), settings).is_err()
}

/// Returns the error for a machine without project and image.
pub(crate) fn nothing_built(settings: &Settings) -> CommandError {
    NoImageChosen::NothingBuilt { folder: settings.paths.current_dir.to_string() }.into()
}

/// The tagged images that were built here, the one last used or built first.
pub(crate) async fn own_images(session: &Session<'_>) -> Result<Vec<Named>, CommandError> {
    let mut found = Vec::new();
    for image in session.engine.images(LOCK_LABEL).await? {
        // Anybody can write a label: only images that were built here count.
        if let Some(used) = last_used(&session.store, &image.id)?
            && let Some(named) = named(image)
        {
            found.push((used, named));
        }
    }
    found.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.reference.cmp(&b.reference)));
    Ok(found.into_iter().map(|(_, named)| named).collect())
}

/// Whether no tag of the image says that its checks ran on a GPU.
pub(crate) fn is_unverified(image: &ImageInfo) -> bool {
    image.tags.iter().all(|tag| tag.ends_with(UNVERIFIED))
}

/// The image of the project's lock, if it was built on this engine.
pub(crate) async fn image_of_project(
    session: &Session<'_>,
    wanted: &BuildRequest,
) -> Result<Named, CommandError> {
    let file = wanted.source.lockfile.clone().unwrap_or_default();
    let path = session.settings.paths.current_dir.join(&file);
    let hashes = read_lock(&path)?.map(|lock| lock.hashes()).unwrap_or_default();
    let lock = path.strip_prefix(&session.settings.paths.current_dir).unwrap_or(&path).to_string();
    tagged(session, &hashes).await?.ok_or_else(|| NoImageChosen::ProjectNotBuilt { lock }.into())
}

/// The image of the lock with these hashes, by a verified tag if it has one; one of its own hash comes first.
pub(crate) async fn tagged(session: &Session<'_>, hashes: &[String]) -> Result<Option<Named>, CommandError> {
    let images = session.engine.images(LOCK_LABEL).await?;
    // Anybody can write a label: only what was built here counts.
    let built = |image: &ImageInfo, hash: &String| -> Result<bool, CommandError> {
        let claimed = image.labels.get(LOCK_LABEL) == Some(hash);
        Ok(claimed && built_from(&session.store, &image.id)?.is_some_and(|from| hashes.contains(&from)))
    };
    for hash in hashes {
        for image in &images {
            if built(image, hash)?
                && let Some(named) = named(image.clone())
            {
                return Ok(Some(named));
            }
        }
    }
    Ok(None)
}

fn named(image: ImageInfo) -> Option<Named> {
    let tag = image.tags.iter().find(|tag| !tag.ends_with(UNVERIFIED)).or(image.tags.first())?.clone();
    Some(Named { reference: tag, image })
}

/// Reports that the project asks for another image than that of its lock.
pub(crate) async fn note_stale_lock(
    session: &Session<'_>,
    wanted: &BuildRequest,
) -> Result<(), CommandError> {
    let base = named_base(session.settings, &wanted.source, &wanted.target).await?;
    let stack = stack(session.settings, &wanted.spec, &wanted.source, &wanted.target, base.as_ref())?;
    let path = lock_path(session.settings, &stack, &wanted.source);
    if let Some(lock) = read_lock(&path)?
        && !lock.differences_from(&stack, &wanted.added).is_empty()
    {
        let text =
            format!("{path} is out of date: using the image of that lock (`envforge build` updates both)");
        session.reporter.report(Event::Note { text });
    }
    Ok(())
}

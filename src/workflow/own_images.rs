//! Images that were built on this machine, for the verbs that are called without an image.

use crate::engine::{ImageInfo, is_temporary};
use crate::failure::{Exit, Failure};
use crate::model::image::plan::LOCK_LABEL;
use crate::model::request::ProjectOptions;
use crate::model::verdict::tag_policy::is_moving;
use crate::report::Event;
use crate::settings::Settings;
use crate::store::built_images::{built_at, built_from, last_used};
use crate::workflow::build_request::BuildRequest;
use crate::workflow::custom_base::named_base_in;
use crate::workflow::error::CommandError;
use crate::workflow::lock_file::{lock_path, read_lock};
use crate::workflow::named::{Named, named};
use crate::workflow::project_sources::image_hash;
use crate::workflow::proven::proven;
use crate::workflow::session::Session;
use crate::workflow::stack::stack;

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

/// The images of envforge on the engine, without temporary tags. The image of a running build has no other tag: it is none yet.
pub(crate) async fn listed_images(session: &Session<'_>) -> Result<Vec<ImageInfo>, CommandError> {
    let images = session.engine.images(LOCK_LABEL).await?;
    Ok(images.into_iter().filter_map(without_temporary_tags).collect())
}

fn without_temporary_tags(mut image: ImageInfo) -> Option<ImageInfo> {
    let before = image.tags.len();
    image.tags.retain(|tag| !is_temporary(tag));
    // The first is the one to call it by.
    image.tags.sort_by_key(|tag| is_moving(tag));
    (before == 0 || !image.tags.is_empty()).then_some(image)
}

/// The tagged images that were built here, the one last used or built first.
pub(crate) async fn own_images(session: &Session<'_>) -> Result<Vec<Named>, CommandError> {
    let mut found = Vec::new();
    for image in listed_images(session).await? {
        // Anybody can write a label: only images that were built here count.
        if !image.tags.is_empty()
            && let Some(used) = last_used(&session.store, &image.id)?
        {
            found.push((used, named(image)));
        }
    }
    found.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.reference.cmp(&b.reference)));
    Ok(found.into_iter().map(|(_, named)| named).collect())
}

/// The image of the project's lock, if it was built on this engine; `or_failed`: also one without a tag, whose checks failed.
pub(crate) async fn image_of_project(
    session: &Session<'_>,
    wanted: &BuildRequest,
    or_failed: bool,
) -> Result<Named, CommandError> {
    let file = wanted.source.lockfile.clone().unwrap_or_default();
    let path = session.settings.paths.current_dir.join(&file);
    let lock = path.strip_prefix(&session.settings.paths.current_dir).unwrap_or(&path).to_string();
    let images = match read_lock(&path)? {
        Some(lock) => match image_hash(&session.store, wanted, &lock)? {
            Some(hash) => images_of_lock(session, &hash).await?,
            None => Vec::new(),
        },
        None => Vec::new(),
    };
    let image = images.into_iter().find(|named| or_failed || !named.image.tags.is_empty());
    image.ok_or_else(|| NoImageChosen::ProjectNotBuilt { lock }.into())
}

/// The image that was built here from the lock with this hash: the newest with a standing report of a GPU, else the newest. One
/// whose checks failed when it was built has no tag and is not opened.
pub(crate) async fn image_of_lock(session: &Session<'_>, hash: &str) -> Result<Option<Named>, CommandError> {
    let images = images_of_lock(session, hash).await?;
    Ok(images.into_iter().find(|named| !named.image.tags.is_empty()))
}

/// All images that were built here from the lock with this hash, the best first.
pub(crate) async fn images_of_lock(session: &Session<'_>, hash: &str) -> Result<Vec<Named>, CommandError> {
    let mut found = Vec::new();
    for image in listed_images(session).await? {
        // Anybody can write a label: only what was built here counts.
        if built_from(&session.store, &image.id)?.is_none_or(|from| from != hash) {
            continue;
        }
        let proven = proven(&session.store, &*session.reporter, &image)?;
        let gpu = proven.proven.iter().filter(|proof| !proof.gpus.is_empty());
        let newest = gpu.map(|proof| proof.checked.clone()).max();
        let built = built_at(&session.store, &image.id)?;
        found.push(((!image.tags.is_empty(), proven.is_verified(), newest, built), named(image)));
    }
    found.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.reference.cmp(&b.reference)));
    Ok(found.into_iter().map(|(_, named)| named).collect())
}

/// Reports that the project asks for another image than that of its lock.
pub(crate) async fn note_stale_lock(
    session: &Session<'_>,
    wanted: &BuildRequest,
) -> Result<(), CommandError> {
    let base = named_base_in(session, &wanted.source, &wanted.target).await?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn image(tags: &[&str]) -> ImageInfo {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        ImageInfo { id: "sha256:0123456789abcdef".to_owned(), tags, ..ImageInfo::default() }
    }

    #[test]
    fn image_of_a_running_build_is_not_listed() {
        let shown = |tags: &[&str]| without_temporary_tags(image(tags)).map(|image| image.tags);
        assert_eq!(shown(&["envforge-scratch:1-ab"]), None);
        assert_eq!(shown(&["envforge-scratch:1-ab", "x:1"]), Some(vec!["x:1".to_owned()]));
        assert_eq!(shown(&[]), Some(vec![]), "an image whose checks failed");
        assert_eq!(shown(&["envforge-scratches:1"]).map(|tags| tags.len()), Some(1));
    }
}

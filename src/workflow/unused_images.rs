//! Images, volumes and cached files that no lock in use refers to: found and removed for `prune`.
#![expect(clippy::disallowed_methods, reason = "asks the clock for the age of files of the cache")]

use std::collections::BTreeSet;
use std::time::SystemTime;

use crate::engine::ImageInfo;
use crate::model::image::plan::LOCK_LABEL;
use crate::model::verdict::ImageState;
use crate::report::{Event, NullReporter};
use crate::store::built_images::built_from;
use crate::store::known_locks::{in_use, known_lock, unread_locks};
use crate::store::unused::{CacheFile, remove, unused as unused_files};
use crate::store::{Store, StoreError, reports};
use crate::workflow::error::CommandError;
use crate::workflow::proven::lock_of_build;
use crate::workflow::session::Session;
use crate::workflow::shell::ETC_LABEL;

/// Whatever `prune` may remove.
pub(crate) struct Unused<'a> {
    pub(crate) images: Vec<&'a ImageInfo>,
    /// Volumes of `shell` that belong to images which are gone, or among these.
    pub(crate) volumes: Vec<String>,
    pub(crate) files: Vec<CacheFile>,
}

/// Finds unused images among all of envforge's, their volumes and, if `cache`, unused files of the cache.
pub(crate) async fn unused<'a>(
    session: &Session<'_>,
    all: &'a [ImageInfo],
    cache: bool,
) -> Result<Unused<'a>, CommandError> {
    let used = in_use(&session.store);
    let mut images = Vec::new();
    // Which images a lock that cannot be read names is not known: none is removed.
    let unread = unread_locks(&session.store);
    if !unread.is_empty() {
        let text = format!("no image is removed: cannot read the lock {}", unread.join(", "));
        session.reporter.report(Event::Warning { text });
    }
    for image in all.iter().filter(|_| unread.is_empty()) {
        // An image of another state folder belongs to another user.
        let is_ours = built_from(&session.store, &image.id)?.is_some()
            || known_lock(&session.store, lock_of(image)).is_some();
        if is_ours && !is_in_use(&session.store, image, all, &used)? {
            images.push(image);
        }
    }
    let volumes = stale_volumes(session, &images).await?;
    let files = if cache { unused_files(&session.store, SystemTime::now()) } else { Vec::new() };
    Ok(Unused { images, volumes, files })
}

/// Removes files first, then each image by its tags (by id without one), then volumes.
pub(crate) async fn remove_unused(session: &Session<'_>, unused: &Unused<'_>) -> Result<(), CommandError> {
    remove(&session.store, &unused.files)?;
    for image in &unused.images {
        if image.tags.is_empty() {
            session.engine.remove_image(&image.id).await?;
        }
        for tag in &image.tags {
            session.engine.remove_image(tag).await?;
        }
    }
    for volume in &unused.volumes {
        session.containers.remove_volume(volume).await?;
    }
    Ok(())
}

/// Volumes that hold /etc for users of an image which is gone, or is among these.
async fn stale_volumes(session: &Session<'_>, unused: &[&ImageInfo]) -> Result<Vec<String>, CommandError> {
    let mut stale = Vec::new();
    for (volume, image) in session.containers.volumes(ETC_LABEL).await? {
        if unused.iter().any(|one| one.id == image) || session.engine.image(&image).await?.is_none() {
            stale.push(volume);
        }
    }
    Ok(stale)
}

/// Whether a lock in use refers to it, no later image of that lock has taken its tags, and it has a tag or did not fail.
pub(crate) fn is_in_use(
    store: &Store,
    image: &ImageInfo,
    all: &[ImageInfo],
    used: &BTreeSet<String>,
) -> Result<bool, StoreError> {
    let is_failed = || -> Result<bool, StoreError> {
        let lock = lock_of_build(store, &NullReporter, &image.id)?;
        let state = reports::of_image(store, &image.id)?.proven(lock.as_ref()).state;
        Ok(state == ImageState::Failed)
    };
    Ok(has_lock_in_use(image, all, used) && !(image.tags.is_empty() && is_failed()?))
}

/// Whether a lock in use refers to it, and no later image of that lock has taken its tags.
fn has_lock_in_use(image: &ImageInfo, all: &[ImageInfo], used: &BTreeSet<String>) -> bool {
    let is_tagged = |other: &ImageInfo| lock_of(other) == lock_of(image) && !other.tags.is_empty();
    used.contains(lock_of(image)) && (!image.tags.is_empty() || !all.iter().any(is_tagged))
}

/// The lock hash of the image's label.
pub(crate) fn lock_of(image: &ImageInfo) -> &str {
    image.labels.get(LOCK_LABEL).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::{LockedWheel, sample};
    use crate::store::installed_images::remember_installed;
    use crate::store::known_locks::{OF_SPECS, remember_image};

    #[test]
    fn newest_image_of_an_installed_project_is_in_use_as_long_as_its_lock_file_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let lock = sample::lock();
        let build = |sources: &str, version: &str, second: i64| {
            let wheel = LockedWheel { version: version.to_owned(), ..lock.wheels[0].clone() };
            let image = lock.with_project(wheel);
            let time = jiff::Timestamp::from_second(second).expect("a time");
            remember_installed(&store, (&lock.hash(), sources), &image.hash(), time).expect("written");
            remember_image(&store, &image).expect("written");
            image.hash()
        };
        let (old, new) = (build("a", "1", 1), build("b", "2", 2));
        let image = |lock: &str| ImageInfo {
            id: lock.to_owned(),
            labels: [(LOCK_LABEL.to_owned(), lock.to_owned())].into(),
            tags: vec!["x:1".to_owned()],
            ..ImageInfo::default()
        };
        let all = [image(&old), image(&new)];
        let used =
            || all.each_ref().map(|image| is_in_use(&store, image, &all, &in_use(&store)).expect("read"));
        assert_eq!(used(), [false, false], "no lock file is in use");
        store.write_state(&format!("{OF_SPECS}/x.lock"), lock.to_toml().as_bytes()).expect("written");
        assert_eq!(used(), [false, true]);
        build("a", "1", 3);
        assert_eq!(used(), [true, false], "the older sources are built again");
    }

    #[test]
    fn image_whose_tags_went_to_a_later_one_of_its_lock_is_not_in_use() {
        let image = |id: &str, lock: &str, tags: &[&str]| ImageInfo {
            id: id.to_owned(),
            labels: [(LOCK_LABEL.to_owned(), lock.to_owned())].into(),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            ..ImageInfo::default()
        };
        let all = [
            image("old", "a", &[]),
            image("new", "a", &["x:1"]),
            image("not checked", "b", &[]),
            image("other", "c", &["y:1"]),
        ];
        let used = ["a", "b"].map(str::to_owned).into();
        let expected = [false, true, true, false];
        assert_eq!(all.each_ref().map(|image| has_lock_in_use(image, &all, &used)), expected);
    }
}

//! The image of a lock that an earlier run has put together: it is not made again.

use crate::engine::ImageInfo;
use crate::model::image::plan::name;
use crate::model::lock::Lock;
use crate::model::request::{Build, BuilderChoice};
use crate::model::sha256::sha256_hex;
use crate::model::verdict::tag_policy::unverified;
use crate::store::built_images::built_from;
use crate::store::{Store, StoreError};
use crate::workflow::assemble::Recipe;
use crate::workflow::error::CommandError;
use crate::workflow::image_records::are_current;
use crate::workflow::lock::LockedBuild;
use crate::workflow::session::Session;

/// Returns the image of a lock, if this program would build the same one and the options let it stay.
pub(crate) async fn finished_image(
    session: &Session<'_>,
    locked: &LockedBuild,
    args: &Build,
) -> Result<Option<ImageInfo>, CommandError> {
    let may_stay = args.builder == BuilderChoice::Assembled && !args.dry_run && !args.no_cache;
    // Layers for other machines may not have been published.
    if !may_stay
        || locked.new
        || !are_current(&locked.lock, &session.matrix)
        || session.layer_sources.writable().is_some()
    {
        return Ok(None);
    }
    let name = name(&locked.lock);
    for tag in [&name, &unverified(&name)] {
        let Some(image) = session.engine.image(tag).await? else { continue };
        if is_image_of(&session.store, &locked.lock, &image.id)? {
            return Ok(Some(image));
        }
    }
    Ok(None)
}

/// Whether an image was put together here from exactly this lock, with the configuration that the lock records.
fn is_image_of(store: &Store, lock: &Lock, id: &str) -> Result<bool, StoreError> {
    let config = |recipe: Recipe| format!("sha256:{}", sha256_hex(recipe.config.as_bytes()));
    let config = Recipe::of(store, id).map(config);
    let is_recorded = config.is_some() && config == lock.records.config;
    Ok(is_recorded && built_from(store, id)? == Some(lock.hash()))
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;
    use crate::model::lock::sample;
    use crate::store::built_images::remember_built;

    #[test]
    fn image_counts_only_with_the_lock_and_the_configuration_it_was_built_from() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let mut lock = sample::lock();
        lock.records.config = Some(format!("sha256:{}", sha256_hex(b"{}")));
        let is_image = |lock: &Lock| is_image_of(&store, lock, "sha256:a").expect("readable");
        let kept = |config: &str| {
            let recipe = Recipe::new(config.to_owned(), "debian".to_owned(), Vec::new());
            recipe.keep(&store, "sha256:a").expect("written");
        };
        remember_built(&store, "sha256:a", &lock.hash()).expect("written");
        assert!(!is_image(&lock), "no recipe");
        kept("{}");
        assert!(is_image(&lock));
        lock.records.config = None;
        assert!(!is_image(&lock), "the lock records no configuration");
        lock.records.config = Some(format!("sha256:{}", sha256_hex(b"{ }")));
        assert!(!is_image(&lock), "the tag is that of an older image");
        kept("{ }");
        assert!(is_image(&lock));
        remember_built(&store, "sha256:a", &"0".repeat(64)).expect("written");
        assert!(!is_image(&lock), "another lock");
    }
}

//! `vendor --layers`: the layers that need a container, made once and put into the folder.

use camino::Utf8Path;

use crate::engine::TemporaryTag;
use crate::model::image::plan::{BaseSource, plan};
pub(crate) use crate::store::vendor_layers::check;
use crate::store::{Store, StoreError, vendor_layers};
use crate::workflow::assemble::{
    Assembly, FinishedLayers, FinishedStep, PartClock, Purpose, assemble_without_runs, recorded,
};
use crate::workflow::base::check_processor;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::context_files::files;
use crate::workflow::error::CommandError;
use crate::workflow::image_records::{compare, forget_other_layout};
use crate::workflow::lock::LockedBuild;
use crate::workflow::session::Session;
use crate::workflow::vendor::copied;

/// The layers of a folder.
#[derive(Debug, Default)]
pub(crate) struct SavedLayers {
    pub(crate) files: usize,
    /// Those that came into the folder now.
    pub(crate) new: usize,
    pub(crate) bytes: u64,
}

/// Puts the image of a lock together, writes its digests into the lock file, and its finished layers into the folder.
pub(crate) async fn save(
    session: &Session<'_>,
    wanted: &BuildRequest,
    locked: &mut LockedBuild,
    folder: &Utf8Path,
) -> Result<SavedLayers, CommandError> {
    check_processor(session, &locked.lock.stack)?;
    forget_other_layout(session, locked);
    let base = BaseSource::Image(locked.base.reference.clone());
    let plan = plan(&locked.lock, files(session, &locked.lock, &locked.base, base, wanted).await?);
    let mut is_again = false;
    loop {
        let finished = FinishedLayers::new(session, recorded(&locked.lock), Purpose::Vendor);
        let scratch = TemporaryTag::new(&*session.engine);
        let image = Assembly {
            session,
            lock: &locked.lock,
            base: &locked.base,
            plan: &plan,
            wanted,
            scratch_tag: scratch.name(),
            no_cache: false,
            finished: &finished,
            misfits: None,
            times: &PartClock::default(),
        };
        let (_, records) = Box::pin(assemble_without_runs(image)).await?;
        scratch.remove().await?;
        compare(session, locked, records)?;
        match copy_layers(&session.store, &finished.steps(), folder) {
            Err(error) => {
                let Some(sha256) = damaged(&error).filter(|_| !is_again) else { return Err(error) };
                // The cache had other bytes under that hash: the layer is made once more.
                session.store.discard(&sha256)?;
                is_again = true;
            }
            saved => return saved,
        }
    }
}

/// The hash of a layer of which the cache has other bytes.
fn damaged(error: &CommandError) -> Option<String> {
    match error.downcast_ref() {
        Some(StoreError::WrongContent { wanted, .. }) => Some(wanted.clone()),
        _ => None,
    }
}

/// Copies layers of the cache into the folder, with their records.
fn copy_layers(
    store: &Store,
    steps: &[FinishedStep],
    folder: &Utf8Path,
) -> Result<SavedLayers, CommandError> {
    let mut saved = SavedLayers::default();
    for step in steps {
        let layers: Vec<&str> = step.layers.iter().map(|layer| layer.sha256.as_str()).collect();
        for (sha256, layer) in layers.iter().zip(&step.layers) {
            saved.new += usize::from(copied(&store.blob_path(sha256)?, folder, sha256)?);
            saved.bytes += layer.size;
        }
        saved.files += layers.len();
        vendor_layers::write(folder, &step.key, &layers)?;
    }
    Ok(saved)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test damages files")]
mod tests {
    use super::*;
    use crate::container_layers::KeptLayer;
    use crate::model::sha256::sha256_hex;

    #[test]
    fn damaged_layer_of_the_cache_is_named_and_not_copied() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let sha256 = sha256_hex(b"a tar");
        store.put(&sha256, b"a tar").expect("stored");
        let (key, title) = ("ab".repeat(32), "system".to_owned());
        let layers = vec![KeptLayer { sha256: sha256.clone(), size: 5 }];
        let steps = [FinishedStep { key: key.clone(), title, layers, is_published: false }];
        let (good, bad) = (root.join("good"), root.join("bad"));
        let saved = copy_layers(&store, &steps, &good).expect("copied");
        assert_eq!((saved.files, saved.new, saved.bytes), (1, 1, 5));
        assert_eq!(vendor_layers::read(&good, &key).expect("readable"), Some(vec![sha256.clone()]));
        fs_err::write(store.blob_path(&sha256).expect("a path"), b"other").expect("ours");
        let error = copy_layers(&store, &steps, &bad).expect_err("damaged");
        assert_eq!(damaged(&error), Some(sha256));
        assert_eq!(vendor_layers::read(&bad, &key).expect("readable"), None);
    }
}

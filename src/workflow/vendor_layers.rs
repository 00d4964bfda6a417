//! `vendor --layers`: the layers that need a container, made once and put into the folder.

use camino::Utf8Path;

use crate::engine::TemporaryTag;
use crate::model::image::plan::{BaseSource, plan};
use crate::store::vendor_layers;
pub(crate) use crate::store::vendor_layers::check;
use crate::workflow::assemble::{Assembly, FinishedLayers, assemble_without_runs};
use crate::workflow::base::check_processor;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::context_files::files;
use crate::workflow::error::CommandError;
use crate::workflow::image_records::{compare, recorded};
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
    let base = BaseSource::Image(locked.base.reference.clone());
    let plan = plan(&locked.lock, files(session, &locked.lock, &locked.base, base, wanted).await?);
    let finished = FinishedLayers::new(session, recorded(&locked.lock), true);
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
    };
    let (_, records) = Box::pin(assemble_without_runs(image)).await?;
    scratch.remove().await?;
    compare(session, locked, records)?;
    let mut saved = SavedLayers::default();
    for step in finished.steps() {
        let layers: Vec<&str> = step.layers.iter().map(|layer| layer.sha256.as_str()).collect();
        for (sha256, layer) in layers.iter().zip(&step.layers) {
            saved.new += usize::from(copied(&session.store.blob_path(sha256)?, folder, sha256)?);
            saved.bytes += layer.size;
        }
        saved.files += layers.len();
        vendor_layers::write(folder, &step.key, &layers)?;
    }
    Ok(saved)
}

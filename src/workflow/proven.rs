//! What is proven of an image. Every command that says something about an image asks here.

use crate::engine::ImageInfo;
use crate::model::lock::Lock;
use crate::model::verdict::Proven;
use crate::model::verdict::standing::ImageReports;
use crate::report::{Event, Reporter};
use crate::store::built_images::built_from;
use crate::store::known_locks::known_lock;
use crate::store::{Store, StoreError, reports};

/// Returns what the reports of this machine prove of exactly this image id.
pub(crate) fn proven(
    store: &Store,
    reporter: &dyn Reporter,
    image: &ImageInfo,
) -> Result<Proven, StoreError> {
    let lock = lock_of_build(store, &image.id)?;
    Ok(reports_of(store, reporter, &image.id)?.proven(lock.as_ref()))
}

/// Returns the reports of an image id; one that cannot be read is reported and counts for nothing.
pub(crate) fn reports_of(
    store: &Store,
    reporter: &dyn Reporter,
    id: &str,
) -> Result<ImageReports, StoreError> {
    let reports = reports::of_image(store, id)?;
    for (file, why) in &reports.damaged {
        let text = format!("a report proves nothing, because it cannot be read: {file}: {why}");
        reporter.report(Event::Warning { text });
    }
    Ok(reports)
}

/// Returns the lock that the image was built from here; `None`: it was not built here. Its labels are not asked.
pub(crate) fn lock_of_build(store: &Store, id: &str) -> Result<Option<Lock>, StoreError> {
    Ok(built_from(store, id)?.and_then(|hash| known_lock(store, &hash)))
}

/// Reports what a new failure withdraws.
pub(crate) async fn save_report(
    store: &Store,
    reporter: &dyn Reporter,
    report: &crate::model::verdict::Verdict,
) -> Result<(), StoreError> {
    let withdrawn = reports::save(store, report).await?;
    if !withdrawn.is_empty() {
        let list = withdrawn.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  ");
        let text = format!("this failure withdraws what was proven of the image:\n  {list}");
        reporter.report(Event::Warning { text });
    }
    Ok(())
}

//! What is proven of an image. Every command that says something about an image asks here.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::engine::ImageInfo;
use crate::model::lock::Lock;
use crate::model::verdict::Proven;
use crate::model::verdict::standing::ImageReports;
use crate::report::{Event, Reporter};
use crate::store::built_images::{built_from, signed_from};
use crate::store::known_locks::known_lock;
use crate::store::{Store, StoreError, reports};
use crate::workflow::named::short_id;

/// What this process has warned of: a command asks for the same image several times, through several sessions.
static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Reports a warning, once in a command.
fn warn_once(reporter: &dyn Reporter, text: String) {
    if WARNED.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone()) {
        reporter.report(Event::Warning { text });
    }
}

/// Returns what the reports of this machine prove of exactly this image id.
pub(crate) fn proven(
    store: &Store,
    reporter: &dyn Reporter,
    image: &ImageInfo,
) -> Result<Proven, StoreError> {
    let lock = lock_of_build(store, reporter, &image.id)?;
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
        warn_once(reporter, format!("a report proves nothing, because it cannot be read: {file}: {why}"));
    }
    Ok(reports)
}

/// Returns the lock that the image was built from here, or elsewhere by the word of a key that was trusted when it was checked; `None`:
/// neither, or its lock is gone, which is reported. Its labels are not asked.
pub(crate) fn lock_of_build(
    store: &Store,
    reporter: &dyn Reporter,
    id: &str,
) -> Result<Option<Lock>, StoreError> {
    let (hash, how) = match built_from(store, id)? {
        Some(hash) => (Some(hash), "was built here"),
        None => (signed_from(store, id)?, "has provenance by a trusted key"),
    };
    let Some(hash) = hash else { return Ok(None) };
    let lock = known_lock(store, &hash);
    if lock.is_none() {
        let (image, hash) = (short_id(id), short_id(&hash));
        let text = format!(
            "image {image} {how}, but its lock {hash} is gone: nothing verifies it (pass the lock file: `envforge \
             verify {image} --lock FILE`)"
        );
        warn_once(reporter, text);
    }
    Ok(lock)
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

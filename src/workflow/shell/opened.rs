//! The images that were opened or built on this machine, the last one first.

use std::time::SystemTime;

use crate::store::built_images::{has_built, last_used, touch_used};
use crate::store::{Store, StoreError};
use crate::workflow::error::CommandError;
use crate::workflow::named::Named;
use crate::workflow::own_images::own_images;
use crate::workflow::session::Session;

/// The state folder's records of opened images: a file for each id, with the reference it was opened by.
const OPENED: &str = "opened-images";

fn record(id: &str) -> String {
    format!("{OPENED}/{}", id.trim_start_matches("sha256:"))
}

/// Notes that an image is opened now.
pub(super) fn remember_opened(store: &Store, image: &Named) -> Result<(), StoreError> {
    let id = &image.image.id;
    touch_used(store, id)?;
    store.write_state(&record(id), image.reference.as_bytes())
}

/// Returns the references of the images that were built or opened here and that the engine has, the last one first. A reference
/// that stands for another image than the one that was opened is left out; an image that was built here has its best tag.
pub(crate) async fn opened_images(session: &Session<'_>) -> Result<Vec<String>, CommandError> {
    let mut found: Vec<(SystemTime, String, String)> = Vec::new();
    for named in own_images(session).await? {
        let used = last_used(&session.store, &named.image.id)?;
        found.push((used.unwrap_or(SystemTime::UNIX_EPOCH), record(&named.image.id), named.reference));
    }
    for (time, id, reference) in records(&session.store)? {
        if found.iter().any(|(_, known, _)| *known == id) {
            continue;
        }
        let image = session.engine.image(&reference).await?;
        if image.is_some_and(|image| record(&image.id) == id) {
            found.push((time, id, reference));
        }
    }
    found.sort_by(|(one, _, a), (other, _, b)| other.cmp(one).then_with(|| a.cmp(b)));
    Ok(found.into_iter().map(|(_, _, name)| name).collect())
}

/// Whether any image was built or opened on this machine. Asks no engine.
pub(crate) fn has_own_image(store: &Store) -> Result<bool, CommandError> {
    Ok(has_built(store) || !records(store)?.is_empty())
}

/// Time, path and reference of each record.
fn records(store: &Store) -> Result<Vec<(SystemTime, String, String)>, CommandError> {
    let folder = store.state_dir().join(OPENED);
    let entries = match fs_err::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut all = Vec::new();
    for entry in entries {
        let entry = entry?;
        let path = record(&entry.file_name().to_string_lossy());
        if let Some(text) = store.read_state(&path)? {
            let time = entry.metadata().and_then(|metadata| metadata.modified());
            let reference = String::from_utf8_lossy(&text).into_owned();
            all.push((time.unwrap_or(SystemTime::UNIX_EPOCH), path, reference));
        }
    }
    Ok(all)
}

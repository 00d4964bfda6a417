//! Cache of wheels built from source, by their inputs.

use super::error::SourceError;
use crate::model::lock::{IndexKind, LockedWheel, WheelLayer};
use crate::packages::LocalWheel;
use crate::store::Store;

fn record(key: &str) -> String {
    format!("source-builds/{key}.json")
}

/// Returns the wheel built for a key, if it is still in the cache.
pub fn cached_wheel(store: &Store, key: &str) -> Result<Option<LocalWheel>, SourceError> {
    let Some(bytes) = store.read_state(&record(key))? else { return Ok(None) };
    // An unreadable record is ignored: the wheel is built again.
    let Ok(wheel) = serde_json::from_slice::<LockedWheel>(&bytes) else { return Ok(None) };
    Ok(LocalWheel::locked(&wheel, store)?)
}

/// Returns the wheel built for a key: the one that a lock file records, one that was built here, or one that another machine
/// has `shared`; builds it if there is none. Another process that builds the same is waited for.
///
/// A shared wheel is not recorded as built for the key: whoever vouches for it now need not do so later.
pub async fn built_once<E: From<SourceError>>(
    store: &Store,
    key: &str,
    recorded: Option<&LockedWheel>,
    shared: impl Future<Output = Result<Option<LocalWheel>, E>>,
    build: impl Future<Output = Result<LocalWheel, E>>,
) -> Result<LocalWheel, E> {
    let _guard = store.lock(&format!("source-{}", &key[..16])).await.map_err(SourceError::from)?;
    let locked = recorded.map(|wheel| LocalWheel::locked(wheel, store)).transpose();
    if let Some(wheel) = locked.map_err(SourceError::from)?.flatten() {
        return Ok(wheel);
    }
    let is_recorded = |wheel: &LocalWheel| recorded.is_none_or(|locked| locked.sha256 == wheel.sha256);
    let cached = cached_wheel(store, key)?;
    if let Some(wheel) = cached.clone().filter(is_recorded) {
        return Ok(wheel);
    }
    if let Some(wheel) = shared.await? {
        return Ok(wheel);
    }
    // It is not the recorded one, and neither would be what the same inputs give once more.
    if let Some(wheel) = cached {
        return Ok(wheel);
    }
    let wheel = build.await?;
    keep(store, key, &wheel)?;
    Ok(wheel)
}

/// Records the wheel built for a key.
fn keep(store: &Store, key: &str, wheel: &LocalWheel) -> Result<(), SourceError> {
    let wheel = LockedWheel {
        name: wheel.name.clone(),
        version: wheel.version.clone(),
        file: wheel.file.clone(),
        sha256: wheel.sha256.clone(),
        size: Some(wheel.size),
        index: IndexKind::Local,
        index_name: None,
        layer: WheelLayer::Framework,
    };
    let text = serde_json::to_string(&wheel).expect("a wheel is plain text and numbers");
    Ok(store.write_state(&record(key), text.as_bytes())?)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "removes a file of the cache")]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    #[test]
    fn wheel_is_found_by_its_key_while_cached() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("store");
        let wheel = crate::packages::test_wheel(&root, "torch", "2.8.0+cu118");
        assert_eq!(cached_wheel(&store, "one").expect("reads"), None);
        keep(&store, "one", &wheel).expect("writes");
        assert_eq!(cached_wheel(&store, "one").expect("reads"), Some(wheel.clone()));
        assert_eq!(cached_wheel(&store, "other").expect("reads"), None);
        fs_err::remove_file(store.blob_path(&wheel.sha256).expect("a path")).expect("removed");
        assert_eq!(cached_wheel(&store, "one").expect("reads"), None);
    }
}

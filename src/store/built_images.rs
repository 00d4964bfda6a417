//! What is known of images by their ids: from which lock they were built on this machine, and their content digests. A
//! label is only a claim.
#![expect(clippy::disallowed_methods, reason = "edge: stamps the record of a build")]

use std::time::SystemTime;

use super::error::StoreError;
use super::folders::Store;
use crate::model::image_digest::Digest;

const BUILT: &str = "built-images";
const CONTENT: &str = "content-of-images";
const PUSHED: &str = "pushed-images";
const SIGNED: &str = "signed-images";

fn file_of(folder: &str, id: &str) -> String {
    format!("{folder}/{}", id.trim_start_matches("sha256:"))
}

fn read(store: &Store, file: &str) -> Result<Option<String>, StoreError> {
    let text = store.read_state(file)?;
    Ok(text.map(|text| String::from_utf8_lossy(&text).into_owned()))
}

/// Records the content digest (hex) of an image: the id stands for the same content for ever.
pub(crate) fn remember_content(store: &Store, id: &str, digest: &str) -> Result<(), StoreError> {
    store.write_state(&file_of(CONTENT, id), digest.as_bytes())
}

/// Returns the content digest (hex) of an image, if it was computed on this machine.
pub(crate) fn known_content(store: &Store, id: &str) -> Result<Option<String>, StoreError> {
    read(store, &file_of(CONTENT, id))
}

/// Records that the image was built here now from the lock with that hash.
pub(crate) fn remember_built(store: &Store, id: &str, lock: &str) -> Result<(), StoreError> {
    let built = jiff::Timestamp::now();
    store.write_state(&file_of(BUILT, id), format!("{lock}\n{built}\n").as_bytes())
}

/// Returns the hash of the lock that the image was built from here; `None`: it was not built here.
pub(crate) fn built_from(store: &Store, id: &str) -> Result<Option<String>, StoreError> {
    let text = read(store, &file_of(BUILT, id))?;
    Ok(text.and_then(|text| text.lines().next().map(str::to_owned)))
}

/// Records that a trusted key, by its fingerprint, said that the image was built from the lock with that hash. What this machine's own
/// checks prove of it is judged by that lock; whether it is still believed is asked anew each time its code is to run.
pub(crate) fn remember_signed(store: &Store, id: &str, lock: &str, key: &str) -> Result<(), StoreError> {
    store.write_state(&file_of(SIGNED, id), format!("{lock}\n{key}\n").as_bytes())
}

/// Returns the hash of the lock that a trusted key said the image was built from; `None`: none did.
pub(crate) fn signed_from(store: &Store, id: &str) -> Result<Option<String>, StoreError> {
    let text = read(store, &file_of(SIGNED, id))?;
    Ok(text.and_then(|text| text.lines().next().map(str::to_owned)))
}

/// Records the digest under which a registry (`registry/name`) has an image that this machine pushed, or a layout that it loaded.
pub(crate) fn remember_pushed(
    store: &Store,
    id: &str,
    (digest, name): (&Digest, Option<&str>),
) -> Result<(), StoreError> {
    let known = read(store, &file_of(PUSHED, id))?.unwrap_or_default();
    let line = name.map_or_else(|| digest.to_string(), |name| format!("{digest} {name}"));
    if known.lines().any(|other| other == line) {
        return Ok(());
    }
    store.write_state(&file_of(PUSHED, id), format!("{known}{line}\n").as_bytes())
}

/// Returns the digests under which this machine pushed an image, or loaded it from a layout.
pub(crate) fn pushed_digests(store: &Store, id: &str) -> Result<Vec<Digest>, StoreError> {
    Ok(pushed(store, id)?.into_iter().map(|(digest, _)| digest).collect())
}

/// Returns the same as `registry/name@digest`, where it went to a registry.
pub(crate) fn pushed_names(store: &Store, id: &str) -> Result<Vec<String>, StoreError> {
    let named = |(digest, name): (Digest, Option<String>)| Some(format!("{}@{digest}", name?));
    Ok(pushed(store, id)?.into_iter().filter_map(named).collect())
}

fn pushed(store: &Store, id: &str) -> Result<Vec<(Digest, Option<String>)>, StoreError> {
    let known = read(store, &file_of(PUSHED, id))?.unwrap_or_default();
    let parsed = |line: &str| {
        // A line of before has no name.
        let (digest, name) =
            line.split_once(' ').map_or((line, None), |(digest, name)| (digest, Some(name.to_owned())));
        Some((digest.parse().ok()?, name))
    };
    Ok(known.lines().filter_map(parsed).collect())
}

/// Returns the ids of the images that were built here from the lock with that hash, the newest first.
pub(crate) fn built_of(store: &Store, lock: &str) -> Result<Vec<String>, StoreError> {
    let unreadable = StoreError::file("cannot list the records of images");
    let entries = match fs_err::read_dir(store.state_dir().join(BUILT)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut found = Vec::new();
    for entry in entries.filter_map(Result::ok) {
        let id = format!("sha256:{}", entry.file_name().to_string_lossy());
        if built_from(store, &id)?.as_deref() == Some(lock) {
            found.push((built_at(store, &id)?, id));
        }
    }
    found.sort_unstable_by(|one, other| other.cmp(one));
    Ok(found.into_iter().map(|(_, id)| id).collect())
}

/// Whether any image was built here. An unreadable directory counts: what is read of it next says why.
pub(crate) fn has_built(store: &Store) -> bool {
    match fs_err::read_dir(store.state_dir().join(BUILT)) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

/// Returns when the image was last built here; `None`: it was not built here, or by an envforge that did not record the time.
pub(crate) fn built_at(store: &Store, id: &str) -> Result<Option<jiff::Timestamp>, StoreError> {
    let text = read(store, &file_of(BUILT, id))?;
    Ok(text.and_then(|text| text.lines().nth(1)?.parse().ok()))
}

/// Notes that an image that was built here is opened now.
pub(crate) fn touch_used(store: &Store, id: &str) -> Result<(), StoreError> {
    match read(store, &file_of(BUILT, id))? {
        Some(text) => store.write_state(&file_of(BUILT, id), text.as_bytes()),
        None => Ok(()),
    }
}

/// Returns when the image was last built or opened here; `None`: it was not built here.
pub(crate) fn last_used(store: &Store, id: &str) -> Result<Option<SystemTime>, StoreError> {
    if built_from(store, id)?.is_none() {
        return Ok(None);
    }
    let file = store.state_dir().join(file_of(BUILT, id));
    let time = fs_err::metadata(file).and_then(|metadata| metadata.modified());
    time.map(Some).map_err(StoreError::file("cannot read the record of an image"))
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;

    #[test]
    fn image_is_known_by_its_id_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        assert!(!has_built(&store));
        remember_built(&store, "sha256:aa", "hash").expect("written");
        assert!(has_built(&store));
        assert_eq!(built_from(&store, "sha256:aa").expect("read").as_deref(), Some("hash"));
        remember_built(&store, "sha256:bb", "other").expect("written");
        assert_eq!(built_of(&store, "hash").expect("read"), ["sha256:aa"]);
        assert_eq!(built_of(&store, "none").expect("read"), [""; 0]);
        assert_eq!(built_from(&store, "sha256:ab").expect("read"), None);
        assert_eq!(last_used(&store, "sha256:ab").expect("read"), None);
        let first = built_at(&store, "sha256:aa").expect("read");
        assert!(first.is_some() && built_at(&store, "sha256:ab").expect("read").is_none());
        let built = last_used(&store, "sha256:aa").expect("read").expect("built");
        let old =
            fs_err::OpenOptions::new().write(true).open(root.join("state/built-images/aa")).expect("a file");
        let earlier = built - std::time::Duration::from_mins(1);
        old.file().set_modified(earlier).expect("set");
        assert_eq!(last_used(&store, "sha256:aa").expect("read"), Some(earlier));
        touch_used(&store, "sha256:aa").expect("written");
        touch_used(&store, "sha256:ab").expect("nothing to do");
        assert_eq!(built_at(&store, "sha256:aa").expect("read"), first, "opening is not building");
        assert!(last_used(&store, "sha256:aa").expect("read") > Some(earlier));
        assert_eq!(built_from(&store, "sha256:ab").expect("read"), None, "an image from elsewhere stays so");
        remember_signed(&store, "sha256:ab", "hash", "key").expect("written");
        assert_eq!(signed_from(&store, "sha256:ab").expect("read").as_deref(), Some("hash"));
        assert_eq!(built_from(&store, "sha256:ab").expect("read"), None, "it was not built here");
        assert_eq!(known_content(&store, "sha256:aa").expect("read"), None);
        remember_content(&store, "sha256:aa", "digest").expect("written");
        assert_eq!(known_content(&store, "sha256:aa").expect("read").as_deref(), Some("digest"));
    }
}

//! The reference under which the image of a lock was pushed last from here: exports name it.

use super::error::StoreError;
use super::folders::Store;
use crate::model::image_ref::ImageRef;
use crate::model::sha256::is_sha256_hex;

const LAST: &str = "last-pushes";
/// A reference has some hundred bytes.
const LARGEST: u64 = 4 << 10;

fn file_of(lock: &str) -> String {
    format!("{LAST}/{lock}")
}

/// Records the reference, with its digest, under which the image of the lock with that hash was pushed.
pub(crate) fn remember_last_push(store: &Store, lock: &str, image: &ImageRef) -> Result<(), StoreError> {
    if !is_sha256_hex(lock) {
        return Err(StoreError::NotADigest { found: lock.to_owned() });
    }
    store.write_sealed_state(&file_of(lock), image.to_string().as_bytes())
}

/// Returns the reference of the last push of the image of that lock; `None`: it was not pushed from here.
pub(crate) fn last_push(store: &Store, lock: &str) -> Option<ImageRef> {
    let known = is_sha256_hex(lock).then(|| store.read_sealed_state(&file_of(lock), LARGEST))?;
    let image: ImageRef = String::from_utf8(known?).ok()?.parse().ok()?;
    image.digest().is_some().then_some(image)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test forges files")]
mod tests {
    use camino::Utf8Path;

    use super::*;

    fn image(tag: &str, digit: &str) -> ImageRef {
        let digest = digit.repeat(64);
        format!("box.test:5000/team/torch:{tag}@sha256:{digest}").parse().expect("a reference")
    }

    #[test]
    fn last_push_of_a_lock_is_known_where_it_was_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = |state: &str| Store::open(&root.join("cache"), &root.join(state)).expect("a store");
        let (here, lock, other) = (store("state"), "1".repeat(64), "2".repeat(64));
        assert_eq!(last_push(&here, &lock), None);
        for pushed in [image("1", "a"), image("2-unverified", "b")] {
            remember_last_push(&here, &lock, &pushed).expect("written");
            assert_eq!(last_push(&here, &lock), Some(pushed));
        }
        assert_eq!(last_push(&here, &other), None);
        remember_last_push(&here, "../reports", &image("1", "a")).expect_err("not a hash");
        assert_eq!(last_push(&here, "../reports"), None);

        // Another lock's record, another machine's, and a changed one are none.
        let path = |state: &str, lock: &str| root.join(state).join(file_of(lock));
        let written = fs_err::read(path("state", &lock)).expect("there");
        fs_err::write(path("state", &other), &written).expect("ours");
        assert_eq!(last_push(&here, &other), None);
        let elsewhere = store("elsewhere");
        remember_last_push(&elsewhere, &other, &image("3", "c")).expect("written");
        fs_err::write(path("elsewhere", &lock), &written).expect("ours");
        assert_eq!(last_push(&elsewhere, &lock), None);
        let changed = String::from_utf8(written).expect("text").replace("box.test", "evil.test");
        fs_err::write(path("state", &lock), changed).expect("ours");
        assert_eq!(last_push(&here, &lock), None);
        fs_err::write(path("state", &lock), vec![b'a'; 1 << 20]).expect("ours");
        assert_eq!(last_push(&here, &lock), None, "larger than any");
    }

    #[test]
    fn reference_without_a_digest_is_not_a_push() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let lock = "1".repeat(64);
        remember_last_push(&store, &lock, &"box.test/torch:1".parse().expect("a tag")).expect("written");
        assert_eq!(last_push(&store, &lock), None);
    }
}

//! Large layers that several builds need at the same time: one build makes and loads each of them, the others wait and reuse it.

use std::collections::BTreeSet;

use crate::store::{Store, StoreError, StoreLock};

/// Waits until no other build makes the layers of these keys (SHA-256, hex), and keeps other builds from it until dropped.
///
/// Locks are taken in the order of the keys, so that builds with several common layers cannot wait for each other.
pub(super) async fn claim(store: &Store, keys: BTreeSet<String>) -> Result<Vec<StoreLock>, StoreError> {
    let mut held = Vec::new();
    for key in keys {
        held.push(store.lock_with_reason(&lock_name(&key), "which makes a layer of this image").await?);
    }
    Ok(held)
}

fn lock_name(key: &str) -> String {
    format!("wheels-{}", &key[..16])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use camino::Utf8PathBuf;

    use super::*;

    #[tokio::test]
    async fn builds_wait_for_common_layers_only() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let keys =
            |names: &[&str]| -> BTreeSet<String> { names.iter().map(|name| name.repeat(64)).collect() };
        let first = claim(&store, keys(&["b", "c"])).await.expect("free");
        let (soon, hangs) = (Duration::from_millis(200), Duration::from_mins(5));
        let other = tokio::time::timeout(hangs, claim(&store, keys(&["a", "d"]))).await;
        drop(other.expect("no common layer").expect("free"));
        let common = claim(&store, keys(&["a", "c"]));
        tokio::pin!(common);
        tokio::time::timeout(soon, &mut common).await.expect_err("`c` is being made");
        drop(first);
        assert_eq!(common.await.expect("free again").len(), 2);
    }
}

//! What a build finds damaged in the cache, or misses where it was before: it is fetched or made again, once each.

use std::collections::BTreeSet;

use crate::assemble::AssembleError;
use crate::base::Base;
use crate::container_layers::LayerError;
use crate::engine::EngineError;
use crate::model::lock::Lock;
use crate::store::{Store, StoreError};
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::gathered::gathered;
use crate::workflow::session::Session;

/// What is built.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) session: &'a Session<'a>,
    pub(crate) lock: &'a Lock,
    pub(crate) base: &'a Base,
    pub(crate) wanted: &'a BuildRequest,
}

/// The files that were replaced, by SHA-256, and the parts that had vanished.
#[derive(Debug, Default)]
pub(crate) struct Replaced(BTreeSet<String>);

impl Replaced {
    /// Makes the file that an error calls damaged or gone present again. An error about anything else is returned, and one that
    /// comes again, and one about a file of a vendor folder, which is the user's.
    pub(crate) async fn again(&mut self, error: CommandError, of: Subject<'_>) -> Result<(), CommandError> {
        let Subject { session, lock, base, wanted } = of;
        if let Some(what) = gone(&error) {
            if !self.0.insert(what.clone()) {
                return Err(error);
            }
            tracing::warn!("{what} vanished from the cache while it was in use: it is made again");
            return gathered(session, lock, base, wanted).await.map(drop);
        }
        let Some(sha256) = damaged(&error, &session.store) else { return Err(error) };
        let is_vendored = wanted.vendored.iter().any(|(_, file)| file.sha256 == sha256);
        if is_vendored || !self.0.insert(sha256.clone()) {
            return Err(error);
        }
        session.store.discard(&sha256)?;
        gathered(session, lock, base, wanted).await.map(drop)
    }
}

/// The part of a layer that, as an error says, vanished from the cache.
fn gone(error: &CommandError) -> Option<String> {
    match error.downcast_ref() {
        Some(AssembleError::Gone { what }) => Some(what.clone()),
        _ => None,
    }
}

/// The SHA-256 of the file of the cache that an error calls damaged.
fn damaged(error: &CommandError, store: &Store) -> Option<String> {
    if let Some(AssembleError::WrongHash { wanted, .. }) = error.downcast_ref() {
        return Some(wanted.clone());
    }
    if let Some(StoreError::WrongContent { wanted, .. }) = error.downcast_ref() {
        return Some(wanted.clone());
    }
    let of_engine = match error.downcast_ref() {
        Some(LayerError::Engine(error)) => Some(error),
        _ => error.downcast_ref::<EngineError>(),
    };
    let Some(EngineError::OtherContent { path, wanted, .. }) = of_engine else { return None };
    // Other files are the project's, or of a vendor folder.
    store.blob_path(wanted).ok().filter(|blob| blob == path).map(|_| wanted.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_cache_are_recognized_in_every_error_about_their_content() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let (wanted, found) = ("ab".repeat(32), "cd".repeat(32));
        let other = |path: camino::Utf8PathBuf| EngineError::OtherContent {
            path,
            wanted: wanted.clone(),
            found: found.clone(),
        };
        let blob = store.blob_path(&wanted).expect("a path");
        let errors: [CommandError; 4] = [
            AssembleError::WrongHash { file: "a".to_owned(), wanted: wanted.clone(), found: found.clone() }
                .into(),
            StoreError::WrongContent { wanted: wanted.clone(), found: found.clone() }.into(),
            other(blob.clone()).into(),
            LayerError::Engine(other(blob)).into(),
        ];
        for error in errors {
            assert_eq!(damaged(&error, &store).as_ref(), Some(&wanted), "{error}");
        }
        let errors: [CommandError; 2] = [
            other("/project/data.bin".into()).into(),
            EngineError::NoSuchImage { reference: wanted.clone() }.into(),
        ];
        for error in errors {
            assert_eq!(damaged(&error, &store), None, "{error}");
            assert_eq!(gone(&error), None, "{error}");
        }
        let error: CommandError = AssembleError::layer_gone(&wanted).into();
        assert_eq!((gone(&error), damaged(&error, &store)), (Some("layer abababababab".to_owned()), None));
    }
}

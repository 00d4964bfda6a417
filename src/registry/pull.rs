//! An image of a registry without an engine: its documents, and single blobs into the cache.

use std::sync::Arc;

use bytes::Bytes;
use camino::Utf8PathBuf;

use super::client::{Registry, checked, parsed};
use super::client_session::TokenScope;
use super::error::RegistryError;
use super::manifest::{ACCEPT, Manifest};
use super::retry::RetryPolicy;
use crate::fetch::{Download, FetchError, Transfer};
use crate::model::image::manifest::BlobDescriptor;
use crate::model::image_ref::ImageRef;
use crate::report::{Reporter, in_step};
use crate::store::Store;

/// An image as its documents describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedImage {
    /// Its configuration, which has the digest that the manifest names.
    pub config: Bytes,
    /// Its compressed layers, lowest first.
    pub layers: Vec<BlobDescriptor>,
}

impl Registry {
    /// Returns the documents of an image of one platform; `None`: the registry has no image of that name.
    pub async fn published(&self, image: &ImageRef) -> Result<Option<PublishedImage>, RegistryError> {
        let mut session = self.session(image, TokenScope::Pull, RetryPolicy::SHORT)?;
        let answer = match session.get(&format!("manifests/{}", image.wanted()), &ACCEPT).await {
            Err(RegistryError::NotFound { .. }) => return Ok(None),
            answer => answer?,
        };
        checked(image, &answer, image.digest())?;
        let Manifest::Image { config, layers } = parsed(image, &answer)? else {
            let kind = "index of platforms".to_owned();
            return Err(RegistryError::Kind { reference: image.to_string(), kind });
        };
        let answer = session.get(&format!("blobs/{config}"), &[]).await?;
        checked(image, &answer, Some(&config))?;
        Ok(Some(PublishedImage { config: answer.body, layers }))
    }

    /// Downloads a blob of an image's repository into the cache under its digest, and returns its file.
    pub async fn fetch_blob(
        &self,
        image: &ImageRef,
        (blob, title): (&BlobDescriptor, &str),
        store: &Store,
        reporter: &Arc<dyn Reporter>,
    ) -> Result<Utf8PathBuf, RegistryError> {
        let mut session = self.session(image, TokenScope::Pull, RetryPolicy::NEEDED)?;
        let (registry, reference) = (image.registry().to_owned(), image.to_string());
        // This logs in, where that is necessary.
        if !session.has_blob(blob).await? {
            return Err(RegistryError::NotFound { registry, reference });
        }
        let address = session.below(&format!("blobs/{}", blob.digest));
        let download = Download {
            name: title.to_owned(),
            login: session.login_for(&address).cloned(),
            addresses: vec![address],
            sha256: blob.digest.as_str().trim_start_matches("sha256:").to_owned(),
            size: Some(blob.size),
        };
        let id = format!("pull:{image}:{title}");
        let transfer = Transfer::new(Arc::clone(reporter), &id, Some(blob.size));
        let fetched = session.fetch().into_store(store, &download, &transfer);
        let fetched = in_step(&**reporter, &id, format!("download {title}"), fetched).await;
        fetched.map_err(|error| match error {
            FetchError::Store(error) => error.into(),
            FetchError::WrongHash { found, .. } => {
                let found = format!("sha256:{found}").parse().expect("a hash of ours is a digest");
                RegistryError::WrongDigest { registry, reference, wanted: blob.digest.clone(), found }
            }
            source => RegistryError::Unreachable { registry, source },
        })
    }
}

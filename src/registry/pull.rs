//! An image of a registry without an engine: its documents, and single blobs into the cache.

use std::sync::Arc;

use bytes::Bytes;

use super::client::{Registry, checked};
use super::client_session::TokenScope;
use super::error::RegistryError;
use super::manifest::{ACCEPT, Manifest, ManifestError};
use super::retry::RetryPolicy;
use crate::fetch::{Download, FetchError, TemporaryDownload, Transfer};
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
        let other = |kind: String| RegistryError::Kind { reference: image.to_string(), kind };
        let (config, layers) = match Manifest::parse(&answer.body) {
            Ok(Manifest::Image { config, layers }) => (config, layers),
            Ok(Manifest::Index(_)) => return Err(other("index of platforms".to_owned())),
            Err(ManifestError::Kind(kind)) => return Err(other(kind)),
            Err(ManifestError::Malformed(cause)) => {
                let kind = answer.header("content-type").unwrap_or("without content type").to_owned();
                return Err(other(format!("`{kind}` that is not a manifest ({cause})")));
            }
        };
        let answer = session.get(&format!("blobs/{config}"), &[]).await?;
        checked(image, &answer, Some(&config))?;
        Ok(Some(PublishedImage { config: answer.body, layers }))
    }

    /// Downloads a blob of an image's repository into a temporary file. It never becomes a file of the cache: its digest is the
    /// registry's choice and may be that of any other file. A login that ends meanwhile is renewed once.
    pub async fn fetch_blob(
        &self,
        image: &ImageRef,
        (blob, title): (&BlobDescriptor, &str),
        store: &Store,
        reporter: &Arc<dyn Reporter>,
    ) -> Result<TemporaryDownload, RegistryError> {
        let mut session = self.session(image, TokenScope::Pull, RetryPolicy::NEEDED)?;
        let (registry, reference) = (image.registry().to_owned(), image.to_string());
        let address = session.below(&format!("blobs/{}", blob.digest));
        let id = format!("pull:{image}:{title}");
        let transfer = Transfer::new(Arc::clone(reporter), &id, Some(blob.size));
        let mut was_refused = false;
        let fetching = async {
            loop {
                // This logs in, where that is necessary, and again when the token has expired.
                if !session.has_blob(blob).await? {
                    return Err(RegistryError::NotFound { registry, reference });
                }
                let download = Download {
                    name: title.to_owned(),
                    login: session.login_for(&address).cloned(),
                    addresses: vec![address.clone()],
                    sha256: blob.digest.as_str().trim_start_matches("sha256:").to_owned(),
                    size: Some(blob.size),
                };
                match session.fetch().into_temporary(store, &download, &transfer).await {
                    Ok(done) => return Ok(done),
                    Err(FetchError::Status { status, .. }) if is_refusal(&status) => {
                        if std::mem::replace(&mut was_refused, true) {
                            return Err(session.denied().await);
                        }
                    }
                    Err(FetchError::Store(error)) => return Err(error.into()),
                    Err(FetchError::NotFound { .. }) => {
                        return Err(RegistryError::NotFound { registry, reference });
                    }
                    Err(FetchError::WrongHash { found, .. }) => {
                        let found = format!("sha256:{found}").parse().expect("a hash of ours is a digest");
                        let wanted = blob.digest.clone();
                        return Err(RegistryError::WrongDigest { registry, reference, wanted, found });
                    }
                    Err(source) => return Err(RegistryError::Unreachable { registry, source }),
                }
            }
        };
        in_step(&**reporter, &id, format!("download {title}"), fetching).await
    }
}

/// Whether a status refuses a request for want of a login or of rights.
fn is_refusal(status: &str) -> bool {
    ["401", "403"].iter().any(|code| status.starts_with(code))
}

//! The registry API: the digest of a name, and the platforms of an image.

use std::sync::Arc;

use super::client_session::{RepositorySession, TokenScope};
use super::credential::Credential;
use super::error::RegistryError;
use super::lookup::look_up;
use super::manifest::{ACCEPT, Manifest, ManifestError, is_platform_of, platform_of_config};
use super::retry::RetryPolicy;
use crate::fetch::{Fetcher, HttpResponse};
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::model::versions::Machine;
use crate::settings::image_registry::RegistrySettings;

/// Image registries, reached over one HTTP client.
#[derive(Clone)]
pub struct Registry {
    fetch: Fetcher,
    settings: Arc<RegistrySettings>,
}

/// An image resolved by a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedImage {
    /// The current digest of the name: of its index, or of its manifest without an index.
    pub digest: Digest,
    /// Its reference by digest: under its own name, or under the mirror's.
    pub source: ImageRef,
}

impl Registry {
    /// Creates a client with these settings.
    pub fn new(fetch: Fetcher, settings: RegistrySettings) -> Self {
        Self { fetch, settings: Arc::new(settings) }
    }

    /// Returns the sources of an image: its mirrors in their order, then its own registry.
    pub fn sources(&self, image: &ImageRef) -> Vec<ImageRef> {
        let mut sources = self.settings.mirrors.of(image);
        sources.push(image.clone());
        sources
    }

    /// Returns the login for an image's registry, if known.
    pub async fn credential(&self, image: &ImageRef) -> Result<Option<Credential>, RegistryError> {
        Ok(look_up(&self.settings, image.registry()).await?.credential)
    }

    /// Returns the current digest of an image, from the first source that has it for that machine. Every document is verified
    /// against its digest.
    pub async fn resolve(
        &self,
        image: &ImageRef,
        machine: Machine,
        patience: RetryPolicy,
    ) -> Result<ResolvedImage, RegistryError> {
        let mut tried = Vec::new();
        for source in self.sources(image) {
            match self.resolve_at(&source, machine, patience).await {
                Ok(digest) => {
                    tracing::debug!(%image, %source, %digest, "resolved");
                    return Ok(ResolvedImage { source: source.pinned(&digest), digest });
                }
                Err(error) => {
                    tracing::debug!(%source, %error, "no digest");
                    tried.push((source.name(), error));
                }
            }
        }
        Err(match tried.pop() {
            Some((_, error)) if tried.is_empty() => error,
            last => RegistryError::NoneOf {
                reference: image.to_string(),
                tried: tried.into_iter().chain(last).collect(),
            },
        })
    }

    /// Checks push access to an image, as far as the registry reports it before a push.
    pub async fn check_push_access(&self, image: &ImageRef) -> Result<(), RegistryError> {
        // A registry offers no other way to say it.
        let mut session = self.session(image, TokenScope::Push, RetryPolicy::NEEDED)?;
        match session.begin_upload().await {
            Ok(upload) => session.cancel_upload(&upload).await,
            // An engine may use a location that an upload from here must not.
            Err(error @ RegistryError::Location { .. }) => {
                tracing::debug!(%error, "the registry takes uploads");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Tags the digest of the same repository: no data is moved, the document stays
    /// byte-identical.
    pub async fn tag(&self, image: &ImageRef, digest: &Digest) -> Result<(), RegistryError> {
        let pinned = image.pinned(digest);
        let mut talk = self.session(image, TokenScope::Push, RetryPolicy::NEEDED)?;
        let answer = talk.get(&format!("manifests/{digest}"), &ACCEPT).await?;
        checked(&pinned, &answer, Some(digest))?;
        parsed(&pinned, &answer)?;
        let kind = answer.header("content-type").unwrap_or_default().to_owned();
        talk.put(&format!("manifests/{}", image.wanted()), &kind, answer.body).await?;
        Ok(())
    }

    /// Checks that the registry itself, not a mirror, has the pushed image. An unreachable registry is not a
    /// failure: the engine uses its own network.
    pub async fn check_pushed(
        &self,
        image: &ImageRef,
        digest: &Digest,
        machine: Machine,
    ) -> Result<(), RegistryError> {
        match self.resolve_at(image, machine, RetryPolicy::NEEDED).await {
            Ok(found) if found == *digest => Ok(()),
            Ok(found) => Err(RegistryError::WrongDigest {
                registry: image.registry().to_owned(),
                reference: image.to_string(),
                wanted: digest.clone(),
                found,
            }),
            Err(error) if error.is_unreachable() => {
                tracing::debug!(%error, "cannot check the push");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn session<'a>(
        &'a self,
        image: &'a ImageRef,
        scope: TokenScope,
        retry: RetryPolicy,
    ) -> Result<RepositorySession<'a>, RegistryError> {
        RepositorySession::new(&self.fetch, &self.settings, image, scope, retry)
    }

    async fn resolve_at(
        &self,
        image: &ImageRef,
        machine: Machine,
        patience: RetryPolicy,
    ) -> Result<Digest, RegistryError> {
        let mut talk = self.session(image, TokenScope::Pull, patience)?;
        let answer = talk.get(&format!("manifests/{}", image.wanted()), &ACCEPT).await?;
        let digest = checked(image, &answer, image.digest())?;
        let published = match parsed(image, &answer)? {
            Manifest::Index(entries) => entries.into_iter().map(|entry| entry.platform).collect(),
            Manifest::Image { config, .. } => {
                let answer = talk.get(&format!("blobs/{config}"), &[]).await?;
                checked(image, &answer, Some(&config))?;
                vec![platform_of_config(&answer.body).map_err(|error| unread(image, &answer, error))?]
            }
        };
        if published.iter().any(|platform| is_platform_of(platform, machine)) {
            return Ok(digest);
        }
        let (reference, platform) = (image.to_string(), machine.platform().to_owned());
        Err(RegistryError::NoPlatform { reference, platform, published })
    }
}

/// Verifies a document against the requested digest and the registry's header; returns its digest.
pub(super) fn checked(
    image: &ImageRef,
    answer: &HttpResponse,
    wanted: Option<&Digest>,
) -> Result<Digest, RegistryError> {
    let found = Digest::of(&answer.body);
    let said = answer.header("docker-content-digest").and_then(|text| text.parse::<Digest>().ok());
    match wanted.or(said.as_ref()).filter(|wanted| **wanted != found) {
        None => Ok(found),
        Some(wanted) => Err(RegistryError::WrongDigest {
            registry: image.registry().to_owned(),
            reference: image.to_string(),
            wanted: wanted.clone(),
            found,
        }),
    }
}

pub(super) fn parsed(image: &ImageRef, answer: &HttpResponse) -> Result<Manifest, RegistryError> {
    Manifest::parse(&answer.body).map_err(|error| unread(image, answer, error))
}

fn unread(image: &ImageRef, answer: &HttpResponse, error: ManifestError) -> RegistryError {
    match error {
        ManifestError::Kind(kind) => RegistryError::Kind { reference: image.to_string(), kind },
        ManifestError::Malformed(cause) => {
            let kind = answer.header("content-type").unwrap_or("a document without content type");
            RegistryError::NotARegistry {
                registry: image.registry().to_owned(),
                what: format!("`{kind}` is not a manifest ({cause})"),
            }
        }
    }
}

//! The registry API: which digest a name means, and whether the image is there for a machine.

use std::sync::Arc;
use std::time::Duration;

use super::conversation::{Access, Conversation};
use super::credential::Credential;
use super::digest::Digest;
use super::error::RegistryError;
use super::lookup::look_up;
use super::manifest::{ACCEPT, Manifest, ManifestError, is_platform_of, platform_of_config};
use super::reference::ImageRef;
use super::settings::RegistrySettings;
use crate::fetch::{Answer, Fetcher};
use crate::versions::Machine;

/// How long is waited for a registry.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For one attempt.
    pub attempt: Duration,
    /// No second attempt.
    pub once: bool,
}

impl Patience {
    /// For an image that is needed.
    pub const NEEDED: Self = Self { attempt: Duration::from_secs(30), once: false };
    /// For an image that would be nice to have.
    pub const SHORT: Self = Self { attempt: Duration::from_secs(5), once: true };
}

/// Image registries, reached over one HTTP client.
#[derive(Clone)]
pub struct Registry {
    pub(super) fetch: Fetcher,
    pub(super) settings: Arc<RegistrySettings>,
}

/// What a registry said of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// What the name means now: the digest of its index, or of its manifest where there is no index.
    pub digest: Digest,
    /// Where it is, by digest: under its own name, or under that of the mirror that answered.
    pub source: ImageRef,
}

impl Registry {
    /// Registries as these settings reach them.
    pub fn new(fetch: Fetcher, settings: RegistrySettings) -> Self {
        Self { fetch, settings: Arc::new(settings) }
    }

    /// Where an image may be had: its mirrors in their order, then its own registry.
    pub fn sources(&self, image: &ImageRef) -> Vec<ImageRef> {
        let mut sources = self.settings.mirrors.of(image);
        sources.push(image.clone());
        sources
    }

    /// The login for an image's registry, if one is known.
    pub async fn credential(&self, image: &ImageRef) -> Result<Option<Credential>, RegistryError> {
        Ok(look_up(&self.settings, image.registry()).await?.credential)
    }

    /// The digest an image has now, from the first source that has it for that machine. Every document is checked
    /// against the digest it was promised under.
    pub async fn resolve(
        &self,
        image: &ImageRef,
        machine: Machine,
        patience: Patience,
    ) -> Result<Resolved, RegistryError> {
        let mut tried = Vec::new();
        for source in self.sources(image) {
            match self.resolve_at(&source, machine, patience).await {
                Ok(digest) => {
                    tracing::debug!(%image, %source, %digest, "resolved");
                    return Ok(Resolved { source: source.pinned(&digest), digest });
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

    /// Whether the registry would take a push of that image, as far as it says before it gets one.
    pub async fn may_push(&self, image: &ImageRef) -> Result<(), RegistryError> {
        Conversation::new(self, image, Access::Push, Patience::NEEDED)?.begin_upload().await
    }

    /// Puts a tag on what the registry has under a digest of the same repository: nothing is moved, the document stays
    /// byte for byte what it is.
    pub async fn tag(&self, image: &ImageRef, digest: &Digest) -> Result<(), RegistryError> {
        let pinned = image.pinned(digest);
        let mut talk = Conversation::new(self, image, Access::Push, Patience::NEEDED)?;
        let answer = talk.get(&format!("manifests/{digest}"), &ACCEPT).await?;
        checked(&pinned, &answer, Some(digest))?;
        parsed(&pinned, &answer)?;
        let kind = answer.header("content-type").unwrap_or_default().to_owned();
        talk.put(&format!("manifests/{}", image.wanted()), &kind, answer.body).await?;
        Ok(())
    }

    /// Checks that the registry itself, no mirror of it, has what was pushed. That it cannot be asked from here is no
    /// failure: the engine has its own way to it.
    pub async fn check_pushed(
        &self,
        image: &ImageRef,
        digest: &Digest,
        machine: Machine,
    ) -> Result<(), RegistryError> {
        match self.resolve_at(image, machine, Patience::NEEDED).await {
            Ok(found) if found == *digest => Ok(()),
            Ok(found) => Err(RegistryError::WrongDigest {
                registry: image.registry().to_owned(),
                reference: image.to_string(),
                wanted: digest.clone(),
                found,
            }),
            Err(error) if error.is_unreachable() => {
                tracing::debug!(%error, "the push is not checked");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn resolve_at(
        &self,
        image: &ImageRef,
        machine: Machine,
        patience: Patience,
    ) -> Result<Digest, RegistryError> {
        let mut talk = Conversation::new(self, image, Access::Pull, patience)?;
        let answer = talk.get(&format!("manifests/{}", image.wanted()), &ACCEPT).await?;
        let digest = checked(image, &answer, image.digest())?;
        let published = match parsed(image, &answer)? {
            Manifest::Index(entries) => entries.into_iter().map(|entry| entry.platform).collect(),
            Manifest::Image { config } => {
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

/// The digest of a document, which is what was asked for and what the registry says it sent.
fn checked(image: &ImageRef, answer: &Answer, wanted: Option<&Digest>) -> Result<Digest, RegistryError> {
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

fn parsed(image: &ImageRef, answer: &Answer) -> Result<Manifest, RegistryError> {
    Manifest::parse(&answer.body).map_err(|error| unread(image, answer, error))
}

fn unread(image: &ImageRef, answer: &Answer, error: ManifestError) -> RegistryError {
    match error {
        ManifestError::Kind(kind) => RegistryError::Kind { reference: image.to_string(), kind },
        ManifestError::Malformed(cause) => {
            let kind = answer.header("content-type").unwrap_or("a document of no kind");
            RegistryError::NotARegistry {
                registry: image.registry().to_owned(),
                what: format!("it sent `{kind}` that is no manifest ({cause})"),
            }
        }
    }
}

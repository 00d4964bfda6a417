//! Request and result of a base provider. Plain values.

use camino::Utf8PathBuf;
use jiff::Timestamp;

use super::distribution::Distribution;
use super::error::BaseError;
use super::mirrors::{MirrorSources, discover};
use crate::engine::Engine;
use crate::model::address::Address;
use crate::model::lock::{BaseProvider, LockedBase, LockedDeb};
use crate::model::request::BaseChoice;
use crate::model::sha256::sha256_hex;
use crate::model::versions::{GlibcVersion, Machine};

/// The requested base.
#[derive(Debug, Clone)]
pub struct BaseRequest<'a> {
    /// `debian:12`; with the image provider any image reference.
    pub name: String,
    /// `bookworm`.
    pub suite: String,
    /// Why making it of packages is experimental, if it is.
    pub experimental: Option<String>,
    /// Which provider; a lock decides before it.
    pub provider: BaseChoice,
    /// The processor.
    pub machine: Machine,
    /// Sources of mirrors, for missing packages.
    pub mirrors: MirrorSources,
    /// The base of an existing lock file: exactly this one is prepared.
    pub locked: Option<&'a LockedBase>,
    /// Packages of a base that was made of this suite here a short while ago: they count as the current ones.
    pub recent: Option<&'a [LockedDeb]>,
    /// Whether to query the registry even if the engine has an image of that name.
    pub upgrade: bool,
    /// Whether to accept an index past its `Valid-Until`.
    pub accept_expired: bool,
    /// Whether to accept an index older than the newest one seen on its mirror.
    pub accept_older: bool,
    /// The time now.
    pub now: Timestamp,
}

impl BaseRequest<'_> {
    /// A hash of the mirrors that a new base is read from. `None`: nothing but this request may use what they answer, as no mirror or
    /// none of security updates is known, or an index is accepted that is expired or older than one that was seen.
    pub fn mirror_hash(&self) -> Option<String> {
        if self.accept_expired || self.accept_older {
            return None;
        }
        let mirrors = discover(&self.mirrors, Distribution::of(&self.suite)?).ok()?;
        // Addresses are shown without their credentials: none is in the hash.
        let text = format!("{}\n{}", mirrors.main, mirrors.security?);
        Some(sha256_hex(text.as_bytes()))
    }
}

/// The archive of a bootstrapped base: the one layer of its image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseArchive {
    /// Its path in the cache.
    pub path: Utf8PathBuf,
    /// Its SHA-256, hex.
    pub sha256: String,
}

/// A base in the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// Its provider.
    pub provider: BaseProvider,
    /// `debian:12`.
    pub name: String,
    /// `bookworm`.
    pub suite: String,
    /// Its reference for FROM: a private tag, or `name@sha256:…`.
    pub reference: String,
    /// The ID of the image of `reference`.
    pub image_id: String,
    /// The registry digest (`sha256:…`), or the id of a local image that has none; `None` for a bootstrap.
    pub digest: Option<String>,
    /// `debian@sha256:…` if a registry has it: a reference valid on any engine.
    pub published: Option<String>,
    /// Content digest of a bootstrapped base, hex.
    pub content: Option<String>,
    /// Fingerprint of its layers and configuration, if it is an image.
    pub image: Option<String>,
    /// Its packages, if it was bootstrapped.
    pub packages: Vec<LockedDeb>,
    /// Its archive in the cache, if it was bootstrapped.
    pub archive: Option<BaseArchive>,
    /// Its C library, where that is known.
    pub glibc: Option<GlibcVersion>,
    /// Whether it contains CUDA.
    pub cuda: bool,
    /// Roots of the archives its own apt reads, if it is not a base of the matrix.
    pub mirrors: Vec<Address>,
}

impl Base {
    /// Returns its entry in the lock file.
    pub fn locked(&self) -> LockedBase {
        LockedBase {
            provider: self.provider,
            name: self.name.clone(),
            suite: self.suite.clone(),
            digest: self.digest.clone(),
            content: self.content.clone(),
            image: self.image.clone(),
            packages: self.packages.clone(),
            cuda: self.cuda,
        }
    }

    /// Fails if the reference points to another image than when the base was prepared. Called before and after a build,
    /// as old engines cannot build FROM an id.
    pub async fn check_unchanged(&self, engine: &dyn Engine) -> Result<(), BaseError> {
        let found = engine.image(&self.reference).await?.map(|image| image.id);
        if found.as_deref() == Some(self.image_id.as_str()) {
            return Ok(());
        }
        Err(BaseError::TagMoved {
            tag: self.reference.clone(),
            wanted: self.image_id.clone(),
            found: found.unwrap_or_else(|| "nothing".to_owned()),
        })
    }
}

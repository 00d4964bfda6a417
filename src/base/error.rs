//! Errors of base providers, with exit codes and hints.

use camino::Utf8PathBuf;

use super::deb::DebError;
use super::mirrors::MirrorError;
use super::release::ReleaseError;
use super::seen_index::OlderIndex;
use super::signature_error::SignatureError;
use crate::archive::content_digest::ContentError;
use crate::engine::EngineError;
use crate::failure::{Exit, Failure};
use crate::fetch::FetchError;
use crate::model::address::Address;
use crate::model::image_digest::DigestError;
use crate::registry::RegistryError;
use crate::store::StoreError;

/// Why a base cannot be prepared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BaseError {
    /// No mirror to bootstrap from.
    #[error(transparent)]
    Mirror(#[from] MirrorError),
    /// A download failed.
    #[error("cannot fetch the packages of the base")]
    Fetch(#[source] FetchError),
    /// An index is not signed by the distribution.
    #[error("cannot verify package index `{address}`")]
    Signature {
        /// The index.
        address: Address,
        /// Why.
        source: SignatureError,
    },
    /// An index is signed, but not to be used.
    #[error("cannot use package index `{address}`")]
    Release {
        /// The index.
        address: Address,
        /// Why.
        source: ReleaseError,
    },
    /// The mirror serves an older index than before.
    #[error(transparent)]
    Older(#[from] OlderIndex),
    /// The packages of the suite are inconsistent.
    #[error("package `{wanted}`, required by `{needed_by}`, not found on the mirror of {suite}")]
    Missing {
        /// The suite.
        suite: String,
        /// The required package.
        wanted: String,
        /// The package that requires it.
        needed_by: String,
    },
    /// A locked package is neither in the cache nor on the mirror.
    #[error("locked package `{name}` {version} not found in the cache or on the mirror")]
    PackageLost {
        /// The package.
        name: String,
        /// Its version.
        version: String,
    },
    /// A package cannot be unpacked.
    #[error("cannot unpack package `{name}`")]
    Package {
        /// The package.
        name: String,
        /// Why.
        source: DebError,
    },
    /// dpkg failed in the container.
    #[error("cannot install the packages of the base: exit code {code}: {}", output.last().map_or("", String::as_str))]
    Install {
        /// Exit code of the script.
        code: i64,
        /// The last lines of its output.
        output: Vec<String>,
    },
    /// The installed system cannot be made into an archive.
    #[error("cannot archive the installed base")]
    Archive(#[from] ContentError),
    /// A system that cannot be bootstrapped from packages.
    #[error("cannot bootstrap base `{name}`: only Debian 11 to 13, Ubuntu 22.04 and 24.04 are supported")]
    NotBootstrappable {
        /// The base.
        name: String,
    },
    /// The image is not local and cannot be pulled.
    #[error("cannot pull base image `{reference}`")]
    NotPullable {
        /// The image.
        reference: String,
        /// Why.
        source: EngineError,
    },
    /// The registry request failed.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The base digest in the lock file is invalid.
    #[error("invalid base digest in the lock file")]
    LockedDigest(#[source] DigestError),
    /// The requested image cannot be a base.
    #[error("cannot use `{reference}` as a base: {why}")]
    NoBase {
        /// The image.
        reference: String,
        /// The reason.
        why: String,
    },
    /// The private tag refers to another image than before.
    #[error("tag `{tag}` changed: expected `{wanted}`, found `{found}`")]
    TagMoved {
        /// The tag.
        tag: String,
        /// The expected image ID.
        wanted: String,
        /// The found image ID, or `nothing`.
        found: String,
    },
    /// The engine's image is not the one that the lock names.
    #[error("`{reference}` does not have the layers and configuration of the locked base `{name}`")]
    OtherImage {
        /// The base.
        name: String,
        /// The image.
        reference: String,
    },
    /// The lock does not say what the engine's image under a private tag has to be.
    #[error(
        "cannot compare `{reference}` with the locked base `{name}`: the lock file has no fingerprint of the image, and no registry gives it"
    )]
    NoFingerprint {
        /// The base.
        name: String,
        /// The image.
        reference: String,
    },
    /// The lock file is for another base.
    #[error("base mismatch: locked `{found}`, requested `{wanted}`")]
    OtherBase {
        /// The requested base.
        wanted: String,
        /// The locked base.
        found: String,
    },
    /// The machine's own apt sources cannot be read.
    #[error("cannot read `{path}`: {cause}")]
    Sources {
        /// The file.
        path: Utf8PathBuf,
        /// The system's message.
        cause: std::io::Error,
    },
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The cache failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Failure for BaseError {
    fn exit(&self) -> Exit {
        match self {
            Self::Mirror(error) => error.exit(),
            Self::Registry(error) => error.exit(),
            Self::NotBootstrappable { .. } | Self::LockedDigest(_) => Exit::Usage,
            Self::OtherBase { .. } | Self::NoBase { .. } => Exit::No,
            Self::Fetch(..)
            | Self::Signature { .. }
            | Self::Release { .. }
            | Self::Older(..)
            | Self::Missing { .. }
            | Self::PackageLost { .. }
            | Self::Package { .. }
            | Self::Install { .. }
            | Self::Archive(..)
            | Self::NotPullable { .. }
            | Self::TagMoved { .. }
            | Self::OtherImage { .. }
            | Self::NoFingerprint { .. }
            | Self::Sources { .. }
            | Self::Engine(..)
            | Self::Store(..) => Exit::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = |text: &str| vec![text.to_owned()];
        match self {
            Self::Mirror(error) => error.hints(),
            Self::Fetch(error) => {
                let mut hints = error.hints();
                hints
                    .push("or set another mirror: `[mirrors] debian` or `ENVFORGE_DEBIAN_MIRROR`, of Ubuntu `ubuntu` or `ENVFORGE_UBUNTU_MIRROR`".to_owned());
                hints
            }
            Self::Store(error) => error.hints(),
            Self::Signature { source: SignatureError::KeyExpired { .. }, .. } => vec![
                "correct this machine's clock if it is wrong".to_owned(),
                "or update envforge, which carries the distribution's keys, or pull the base: `--base-provider image`"
                    .to_owned(),
            ],
            Self::Signature { source: SignatureError::KeyRevoked { .. }, .. } => {
                hint("use an up-to-date mirror (this one serves an index signed before the key was revoked)")
            }
            Self::Signature {
                source: SignatureError::Expired { .. } | SignatureError::NotYetValid { .. },
                ..
            } => vec![
                "correct this machine's clock if it is wrong".to_owned(),
                "or use an up-to-date mirror".to_owned(),
            ],
            Self::Signature { .. } => {
                hint("use another mirror (this one serves an index that the distribution did not sign)")
            }
            Self::Older(error) => vec![error.hint()],
            Self::Release { source: ReleaseError::Expired { .. }, .. } => vec![
                "correct this machine's clock if it is wrong".to_owned(),
                "use an up-to-date mirror, or set `[mirrors] accept-expired = true` to accept this one"
                    .to_owned(),
            ],
            Self::Release { source: ReleaseError::NotYetValid { .. }, .. } => {
                hint("correct this machine's clock (it is behind, or the mirror's is ahead)")
            }
            Self::Release { .. } | Self::Missing { .. } => {
                hint("use another mirror (this one is incomplete)")
            }
            Self::PackageLost { .. } => {
                hint("run `envforge lock --upgrade` to select current versions (mirrors delete old ones)")
            }
            Self::NotPullable { source, .. } => {
                let mut hints = source.hints();
                hints.push("or build the base from packages: `--base-provider bootstrap`".to_owned());
                hints
            }
            Self::Registry(error) => error.hints(),
            Self::LockedDigest(_) => hint("run `envforge lock --upgrade` to create a new lock file"),
            Self::TagMoved { .. } => hint("run the build again (another process changed the tag)"),
            Self::OtherImage { reference, .. } => vec![format!(
                "remove it (`docker rmi {reference}`) and run the command again; if it comes from a vendor directory, create that again"
            )],
            Self::NoFingerprint { .. } => {
                hint("run `envforge lock --upgrade` where the registry can be reached, then `envforge vendor DIR` again")
            }
            Self::NoBase { .. } => hint("use a Debian- or Ubuntu-based image, such as `debian:12`"),
            Self::OtherBase { .. } => hint("run `envforge lock` to lock the requested base"),
            _ => Vec::new(),
        }
    }
}

impl BaseError {
    /// Returns the complete reason on one line.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Registry(error) => error.reason(),
            Self::NotPullable { source, .. } => source.to_string(),
            other => other.to_string(),
        }
    }
}

impl From<FetchError> for BaseError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Store(error) => Self::Store(error),
            error => Self::Fetch(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_package_error_has_a_hint() {
        let error = BaseError::PackageLost { name: "libc6".to_owned(), version: "2.36-9".to_owned() };
        assert!(error.to_string().contains("`libc6` 2.36-9"), "{error}");
        assert!(error.hints()[0].contains("lock --upgrade"));
        assert_eq!(error.exit(), Exit::Outside);
    }

    #[test]
    fn expired_index_error_names_accepting_setting() {
        let address: Address = "http://mirror.test/debian".parse().expect("address");
        let valid_until = "2026-11-27T00:12:41Z".parse().expect("time");
        let now = "2027-11-27T00:12:41Z".parse().expect("time");
        let error = BaseError::Release { address, source: ReleaseError::Expired { valid_until, now } };
        assert!(error.hints()[0].contains("clock") && error.hints()[1].contains("accept-expired"));
    }
}

//! Why there is no base, and what to do about it.

use camino::Utf8PathBuf;

use super::deb::DebError;
use super::mirrors::MirrorError;
use super::release::ReleaseError;
use super::signature::SignatureError;
use crate::address::Address;
use crate::content_digest::ContentError;
use crate::engine::EngineError;
use crate::fetch::FetchError;
use crate::registry::{DigestError, RegistryError};
use crate::store::StoreError;

/// Why there is no base.
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
    #[error("the package index `{address}` is not trusted")]
    Signature {
        /// The index.
        address: Address,
        /// Why.
        source: SignatureError,
    },
    /// An index is signed, but not to be used.
    #[error("the package index `{address}` cannot be used")]
    Release {
        /// The index.
        address: Address,
        /// Why.
        source: ReleaseError,
    },
    /// The packages of the suite do not fit together.
    #[error("package `{needed_by}` of {suite} needs `{wanted}`, which the mirror does not have")]
    Missing {
        /// The suite.
        suite: String,
        /// What is needed.
        wanted: String,
        /// Who needs it.
        needed_by: String,
    },
    /// A locked package is neither in the cache nor on the mirror.
    #[error("locked package `{name}` {version} is neither in the cache nor on the mirror")]
    PackageLost {
        /// The package.
        name: String,
        /// Its version.
        version: String,
    },
    /// A package cannot be unpacked.
    #[error("package `{name}` cannot be unpacked")]
    Package {
        /// The package.
        name: String,
        /// Why.
        source: DebError,
    },
    /// dpkg failed in the container.
    #[error("installing the packages of the base failed with code {code}: {}", output.last().map_or("", String::as_str))]
    Install {
        /// What the script ended with.
        code: i64,
        /// The last lines it printed.
        output: Vec<String>,
    },
    /// The installed system cannot be made into an archive.
    #[error("the installed base cannot be archived")]
    Archive(#[from] ContentError),
    /// A system that is not built from packages here, and whose image is not to be had.
    #[error("base `{name}` is no Debian 11, 12 or 13 and cannot be built from packages")]
    NotBootstrappable {
        /// The base.
        name: String,
    },
    /// The image is not local and cannot be pulled.
    #[error("base image `{reference}` is not local and cannot be pulled")]
    NotPullable {
        /// The image.
        reference: String,
        /// Why.
        source: EngineError,
    },
    /// A registry did not give the image.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The lock's digest of the base is none.
    #[error("the lock's base has no usable digest")]
    LockedDigest(#[source] DigestError),
    /// The image the user names cannot be a base.
    #[error("`{reference}` cannot be a base: {why}")]
    NoBase {
        /// The image.
        reference: String,
        /// Why not.
        why: String,
    },
    /// The private tag points at another image than before.
    #[error("tag `{tag}` was moved: it is `{found}`, not `{wanted}`")]
    TagMoved {
        /// The tag.
        tag: String,
        /// The image id it had.
        wanted: String,
        /// The image id it has, or `nothing`.
        found: String,
    },
    /// The lock names packages of another base.
    #[error("the lock's base is `{found}`, not `{wanted}`")]
    OtherBase {
        /// The base asked for.
        wanted: String,
        /// The base of the lock.
        found: String,
    },
    /// The machine's own apt sources cannot be read.
    #[error("cannot read `{path}`: {cause}")]
    Sources {
        /// The file.
        path: Utf8PathBuf,
        /// The system's words.
        cause: std::io::Error,
    },
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The cache failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BaseError {
    /// What the user can do.
    pub fn hints(&self) -> Vec<String> {
        let hint = |text: &str| vec![text.to_owned()];
        match self {
            Self::Mirror(error) => error.hints(),
            Self::Fetch(error) => {
                let mut hints = error.hints();
                hints.push(
                    "or name another mirror: `[mirrors] debian` or `ENVFORGE_DEBIAN_MIRROR`".to_owned(),
                );
                hints
            }
            Self::Store(error) => error.hints(),
            Self::Signature { .. } => hint("use another mirror: this one does not serve what Debian signed"),
            Self::Release { source: ReleaseError::Expired { .. }, .. } => vec![
                "set this machine's clock if it is wrong".to_owned(),
                "else use a mirror that is up to date, or set `[mirrors] accept-expired = true` to use this one as it is"
                    .to_owned(),
            ],
            Self::Release { source: ReleaseError::NotYetValid { .. }, .. } => {
                hint("set this machine's clock: it is behind, or the mirror's is ahead")
            }
            Self::Release { .. } | Self::Missing { .. } => hint("use another mirror: this one is incomplete"),
            Self::PackageLost { .. } => {
                hint("mirrors delete superseded versions: `envforge lock --upgrade` takes the present ones")
            }
            Self::NotPullable { source, .. } => {
                let mut hints = source.hints();
                hints.push("or let the base be built from packages: `--base-provider bootstrap`".to_owned());
                hints
            }
            Self::Registry(error) => error.hints(),
            Self::LockedDigest(_) => hint("make a new lock: `envforge lock --upgrade`"),
            Self::TagMoved { .. } => hint("something else changed the tag during the build: run it again"),
            Self::NoBase { .. } => hint("name an image of a Debian or Ubuntu kind, such as `debian:12`"),
            Self::OtherBase { .. } => hint("run `envforge lock` to make a lock of this base"),
            _ => Vec::new(),
        }
    }

    /// The whole reason on one line, for a note.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Registry(error) => error.reason(),
            Self::NotPullable { source, .. } => source.to_string(),
            other => other.to_string(),
        }
    }

    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Mirror(error) => error.exit_code(),
            Self::Registry(error) => error.exit_code(),
            Self::NotBootstrappable { .. } | Self::LockedDigest(_) => 2,
            Self::OtherBase { .. } | Self::NoBase { .. } => 1,
            _ => 3,
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
    fn a_lost_package_is_named_with_what_to_do() {
        let error = BaseError::PackageLost { name: "libc6".to_owned(), version: "2.36-9".to_owned() };
        assert!(error.to_string().contains("`libc6` 2.36-9"), "{error}");
        assert!(error.hints()[0].contains("lock --upgrade"));
        assert_eq!(error.exit_code(), 3);
    }

    #[test]
    fn an_expired_index_names_the_setting_that_accepts_it() {
        let address: Address = "http://mirror.test/debian".parse().expect("address");
        let valid_until = "2026-11-27T00:12:41Z".parse().expect("time");
        let now = "2027-11-27T00:12:41Z".parse().expect("time");
        let error = BaseError::Release { address, source: ReleaseError::Expired { valid_until, now } };
        assert!(error.hints()[0].contains("clock") && error.hints()[1].contains("accept-expired"));
    }
}

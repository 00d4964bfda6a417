//! Why packages could not be resolved or fetched.

use super::redact::without_addresses;
use crate::engine::EngineError;
use crate::fetch::FetchError;
use crate::store::StoreError;

/// Why packages could not be resolved or fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackagesError {
    /// Nobody publishes the framework's binary.
    #[error("`{package} {version}` for `{cuda}` is published by nobody")]
    Unpublished {
        /// The package.
        package: String,
        /// Its version.
        version: String,
        /// The variant.
        cuda: String,
    },
    /// A file given as a wheel is none.
    #[error("`{file}` is not a wheel: {detail}")]
    NotAWheel {
        /// The file.
        file: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A wheel somebody built does not fit the stack.
    #[error("`{file}` does not fit `{stack}`:{}", lines(misfits))]
    WheelMisfit {
        /// The file.
        file: String,
        /// The stack's name.
        stack: String,
        /// Everything in which it differs.
        misfits: Vec<String>,
    },
    /// Two wheels of one package.
    #[error("`{one}` and `{other}` are both wheels of `{package}`")]
    TwoWheels {
        /// The package.
        package: String,
        /// One file.
        one: String,
        /// The other.
        other: String,
    },
    /// A wheel that no index has is not in the cache.
    #[error("`{file}`, which somebody built, is not in the cache of this machine")]
    LocalWheelGone {
        /// The file.
        file: String,
    },
    /// No address of the framework's own index is known.
    #[error("no index of `{framework}` is known for its `{cuda}` wheels")]
    NoFrameworkIndex {
        /// The framework.
        framework: String,
        /// The variant.
        cuda: String,
    },
    /// A requirement of the user's is none that can be pinned.
    #[error("`{text}` is not a requirement such as `requests>=2`")]
    Requirement {
        /// What was given.
        text: String,
    },
    /// No uv runs on that processor.
    #[error("no wheel of uv is known for `{machine}`")]
    NoUv {
        /// The processor.
        machine: String,
    },
    /// The package index could not be read.
    #[error("the package index cannot be reached{}", of_package(package.as_ref()))]
    Index {
        /// The package it was asked for, if it said so.
        package: Option<String>,
        /// The resolver's words, without addresses.
        #[source]
        cause: Words,
    },
    /// A page of the package index that is none.
    #[error("what the package index says of `{package}` lists no wheel")]
    Page {
        /// The package.
        package: String,
    },
    /// The package index wants credentials.
    #[error("the package index refuses access")]
    IndexAccess {
        /// The resolver's words, without addresses.
        #[source]
        cause: Words,
    },
    /// The index has no set of versions that fits together.
    #[error("no set of versions fits together")]
    NoSolution {
        /// The resolver's words, without addresses.
        #[source]
        cause: Words,
        /// True if packages of the user's were among the wishes.
        with_additions: bool,
    },
    /// The index has no file of the tool.
    #[error("the package index has no `{file}`")]
    NoUvWheel {
        /// The file wanted.
        file: String,
    },
    /// The distribution's mirror could not be read.
    #[error("the distribution's mirror cannot be reached from a container of the base")]
    Mirror {
        /// apt's words, without addresses.
        #[source]
        cause: Words,
        /// True if no name could be resolved: the container has no network.
        no_network: bool,
    },
    /// The vendor's apt repository could not be read.
    #[error("the vendor's apt repository, where nvcc comes from, cannot be reached")]
    Vendor {
        /// apt's or the client's words, without addresses.
        #[source]
        cause: Words,
    },
    /// The repository is signed by another key than the matrix names.
    #[error("the key of the vendor's apt repository is not the expected one: {found}, expected {wanted}")]
    VendorKey {
        /// The fingerprint found, or why there is none.
        found: String,
        /// The fingerprint wanted.
        wanted: String,
    },
    /// The source of nvcc has no such packages.
    #[error("the packages of nvcc cannot be had from the source that should have them")]
    Nvcc {
        /// apt's words, without addresses.
        #[source]
        cause: Words,
    },
    /// The mirror's signed index is too old.
    #[error("the distribution's index has expired")]
    Expired {
        /// apt's words, without addresses.
        #[source]
        cause: Words,
    },
    /// apt cannot satisfy the packages of the image.
    #[error("the distribution packages of the image cannot be had on this base")]
    System {
        /// apt's words, without addresses.
        #[source]
        cause: Words,
    },
    /// The distribution has no such packages, or they fit nothing.
    #[error("the distribution packages asked for cannot be had on this base")]
    Apt {
        /// apt's words, without addresses.
        #[source]
        cause: Words,
    },
    /// They would put others in the place of the image's own.
    #[error("the distribution packages asked for would change packages every image has")]
    AptChanges {
        /// Those it would change, without addresses.
        #[source]
        cause: Words,
    },
    /// The index has other bytes than a requirement file allows.
    #[error("`{file}` has SHA-256 {found}, which the requirement files do not allow for `{package}`")]
    OtherHash {
        /// The package.
        package: String,
        /// The file chosen.
        file: String,
        /// Its hash.
        found: String,
    },
    /// uv failed for a reason of its own.
    #[error("the resolver failed")]
    Resolver {
        /// Its words, without addresses.
        #[source]
        cause: Words,
    },
    /// The base has another Python than the stack.
    #[error("the base brings Python {found}, the stack needs {wanted}")]
    Python {
        /// The base's.
        found: String,
        /// The stack's.
        wanted: String,
    },
    /// What came out of the container makes no sense.
    #[error("the resolver's {what} cannot be understood: {detail}")]
    Output {
        /// Which part.
        what: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// A package has no wheel that fits.
    #[error("`{package} {version}` has no wheel for Python {python} on {machine}")]
    NoWheel {
        /// The package.
        package: String,
        /// Its version.
        version: String,
        /// The Python.
        python: String,
        /// The processor.
        machine: String,
    },
    /// The index gives other versions than the matrix says.
    #[error("the matrix says {package} {wanted}, the index resolves to {found}")]
    OtherVersion {
        /// The package.
        package: String,
        /// By the matrix.
        wanted: String,
        /// By the index.
        found: String,
    },
    /// A locked package is nowhere any more.
    #[error("`{name} {version}` is neither in the cache nor on a mirror any more")]
    DebGone {
        /// The package.
        name: String,
        /// The version locked.
        version: String,
    },
    /// A locked wheel is nowhere any more.
    #[error("`{file}` is neither in the cache nor on an index any more")]
    WheelGone {
        /// The file.
        file: String,
    },
    /// A wheel is to be downloaded here, and no index is set.
    #[error("`{file}` cannot be downloaded: no package index is set")]
    NoIndexNamed {
        /// The file.
        file: String,
    },
    /// A locked package is not in the cache and no mirror is known.
    #[error("`{name} {version}` is not in the cache, and no mirror of the distribution is known")]
    NoMirror {
        /// The package.
        name: String,
        /// The version locked.
        version: String,
    },
    /// The lock names no uv.
    #[error("the lock names no uv")]
    NoUvLocked,
    /// The wheel of uv holds no program.
    #[error("`{file}` holds no uv: {detail}")]
    UvWheel {
        /// The wheel.
        file: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The index gives another wheel of uv than the one that is known.
    #[error("the package index gives another `{file}` than the known one")]
    UvHash {
        /// The wheel.
        file: String,
        /// pip's words, without addresses.
        #[source]
        cause: Words,
    },
    /// pip, asked for uv because no index is set, failed for a reason of its own.
    #[error("pip in a container of the base cannot fetch uv")]
    Pip {
        /// Its or apt's words, without addresses.
        #[source]
        cause: Words,
    },
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A download failed.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The cache failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What another tool said, whole but without addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Words(pub(super) String);

impl Words {
    /// That text without its addresses.
    pub(crate) fn of(text: &str) -> Self {
        Self(without_addresses(text))
    }
}

/// The package of which uv says that it would have to be built.
fn without_wheel(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("Wheels are required for `")?;
    rest.split('`').next()
}

fn lines(all: &[String]) -> String {
    all.iter().flat_map(|line| ["\n  - ", line]).collect()
}

fn of_package(package: Option<&String>) -> String {
    package.map_or_else(String::new, |package| format!(" (asked for `{package}`)"))
}

impl PackagesError {
    /// What the user can do.
    pub fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Index { .. } | Self::NoUvWheel { .. } | Self::Page { .. } => {
                "set the index with `[index] default` (ENVFORGE_INDEX or PIP_INDEX_URL) or, for the framework's own wheels, `[index] \
                 framework` (ENVFORGE_FRAMEWORK_INDEX); if only containers cannot reach it, set `[network] mode = \
                 \"host\"` (ENVFORGE_NETWORK=host)"
            }
            Self::IndexAccess { .. } => {
                "put user and token into the address of `[index] default` (ENVFORGE_INDEX or PIP_INDEX_URL); it is never written to an image"
            }
            Self::Pip { .. } | Self::UvHash { .. } => {
                "set the index with `[index] default` (ENVFORGE_INDEX or PIP_INDEX_URL): uv is then had without pip"
            }
            Self::Unpublished { .. } => "name a wheel of it that somebody built: `--wheel FILE`",
            Self::NotAWheel { .. } => {
                "a wheel is called `NAME-VERSION+CUDA-PYTHON-ABI-PLATFORM.whl` (PEP 427)"
            }
            Self::WheelMisfit { .. } => "build it for this stack, or name the stack it was built for",
            Self::TwoWheels { .. } => "name one of them",
            Self::LocalWheelGone { file } => {
                return vec![format!("no index has it: name the file, `--wheel PATH/{file}`")];
            }
            Self::NoFrameworkIndex { .. } => "set `[index] framework` (ENVFORGE_FRAMEWORK_INDEX)",
            Self::Mirror { no_network: true, .. } => {
                "containers have no network here: set `[network] mode = \"host\"` (ENVFORGE_NETWORK=host), or give the \
                 engine a DNS server"
            }
            Self::Mirror { .. } | Self::NoMirror { .. } => {
                "set `[mirrors] debian` (ENVFORGE_DEBIAN_MIRROR) to a mirror that containers can reach"
            }
            Self::Vendor { .. } => {
                "set `[mirrors] nvidia` (ENVFORGE_NVIDIA_MIRROR) to a copy of the repositories that this machine and \
                 containers can reach, or leave the vendor out of `[toolkit] sources` (ENVFORGE_NVCC_SOURCES)"
            }
            Self::VendorKey { .. } => {
                "a repository that is signed anew needs `[mirrors] nvidia-fingerprint` (ENVFORGE_NVIDIA_FINGERPRINT) \
                 and, if the key does not lie beside its index, `nvidia-key` (ENVFORGE_NVIDIA_KEY)"
            }
            Self::Expired { .. } => "use a current mirror, or set `[mirrors] accept-expired = true`",
            Self::NoSolution { with_additions: true, .. } => {
                let loosen = "loosen or leave out one of the added packages".to_owned();
                return self.source_hint().into_iter().chain([loosen]).collect();
            }
            Self::NoSolution { .. } => {
                "the index lacks a version the matrix knows: check `[index] default` (ENVFORGE_INDEX) and `[index] \
                 framework` (ENVFORGE_FRAMEWORK_INDEX)"
            }
            Self::DebGone { .. } => {
                "mirrors delete old versions: `envforge lock --upgrade SPEC` chooses current ones"
            }
            Self::Apt { .. } => "correct or leave out what is asked for by --apt or `[packages] apt`",
            Self::AptChanges { .. } => "leave out what conflicts with them",
            Self::OtherHash { .. } => {
                "make the requirement file anew, or leave its hashes out: the lock has its own"
            }
            Self::WheelGone { .. } => "`envforge lock --upgrade` chooses what there is now",
            Self::NoIndexNamed { .. } => {
                "set it with `[index] default` (ENVFORGE_INDEX or PIP_INDEX_URL): builds may rely on uv's own default, downloads may not"
            }
            Self::NoUvLocked => "make a new lock with `envforge lock --upgrade SPEC`",
            Self::Python { .. } => "leave out --base, so that the base fits the Python",
            Self::Engine(error) => return error.hints(),
            Self::Fetch(error) => return error.hints(),
            Self::Store(error) => return error.hints(),
            _ => return Vec::new(),
        };
        vec![hint.to_owned()]
    }

    /// What allows the package to be built that has no wheel, if that is why nothing fits.
    pub fn source_hint(&self) -> Option<String> {
        let Self::NoSolution { with_additions: true, cause } = self else { return None };
        let name = without_wheel(&cause.0)?;
        Some(format!(
            "no wheel of `{name}` fits: allow its source distribution to be built, which runs what it brings: `allow-source = \
             [\"{name}\"]` in `[packages]` (--allow-source {name})"
        ))
    }

    /// True if what the user added fits nothing.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::NoSolution { with_additions: true, .. })
    }

    /// True if nvcc alone is out of reach: another CUDA, whose nvcc comes from elsewhere, can still be had.
    pub fn is_of_nvcc(&self) -> bool {
        matches!(self, Self::Vendor { .. } | Self::VendorKey { .. } | Self::Nvcc { .. })
    }

    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Unpublished { .. }
            | Self::WheelMisfit { .. }
            | Self::NoSolution { with_additions: true, .. }
            | Self::NoWheel { .. }
            | Self::Apt { .. }
            | Self::AptChanges { .. }
            | Self::OtherHash { .. }
            | Self::Python { .. }
            | Self::OtherVersion { .. } => 1,
            Self::NotAWheel { .. }
            | Self::TwoWheels { .. }
            | Self::Requirement { .. }
            | Self::NoUvLocked
            | Self::NoIndexNamed { .. } => 2,
            Self::Engine(error) => error.exit_code(),
            _ => 3,
        }
    }
}

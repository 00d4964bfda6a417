//! Why packages cannot be resolved or downloaded.

#[cfg(feature = "maintain")]
use super::redact::without_addresses;
use super::uv_hints::without_hints;
use crate::base::{BaseError, OlderIndex};
use crate::engine::EngineError;
use crate::fetch::FetchError;
use crate::store::StoreError;

/// Why packages cannot be resolved or downloaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackagesError {
    /// The variant of the framework is not published.
    #[error("no published wheel of `{package} {version}` for `{cuda}`")]
    Unpublished {
        /// The package.
        package: String,
        /// Its version.
        version: String,
        /// The variant.
        cuda: String,
    },
    /// The file is not a wheel.
    #[error("`{file}` is not a wheel: {detail}")]
    NotAWheel {
        /// The file.
        file: String,
        /// The problem.
        detail: String,
    },
    /// A prebuilt wheel is not compatible with the stack.
    #[error("`{file}` is not compatible with `{stack}`:{}", lines(misfits))]
    WheelMisfit {
        /// The file.
        file: String,
        /// The stack's name.
        stack: String,
        /// Everything in which it differs.
        misfits: Vec<String>,
    },
    /// No published wheel of a release is compatible with the stack.
    #[error("no wheel of `{package} {version}` is compatible with `{stack}`:{}", lines(reasons))]
    NoneCompatible {
        /// The package.
        package: String,
        /// Its version.
        version: String,
        /// The stack's name.
        stack: String,
        /// The reason of each file, or why there is none.
        reasons: Vec<String>,
    },
    /// Not a package with an exact version.
    #[error("invalid release `{text}` (expected `NAME==VERSION`)")]
    InvalidRelease {
        /// The given text.
        text: String,
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
    /// A prebuilt wheel is not in the cache.
    #[error("prebuilt wheel `{file}` is not in the cache")]
    LocalWheelGone {
        /// The file.
        file: String,
    },
    /// An index that does not tell when its files were uploaded.
    #[error("package index {index} lists no upload time, which `--as-of` requires: `{file}`")]
    NoUploadTimes {
        /// The index by name, or those that may have the file.
        index: String,
        /// The first file without one.
        file: String,
        /// The resolver's output.
        #[source]
        cause: ToolOutput,
    },
    /// A page of links, which tells no upload times.
    #[error("index `{name}` is a page of links without upload times, which `--as-of` requires")]
    FlatWithDate {
        /// The index.
        name: String,
    },
    /// No address of the framework's own index is known.
    #[error("package index for `{cuda}` wheels of `{framework}` not found")]
    NoFrameworkIndex {
        /// The framework.
        framework: String,
        /// The variant.
        cuda: String,
    },
    /// A requested index has no address.
    #[error("package index `{name}` is not configured")]
    IndexUnset {
        /// Its name.
        name: String,
    },
    /// A requirement that cannot be pinned.
    #[error("invalid requirement `{text}` (expected a form such as `requests>=2`)")]
    Requirement {
        /// The given text.
        text: String,
    },
    /// No uv runs on that processor.
    #[error("unsupported processor `{machine}`: no wheel of uv")]
    NoUv {
        /// The processor.
        machine: String,
    },
    /// The package index could not be read.
    #[error("cannot reach the package index{}", of_package(package.as_ref()))]
    Index {
        /// The requested package, if known.
        package: Option<String>,
        /// The resolver's output, without addresses.
        #[source]
        cause: ToolOutput,
    },
    /// A page of the package index lists no wheels.
    #[error("the package index lists no wheels for `{package}`")]
    Page {
        /// The package.
        package: String,
    },
    /// The package index wants credentials.
    #[error("access to the package index denied")]
    IndexAccess {
        /// The resolver's output, without addresses.
        #[source]
        cause: ToolOutput,
    },
    /// The index has no compatible set of versions.
    #[error("no compatible versions found")]
    NoSolution {
        /// The resolver's output, without addresses.
        #[source]
        cause: ToolOutput,
        /// Whether the request includes packages of the user.
        with_additions: bool,
        /// Why the package that has no wheel is not to be built, and what to do instead, if the matrix says so.
        trap: Option<String>,
    },
    /// The index does not list the file of the tool.
    #[error("`{file}` not found in the package index")]
    NoUvWheel {
        /// The requested file.
        file: String,
    },
    /// The distribution's mirror could not be read.
    #[error("cannot reach the distribution's mirror from a container")]
    Mirror {
        /// apt's output, without addresses.
        #[source]
        cause: ToolOutput,
        /// Whether no name could be resolved: the container has no network.
        no_network: bool,
    },
    /// The vendor's apt repository could not be read.
    #[error("cannot reach the vendor's apt repository (source of nvcc)")]
    Vendor {
        /// apt's or the client's output, without addresses.
        #[source]
        cause: ToolOutput,
    },
    /// The repository is signed by another key than the matrix specifies.
    #[error("key mismatch for the vendor's apt repository: expected {wanted}, found {found}")]
    VendorKey {
        /// The found fingerprint, or why it is missing.
        found: String,
        /// The expected fingerprint.
        wanted: String,
    },
    /// The source of nvcc has no such packages.
    #[error("cannot find nvcc packages in the configured source")]
    Nvcc {
        /// apt's output, without addresses.
        #[source]
        cause: ToolOutput,
    },
    /// The mirror's signed index is too old.
    #[error("the distribution's package index has expired")]
    Expired {
        /// apt's output, without addresses.
        #[source]
        cause: ToolOutput,
    },
    /// A mirror serves an older signed index than before.
    #[error(transparent)]
    Older(#[from] OlderIndex),
    /// apt cannot satisfy the packages of the image.
    #[error("built-in apt packages are not available on this base")]
    System {
        /// apt's output, without addresses.
        #[source]
        cause: ToolOutput,
    },
    /// The distribution lacks the requested packages, or they conflict.
    #[error("requested apt packages are not available on this base")]
    Apt {
        /// apt's output, without addresses.
        #[source]
        cause: ToolOutput,
    },
    /// The requested packages would replace built-in packages.
    #[error("requested apt packages conflict with built-in packages")]
    AptChanges {
        /// The packages that would change, without addresses.
        #[source]
        cause: ToolOutput,
    },
    /// The index has another hash than the requirement files list.
    #[error(
        "SHA-256 mismatch for `{package}`: `{file}` has {found}, which the requirement files do not list"
    )]
    OtherHash {
        /// The package.
        package: String,
        /// The file chosen.
        file: String,
        /// Its hash.
        found: String,
    },
    /// uv failed.
    #[error("the resolver failed")]
    Resolver {
        /// Its output, without addresses.
        #[source]
        cause: ToolOutput,
    },
    /// The base's Python differs from the stack's.
    #[error("base has Python {found}, but {wanted} is required")]
    Python {
        /// The base's.
        found: String,
        /// The stack's.
        wanted: String,
    },
    /// The output of the container cannot be parsed.
    #[error("cannot parse resolver {what}: {detail}")]
    Output {
        /// Which part.
        what: &'static str,
        /// The problem.
        detail: String,
    },
    /// A package has no compatible wheel.
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
    /// The index resolves to other versions than the matrix.
    #[error("{package} version mismatch: matrix {wanted}, index {found}")]
    OtherVersion {
        /// The package.
        package: String,
        /// By the matrix.
        wanted: String,
        /// By the index.
        found: String,
    },
    /// A locked package is no longer available.
    #[error("`{name} {version}` not found in the cache or on any mirror")]
    DebGone {
        /// The package.
        name: String,
        /// The version locked.
        version: String,
    },
    /// A locked wheel is no longer available.
    #[error("`{file}` not found in the cache or on any index")]
    WheelGone {
        /// The file.
        file: String,
    },
    /// A wheel cannot be downloaded because no index is set.
    #[error("cannot download `{file}`: no package index is set")]
    NoIndexNamed {
        /// The file.
        file: String,
    },
    /// A locked package is not in the cache and no mirror is known.
    #[error("`{name} {version}` not found in the cache, and no mirror of the distribution is configured")]
    NoMirror {
        /// The package.
        name: String,
        /// The version locked.
        version: String,
    },
    /// The lock file has no uv entry.
    #[error("lock file has no uv entry")]
    NoUvLocked,
    /// The wheel of uv has no program.
    #[error("cannot read uv from `{file}`: {detail}")]
    UvWheel {
        /// The wheel.
        file: String,
        /// The problem.
        detail: String,
    },
    /// The index serves another wheel of uv than the known one.
    #[error("hash mismatch for `{file}` from the package index")]
    UvHash {
        /// The wheel.
        file: String,
        /// pip's output, without addresses.
        #[source]
        cause: ToolOutput,
    },
    /// pip failed to download uv (no index is set).
    #[error("cannot download uv with pip in a container")]
    Pip {
        /// Its or apt's output, without addresses.
        #[source]
        cause: ToolOutput,
    },
    /// The base cannot be read, or the image that resolves cannot be made.
    #[error(transparent)]
    Base(#[from] BaseError),
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

/// The output of another tool, without addresses. It is shown without the hints of uv.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", without_hints(.0))]
pub struct ToolOutput(pub(super) String);

impl ToolOutput {
    /// Removes the addresses of a text.
    #[cfg(feature = "maintain")]
    pub(crate) fn of(text: &str) -> Self {
        Self(without_addresses(text))
    }
}

fn lines(all: &[String]) -> String {
    all.iter().flat_map(|line| ["\n  - ", line]).collect()
}

fn of_package(package: Option<&String>) -> String {
    package.map_or_else(String::new, |package| format!(" for `{package}`"))
}

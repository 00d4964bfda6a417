//! `lock`, and which lock other verbs use.

use camino::Utf8PathBuf;

use super::project::ProjectOptions;
use super::spec::SpecArgument;
use super::spec_parts::SpecParts;
use super::target::TargetOptions;

/// A request for `lock`.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Lock {
    /// What to lock: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]`.
    pub spec: Option<SpecArgument>,
    /// Check that the lock file is up to date (offline).
    pub check: bool,
    /// Show what a new lock file would change, and why; write nothing.
    pub diff: bool,
    /// Print the content digest of the image: computed if the engine has it, else as recorded.
    pub digest: bool,
    /// Read the distribution's packages anew for what is not locked yet.
    pub refresh: bool,
    /// The lock file of another tool whose versions are kept where the stack allows.
    pub from: Option<Utf8PathBuf>,
    /// Its extras.
    pub extra: Vec<String>,
    /// Its dependency groups, in addition to the default ones.
    pub group: Vec<String>,
    /// Allow what the project requests of this machine.
    pub trust: bool,
    /// What the spec is restricted to.
    pub parts: SpecParts,
    /// Which project.
    pub project: ProjectOptions,
    /// Which lock file is used and how.
    pub source: LockOptions,
    /// The machine that will run it.
    pub target: TargetOptions,
}

/// How a base is obtained.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BaseChoice {
    /// The image if it is local or can be pulled, else a bootstrap.
    #[default]
    Auto,
    /// A registry or local image.
    Image,
    /// The distribution's packages.
    Bootstrap,
}

impl BaseChoice {
    /// Returns the word that options use: `auto`, `image`, `bootstrap`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Image => "image",
            Self::Bootstrap => "bootstrap",
        }
    }
}

/// Which lock is used and how.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct LockOptions {
    /// The lock file.
    pub lockfile: Option<Utf8PathBuf>,
    /// Ignore the existing lock file.
    pub upgrade: bool,
    /// Upgrade only these packages.
    pub upgrade_package: Vec<String>,
    /// Use the lock file unchanged; fail if it is missing or out of date.
    pub locked: bool,
    /// The date whose releases are considered; the moment after it (RFC 3339, UTC) once it was read.
    pub as_of: Option<String>,
    /// Additional Python requirements.
    pub with: Vec<String>,
    /// Additional distribution packages.
    pub apt: Vec<String>,
    /// Packages or dependencies that may be built from source if no wheel is compatible.
    pub allow_source: Vec<String>,
    /// Prebuilt wheels of an unpublished variant: the framework, then its companions.
    pub wheel: Vec<Utf8PathBuf>,
    /// Build from source without confirmation.
    pub yes: bool,
    /// The base image instead of the chosen one, such as debian:13.
    pub base: Option<String>,
    /// How to obtain the base image.
    pub base_provider: Option<BaseChoice>,
    /// Network mode of build containers.
    pub network: Option<String>,
    /// Accept a package index older than the newest one seen on its mirror.
    pub accept_older: bool,
}

impl LockOptions {
    /// How to obtain the base image; `auto` by default.
    pub fn provider(&self) -> BaseChoice {
        self.base_provider.unwrap_or_default()
    }
}

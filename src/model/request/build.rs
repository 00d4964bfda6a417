//! `build`.

use std::num::NonZeroUsize;

use camino::Utf8PathBuf;

use super::lock::LockOptions;
use super::project::ProjectOptions;
use super::spec::{RequestedSpec, SpecArgument};
use super::spec_parts::SpecParts;
use super::target::TargetOptions;

/// What puts an image together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BuilderChoice {
    /// This program: each layer is made from locked wheels and kept.
    #[default]
    Assembled,
    /// The engine, by the steps of a Dockerfile.
    Dockerfile,
}

/// A request for `build`.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Build {
    /// What to build: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]`, one or more.
    pub specs: Vec<SpecArgument>,
    /// Build every supported variant that matches the filter.
    pub all_supported: Option<SpecArgument>,
    /// Number of parallel builds.
    pub jobs: NonZeroUsize,
    /// Additional image tags.
    pub tags: Vec<String>,
    /// Push the tags of --tag that name a registry, and print their digests.
    pub push: bool,
    /// Sign what it was built from and what its checks proved, next to the pushed image.
    pub attest: bool,
    /// The key that signs; without one that of the environment.
    pub key: Option<Utf8PathBuf>,
    /// Print layers and context without building the image; source builds still run.
    pub dry_run: bool,
    /// Exit with 1 unless the checks ran on a GPU of the target.
    pub require_gpu: bool,
    /// Do not use cached layers.
    pub no_cache: bool,
    /// Run the checks again, even if those of an earlier run stand.
    pub recheck: bool,
    /// Build offline from a vendor directory.
    pub offline: Option<Utf8PathBuf>,
    /// Allow the secrets that the project requests.
    pub trust: bool,
    /// What puts the image together.
    pub builder: BuilderChoice,
    /// What the spec is restricted to.
    pub parts: SpecParts,
    /// Which project.
    pub project: ProjectOptions,
    /// Which lock is used and how.
    pub source: LockOptions,
    /// The machine that will run it.
    pub target: TargetOptions,
}

impl Build {
    /// What `envforge build SPEC` alone means.
    pub fn of(spec: RequestedSpec) -> Self {
        Self {
            specs: vec![spec.into()],
            all_supported: None,
            jobs: NonZeroUsize::MIN,
            tags: Vec::new(),
            push: false,
            attest: false,
            key: None,
            dry_run: false,
            require_gpu: false,
            no_cache: false,
            recheck: false,
            offline: None,
            trust: false,
            builder: BuilderChoice::default(),
            parts: SpecParts::default(),
            project: ProjectOptions::default(),
            source: LockOptions::default(),
            target: TargetOptions::default(),
        }
    }
}

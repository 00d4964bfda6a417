//! `envforge build`.

use std::num::NonZeroUsize;

use camino::Utf8PathBuf;
use clap::Args;
use clap::builder::TypedValueParser;

use crate::model::request::{BuilderChoice, SpecArgument};

use super::choices::one_of;
use super::{LockSource, ProjectArgs, SpecPartArgs, TargetArgs};

const EXAMPLES: &str = "\
Examples:
  envforge build pytorch-cuda:2.8-cu128
  envforge build                                        build the current project
  envforge build -E train                               build its environment `train`
  envforge build pytorch-cuda:2.8-cu128 --with transformers --apt ffmpeg
  envforge build pytorch-cuda:2.8-cu128 -t registry.example.com/team/torch:2.8 --push
  envforge build pytorch-cuda:2.8-cu128 -t box.test/torch:2.8 --push --attest --key cosign.key
  envforge build pytorch-cuda --gpu \"NVIDIA GeForce GTX 1080 Ti\"
  envforge build pytorch-cuda:2.8-cu128 --locked        fail if the lock file is out of date
  envforge build --offline ./vendor                     build offline after `envforge vendor ./vendor`
  envforge build pytorch-cuda:2.8-cu128 --dry-run       print layers and context only
  envforge build pytorch-cuda:2.8-cu128 pytorch-cuda:2.9-cu128
  envforge build --all-supported pytorch-cuda:2.8       every CUDA variant of 2.8 for this machine

All tags, including those of --tag, end in -unverified until the checks pass on a GPU.
With several specs, images that an earlier run has built, checked and tagged are kept as they are, unless
--no-cache, --upgrade, --locked or --require-gpu is given.";

/// What puts an image together.
fn builders() -> impl TypedValueParser<Value = BuilderChoice> {
    one_of([
        ("assembled", BuilderChoice::Assembled, "This program, from layers made straight from the wheels"),
        ("dockerfile", BuilderChoice::Dockerfile, "The engine, by the steps of a Dockerfile"),
    ])
}

/// Arguments of `build`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct BuildArgs {
    /// Specs to build: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]` [default: current project].
    #[arg(value_name = "SPEC")]
    pub specs: Vec<SpecArgument>,
    /// Build every supported variant matching the filter, such as `pytorch-cuda:2.8` (latest patch releases only).
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["specs", "tags", "lockfile"])]
    pub all_supported: Option<SpecArgument>,
    /// Number of parallel builds.
    #[arg(long, value_name = "N", default_value = "2")]
    pub jobs: NonZeroUsize,
    /// Additional image tag (repeatable).
    #[arg(short, long = "tag", value_name = "REF")]
    pub tags: Vec<String>,
    /// Push the --tag tags that include a registry, and print their digests.
    #[arg(long, conflicts_with = "dry_run")]
    pub push: bool,
    /// Sign what the image was built from (SLSA provenance, SPDX) and what its checks proved on a GPU, next to the pushed image.
    #[arg(long, requires = "push")]
    pub attest: bool,
    /// Private key for --attest: PKCS#8 or cosign's [env: `ENVFORGE_SIGNING_KEY`, the key itself].
    #[arg(long, value_name = "FILE", requires = "attest")]
    pub key: Option<Utf8PathBuf>,
    /// Print layers and context without building the image (source builds still run).
    #[arg(long)]
    pub dry_run: bool,
    /// Fail with exit code 1 unless the checks ran on a target GPU.
    #[arg(long)]
    pub require_gpu: bool,
    /// Do not use cached layers.
    #[arg(long)]
    pub no_cache: bool,
    /// Run the checks again, even if those of an earlier run of the same image stand.
    #[arg(long)]
    pub recheck: bool,
    /// Build offline from a vendor directory (requires an up-to-date lock file, there or in the project).
    #[arg(long, value_name = "DIR", conflicts_with_all = ["all_supported", "push"])]
    pub offline: Option<Utf8PathBuf>,
    /// Allow the secrets that the project requests, now and later.
    #[arg(long, conflicts_with_all = ["specs", "all_supported"])]
    pub trust: bool,
    /// The builder: `assembled` makes layers straight from the wheels, with the same image digest each time;
    /// `dockerfile` runs a step of a Dockerfile for each layer.
    #[arg(long, value_parser = builders(), default_value = "assembled", value_name = "BUILDER")]
    pub builder: BuilderChoice,
    /// Parts of the spec.
    #[command(flatten)]
    pub parts: SpecPartArgs,
    /// The project.
    #[command(flatten)]
    pub project: ProjectArgs,
    /// The lock file.
    #[command(flatten)]
    pub source: LockSource,
    /// The target machine.
    #[command(flatten)]
    pub target: TargetArgs,
}

into_request!(BuildArgs => Build { specs, all_supported, jobs, tags, push, attest, key, dry_run, require_gpu, no_cache, recheck, offline, trust, builder, parts, project, source, target });

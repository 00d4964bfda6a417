//! `envforge build`.

use std::num::NonZeroUsize;

use camino::Utf8PathBuf;
use clap::{Args, ValueEnum};

use crate::model::request::BuilderChoice;

use super::{LockSource, ProjectArgs, TargetArgs};

const EXAMPLES: &str = "\
Examples:
  envforge build pytorch-cuda:2.8-cu128
  envforge build                                        what envforge.toml here says
  envforge build -e train                               its environment `train`
  envforge build pytorch-cuda:2.8-cu128 --with transformers --apt ffmpeg
  envforge build pytorch-cuda:2.8-cu128 -t registry.example.com/team/torch:2.8 --push
  envforge build pytorch-cuda --gpu \"NVIDIA GeForce GTX 1080 Ti\"
  envforge build pytorch-cuda:2.8-cu128 --locked        exactly what the lock says, or exit 1
  envforge build --offline ./vendor                     without network, from `envforge vendor ./vendor`
  envforge build pytorch-cuda:2.8-cu128 --dry-run       list layers and context, build nothing
  envforge build pytorch-cuda:2.8-cu128 pytorch-cuda:2.9-cu128
  envforge build --all-supported pytorch-cuda:2.8       each CUDA of 2.8 that this machine runs

Every tag, yours too, ends in -unverified until checks have run on a GPU.";

/// What puts an image together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum BuilderArg {
    /// The engine, by the steps of a Dockerfile.
    #[default]
    Dockerfile,
    /// This program, from layers made straight from the wheels.
    Assembled,
}

impl From<BuilderArg> for BuilderChoice {
    fn from(builder: BuilderArg) -> Self {
        match builder {
            BuilderArg::Dockerfile => Self::Dockerfile,
            BuilderArg::Assembled => Self::Assembled,
        }
    }
}

/// Arguments of `build`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct BuildArgs {
    /// What to build: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]`, one or more [default: the project here].
    #[arg(value_name = "SPEC")]
    pub specs: Vec<String>,
    /// Every variant that the filter covers and the target can run, newest patches only: `pytorch-cuda:2.8`.
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["specs", "tags", "lockfile"])]
    pub all_supported: Option<String>,
    /// How many are built at a time.
    #[arg(long, value_name = "N", default_value = "2")]
    pub jobs: NonZeroUsize,
    /// Another tag for the image (repeatable).
    #[arg(short, long = "tag", value_name = "REF")]
    pub tags: Vec<String>,
    /// Push the tags of --tag that name a registry, and print their digests.
    #[arg(long, conflicts_with = "dry_run")]
    pub push: bool,
    /// Lock and print the layers and context, but build no image (what nobody publishes is compiled: a lock names its hash).
    #[arg(long)]
    pub dry_run: bool,
    /// Exit with 1 unless the checks ran on a GPU of the target.
    #[arg(long)]
    pub require_gpu: bool,
    /// Do not use cached layers.
    #[arg(long)]
    pub no_cache: bool,
    /// Build without any network, from a folder that `envforge vendor` filled; its lock, or the one that is there, must fit.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["all_supported", "push"])]
    pub offline: Option<Utf8PathBuf>,
    /// What puts the image together: `dockerfile` runs a step of a Dockerfile for each layer, `assembled` makes layers straight
    /// from the wheels, the same image digest each time.
    #[arg(long, value_enum, default_value_t, value_name = "BUILDER")]
    pub builder: BuilderArg,
    /// Give the same image digest each time: the same as `--builder assembled`.
    #[arg(long, conflicts_with = "builder")]
    pub bit_identical: bool,
    /// Which project.
    #[command(flatten)]
    pub project: ProjectArgs,
    /// Which lock is used and how.
    #[command(flatten)]
    pub source: LockSource,
    /// The machine that will run it.
    #[command(flatten)]
    pub target: TargetArgs,
}

into_request!(BuildArgs => Build { specs, all_supported, jobs, tags, push, dry_run, require_gpu, no_cache, offline, builder, bit_identical, project, source, target });

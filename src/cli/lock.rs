//! `envforge lock`.

use camino::Utf8PathBuf;
use clap::Args;
use clap::builder::TypedValueParser;

use crate::model::request::{BaseChoice, SpecArgument};

use super::choices::one_of;
use super::{ProjectArgs, SpecPartArgs, TargetArgs};

const EXAMPLES: &str = "\
Examples:
  envforge lock                                      create or update envforge.lock of the current project
  envforge lock pytorch-cuda:2.8-cu128               create or update the lock file of a spec
  envforge lock pytorch-cuda:2.8-cu128 --upgrade     resolve every package again
  envforge lock -P transformers                      upgrade one package, keep the others
  envforge lock --check                              exit with 1 if the lock file is out of date
  envforge lock --diff --upgrade                     show available updates, write nothing
  envforge lock pytorch-cuda:2.8 --as-of 2026-03-01  resolve with what was published by that date
  envforge lock --from uv.lock --extra train         keep the versions of uv.lock where the stack allows
  envforge lock --diff --from uv.lock                list the versions that would move, write nothing
  envforge lock pytorch-cuda:2.8-cu128 --digest      print the content digest of its image
  envforge lock pytorch-cuda:2.8-cu128 --lockfile ./envforge.lock";

/// Arguments of `lock`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct LockArgs {
    /// Spec to lock: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]` [default: current project].
    pub spec: Option<SpecArgument>,
    /// Check that the lock file is up to date (offline; exit 1 if not).
    #[arg(long, conflicts_with_all = ["digest", "diff", "upgrade", "upgrade_package"])]
    pub check: bool,
    /// Show the changes and their reasons without writing the lock file.
    #[arg(long, conflicts_with_all = ["digest", "locked"])]
    pub diff: bool,
    /// Print the content digest of the image (recomputed if the engine has the image).
    #[arg(long)]
    pub digest: bool,
    /// Read the distribution's packages again instead of once a day; what is locked stays.
    #[arg(long, conflicts_with = "check")]
    pub refresh: bool,
    /// Lock file of another tool whose versions are kept where the stack allows: uv.lock, pylock.toml, poetry.lock or pixi.lock.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "locked"])]
    pub from: Option<Utf8PathBuf>,
    /// Extra of that lock file to select, as its tool does (repeatable).
    #[arg(long, value_name = "NAME", requires = "from")]
    pub extra: Vec<String>,
    /// Dependency group of that lock file to select in addition to its default groups; environment of pixi (repeatable).
    #[arg(long, value_name = "NAME", requires = "from")]
    pub group: Vec<String>,
    /// Allow apt sources of the project's base that are not the distribution's, now and later.
    #[arg(long, conflicts_with = "spec")]
    pub trust: bool,
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

/// The lock file and the base image.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Lock and base")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct LockSource {
    /// Lock file [default: next to envforge.toml; for a spec, in the state directory].
    #[arg(long, value_name = "FILE")]
    pub lockfile: Option<Utf8PathBuf>,
    /// Ignore the existing lock file.
    #[arg(long)]
    pub upgrade: bool,
    /// Upgrade only this package (repeatable).
    #[arg(short = 'P', long, value_name = "PACKAGE", conflicts_with_all = ["upgrade", "locked"])]
    pub upgrade_package: Vec<String>,
    /// Require an up-to-date lock file and write nothing into it; exit 1 otherwise.
    #[arg(long, conflicts_with = "upgrade")]
    pub locked: bool,
    /// Resolve with the Python packages published by this date (UTC); kept by later updates, dropped by `--upgrade` without it.
    #[arg(long, value_name = "DATE", conflicts_with = "locked")]
    pub as_of: Option<String>,
    /// Additional Python requirement, such as `transformers` or `{ name = "ourtool", index = "internal" }` (repeatable).
    #[arg(long, value_name = "REQUIREMENT")]
    pub with: Vec<String>,
    /// Additional apt package, such as `ffmpeg` (repeatable).
    #[arg(long, value_name = "PACKAGE")]
    pub apt: Vec<String>,
    /// Allow building this package or dependency from source if no wheel is compatible (repeatable).
    #[arg(long, value_name = "PACKAGE", requires = "with")]
    pub allow_source: Vec<String>,
    /// Use a prebuilt wheel of a requested package, or of an unpublished variant: the framework, then its companions
    /// (repeatable). The lock file records its SHA-256.
    #[arg(long, value_name = "FILE")]
    pub wheel: Vec<Utf8PathBuf>,
    /// Build from source without confirmation.
    #[arg(short, long)]
    pub yes: bool,
    /// Base image, such as debian:13 [default: resolved].
    #[arg(long, value_name = "IMAGE")]
    pub base: Option<String>,
    /// How to obtain the base image: pull it, or bootstrap it from distribution packages.
    #[arg(long, value_name = "PROVIDER", value_parser = base_choices())]
    pub base_provider: Option<BaseChoice>,
    /// Network mode of build containers.
    #[arg(long, value_name = "NETWORK", value_parser = ["bridge", "host"])]
    pub network: Option<String>,
    /// Accept a signed package index of the distribution that is older than one its mirror served before.
    #[arg(long)]
    pub accept_older: bool,
}

/// How to obtain the base image.
fn base_choices() -> impl TypedValueParser<Value = BaseChoice> {
    one_of([BaseChoice::Auto, BaseChoice::Image, BaseChoice::Bootstrap].map(|one| (one.as_str(), one, "")))
}

into_request!(LockArgs => Lock { spec, check, diff, digest, refresh, from, extra, group, trust, parts, project, source, target });

into_request!(LockSource => LockOptions { lockfile, upgrade, upgrade_package, locked, as_of, with, apt, allow_source, wheel, yes, base, base_provider, network, accept_older });

//! `envforge lock`.

use camino::Utf8PathBuf;
use clap::Args;

use super::{ProjectArgs, TargetArgs};

const EXAMPLES: &str = "\
Examples:
  envforge lock                                      of envforge.toml here, as envforge.lock beside it
  envforge lock pytorch-cuda:2.8-cu128               make or update its lock
  envforge lock pytorch-cuda:2.8-cu128 --upgrade     choose everything anew
  envforge lock -P transformers                      one package anew, the others stay
  envforge lock --check                              does it fit? exit 1 if not
  envforge lock --diff --upgrade                     what would change, and nothing is written
  envforge lock pytorch-cuda:2.8-cu128 --digest      one SHA-256 over what its image holds
  envforge lock pytorch-cuda:2.8-cu128 --lockfile ./envforge.lock";

/// Arguments of `lock`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct LockArgs {
    /// What to lock: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]` [default: the project here].
    pub spec: Option<String>,
    /// Only say whether the lock fits what is wanted: exit 1 if not. Asks neither engine nor network.
    #[arg(long, conflicts_with_all = ["digest", "diff", "upgrade", "upgrade_package"])]
    pub check: bool,
    /// Only show what would change, and why; with --upgrade or -P what those would change.
    #[arg(long, conflicts_with_all = ["digest", "locked"])]
    pub diff: bool,
    /// Print the content digest of its image: computed if the engine has it, else as recorded.
    #[arg(long)]
    pub digest: bool,
    /// Which project.
    #[command(flatten)]
    pub project: ProjectArgs,
    /// Where the lock lies.
    #[command(flatten)]
    pub source: LockSource,
    /// The machine that will run it.
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Which lock is used and how.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Lock and base")]
pub struct LockSource {
    /// The lock file [default: beside envforge.toml; of a spec, in the state folder].
    #[arg(long, value_name = "FILE")]
    pub lockfile: Option<Utf8PathBuf>,
    /// Make a new lock, whatever the old one says.
    #[arg(long)]
    pub upgrade: bool,
    /// Choose this package anew and keep the others (repeatable).
    #[arg(short = 'P', long, value_name = "PACKAGE", conflicts_with_all = ["upgrade", "locked"])]
    pub upgrade_package: Vec<String>,
    /// Use the lock as it is; exit 1 if there is none or it does not fit.
    #[arg(long, conflicts_with = "upgrade")]
    pub locked: bool,
    /// A package beside the framework, as a requirement (repeatable): `--with transformers`.
    #[arg(long, value_name = "REQUIREMENT")]
    pub with: Vec<String>,
    /// A package of the distribution (repeatable): `--apt ffmpeg`.
    #[arg(long, value_name = "PACKAGE")]
    pub apt: Vec<String>,
    /// A package of --with, or one they need, that is built from its source distribution where no wheel of it fits (repeatable).
    #[arg(long, value_name = "PACKAGE", requires = "with")]
    pub allow_source: Vec<String>,
    /// A wheel that somebody built of what nobody publishes, instead of compiling it here (repeatable: the framework, then
    /// its companions). It is checked against the stack, and the lock names its SHA-256.
    #[arg(long, value_name = "FILE")]
    pub wheel: Vec<Utf8PathBuf>,
    /// Compile what nobody publishes without asking first.
    #[arg(short, long)]
    pub yes: bool,
    /// The base image instead of the chosen one, such as debian:13.
    #[arg(long, value_name = "IMAGE")]
    pub base: Option<String>,
    /// How the base is had: from a registry or this engine, or built from the distribution's packages.
    #[arg(long, value_name = "PROVIDER", value_parser = ["auto", "image", "bootstrap"])]
    pub base_provider: Option<String>,
    /// Where containers get their network from.
    #[arg(long, value_name = "NETWORK", value_parser = ["bridge", "host"])]
    pub network: Option<String>,
}

into_request!(LockArgs => Lock { spec, check, diff, digest, project, source, target });

into_request!(LockSource => LockOptions { lockfile, upgrade, upgrade_package, locked, with, apt, allow_source, wheel, yes, base, base_provider, network });

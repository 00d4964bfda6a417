//! `envforge lock`.

use camino::Utf8PathBuf;
use clap::Args;

use super::TargetArgs;

const EXAMPLES: &str = "\
Examples:
  envforge lock pytorch-cuda:2.8-cu128               make or update its lock
  envforge lock pytorch-cuda:2.8-cu128 --upgrade     choose everything anew
  envforge lock pytorch-cuda:2.8-cu128 --lockfile ./envforge.lock";

/// Arguments of `lock`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct LockArgs {
    /// What to lock: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]`.
    pub spec: String,
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
    /// The lock file [default: one per spec in the state folder].
    #[arg(long, value_name = "FILE")]
    pub lockfile: Option<Utf8PathBuf>,
    /// Make a new lock, whatever the old one says.
    #[arg(long)]
    pub upgrade: bool,
    /// Use the lock as it is; exit 1 if there is none or it does not fit.
    #[arg(long, conflicts_with = "upgrade")]
    pub locked: bool,
    /// A package beside the framework, as a requirement (repeatable): `--with transformers`.
    #[arg(long, value_name = "REQUIREMENT")]
    pub with: Vec<String>,
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

impl LockSource {
    /// How the base is had; `auto` if nothing was typed.
    pub fn provider(&self) -> &str {
        self.base_provider.as_deref().unwrap_or("auto")
    }
}

//! `envforge add` and `envforge remove`.

use clap::Args;

use super::{ProjectArgs, TargetArgs};
use crate::model::request::{EditPackages, PackageAction};

const ADD_EXAMPLES: &str = "\
Examples:
  envforge add einops                             add a Python package to envforge.toml and lock it
  envforge add 'einops>=0.8' rich                 several at once, with version limits
  envforge add --apt ffmpeg                       add a distribution package
  envforge add -E train wandb                     add it to the environment `train` alone
  envforge add '{ name = \"ourtool\", index = \"internal\" }'
  envforge add --dry-run 'einops>=0.8'            show the change, write nothing

A package that is there already is replaced. Comments and order of the file are kept. If the packages cannot be locked,
envforge.toml is put back as it was.";

const REMOVE_EXAMPLES: &str = "\
Examples:
  envforge remove einops                          remove a Python package from envforge.toml and lock again
  envforge remove einops rich                     several at once
  envforge remove --apt ffmpeg                    remove a distribution package
  envforge remove -E train wandb                  remove it from the environment `train`
  envforge remove --dry-run einops                show the change, write nothing";

/// Arguments of `add`.
#[derive(Debug, Clone, Args)]
#[command(after_help = ADD_EXAMPLES)]
pub struct AddArgs {
    /// Packages to add: Python requirements such as `einops>=0.8`, or names with --apt.
    #[arg(value_name = "PACKAGE", required = true)]
    pub packages: Vec<String>,
    /// Where they go.
    #[command(flatten)]
    pub edit: EditArgs,
}

/// Arguments of `remove`.
#[derive(Debug, Clone, Args)]
#[command(after_help = REMOVE_EXAMPLES)]
pub struct RemoveArgs {
    /// Names of the packages to remove.
    #[arg(value_name = "PACKAGE", required = true)]
    pub packages: Vec<String>,
    /// From where.
    #[command(flatten)]
    pub edit: EditArgs,
}

/// The list that is edited, and how.
#[derive(Debug, Clone, Args)]
pub struct EditArgs {
    /// The packages are distribution packages, such as `ffmpeg`.
    #[arg(long)]
    pub apt: bool,
    /// Show the changes to envforge.toml; write and lock nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// The project.
    #[command(flatten)]
    pub project: ProjectArgs,
    /// The target machine.
    #[command(flatten)]
    pub target: TargetArgs,
}

fn request(action: PackageAction, packages: Vec<String>, edit: EditArgs) -> EditPackages {
    let EditArgs { apt, dry_run, project, target } = edit;
    EditPackages { action, packages, apt, dry_run, project: project.into(), target: target.into() }
}

impl From<AddArgs> for EditPackages {
    fn from(AddArgs { packages, edit }: AddArgs) -> Self {
        request(PackageAction::Add, packages, edit)
    }
}

impl From<RemoveArgs> for EditPackages {
    fn from(RemoveArgs { packages, edit }: RemoveArgs) -> Self {
        request(PackageAction::Remove, packages, edit)
    }
}

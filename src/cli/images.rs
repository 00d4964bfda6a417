//! `envforge images`, `inspect`, `diff`, `size`, `prune`.

use clap::Args;

use super::ProjectArgs;

const IMAGES: &str = "\
Examples:
  envforge images
  envforge images --json";

const INSPECT: &str = "\
Examples:
  envforge inspect                              the image of the project here
  envforge inspect pytorch-cuda:2.8-cu128
  envforge inspect pytorch-cuda:2.8 --sbom > image.spdx.json
  envforge inspect ./envforge.lock --sbom";

const DIFF: &str = "\
Examples:
  envforge diff pytorch-cuda:2.7-cu118 pytorch-cuda:2.8-cu128
  envforge diff old.lock envforge.lock          locks, before anything is built";

const SIZE: &str = "\
Examples:
  envforge size                                 the image of the project here
  envforge size pytorch-cuda:2.8-cu128";

const PRUNE: &str = "\
Examples:
  envforge prune                                what would be removed
  envforge prune --yes                          removes it

An image stays if a lock in use names it (one beside a project file, or one of a spec), if a container uses it, or if it was
not built from this machine's state folder. With the images go the volumes that `shell` made of their /etc; homes and
workspaces stay. What resolving packages keeps on the engine is the volume `envforge-resolve`: remove it at any time.";

/// Arguments of `images`.
#[derive(Debug, Clone, Args)]
#[command(after_help = IMAGES)]
pub struct ImagesArgs {}

/// Arguments of `inspect`.
#[derive(Debug, Clone, Args)]
#[command(after_help = INSPECT)]
pub struct InspectArgs {
    /// An image, a spec or a lock file [default: the project here].
    #[arg(value_name = "IMAGE|SPEC|LOCK")]
    pub name: Option<String>,
    /// Print its bill of materials, as SPDX 2.3 JSON.
    #[arg(long)]
    pub sbom: bool,
    /// Which project.
    #[command(flatten)]
    pub project: ProjectArgs,
}

/// Arguments of `diff`.
#[derive(Debug, Clone, Args)]
#[command(after_help = DIFF)]
pub struct DiffArgs {
    /// An image, a spec or a lock file.
    #[arg(value_name = "A")]
    pub from: String,
    /// The other.
    #[arg(value_name = "B")]
    pub to: String,
}

/// Arguments of `size`.
#[derive(Debug, Clone, Args)]
#[command(after_help = SIZE)]
pub struct SizeArgs {
    /// An image or a spec [default: the project here].
    #[arg(value_name = "IMAGE|SPEC")]
    pub name: Option<String>,
    /// Which project.
    #[command(flatten)]
    pub project: ProjectArgs,
}

/// Arguments of `prune`.
#[derive(Debug, Clone, Args)]
#[command(after_help = PRUNE)]
pub struct PruneArgs {
    /// Remove them; without it they are only listed.
    #[arg(short, long)]
    pub yes: bool,
}

into_request!(DiffArgs => Diff { from, to });

into_request!(SizeArgs => Size { name, project });

into_request!(PruneArgs => Prune { yes });

into_request!(InspectArgs => Inspect { name, sbom, project });

//! `envforge images`, `inspect`, `diff`, `size`, `prune`.

use clap::Args;
use clap::builder::TypedValueParser;

use super::choices::one_of;
use super::{ProjectArgs, SpecPartArgs};
use crate::model::request::SizeBy;

const IMAGES: &str = "\
Examples:
  envforge images
  envforge images --json";

const INSPECT: &str = "\
Examples:
  envforge inspect                              the image of the current project
  envforge inspect pytorch-cuda:2.8-cu128
  envforge inspect pytorch-cuda:2.8 --sbom > image.spdx.json
  envforge inspect ./envforge.lock --sbom";

const DIFF: &str = "\
Examples:
  envforge diff pytorch-cuda:2.7-cu118 pytorch-cuda:2.8-cu128
  envforge diff old.lock                        compare with the current project
  envforge diff envforge.lock -E train          compare with its environment `train`
  envforge diff old.lock envforge.lock          compare lock files before a build";

const SIZE: &str = "\
Examples:
  envforge size                                 the image of the current project
  envforge size pytorch-cuda:2.8-cu128
  envforge size --by gpu                        device code in the libraries, by GPU architecture
  envforge size --html size.html                both as treemaps

--by gpu and --html read the fat binaries of all libraries in a container without GPU and network. Static libraries are not read.";

const PRUNE: &str = "\
Examples:
  envforge prune                                list unused images
  envforge prune --yes                          remove them
  envforge prune --cache                        list unused downloads and layers of the cache, too

Images referenced by a lock file in use (of a spec, or next to a project file) are kept, as are images used by a container and
images not built from this machine's state directory. The /etc volumes that `shell` created from removed images are removed
too; home directories and workspaces are kept. In a project with `[cluster] folder`, your files there of former locks of the
project, and those that a killed export left, are listed, and not removed: a job may wait for them. The volumes `envforge-index-*` and `envforge-lists-*` cache answers of package
indexes and lists of apt; they are safe to remove.";

/// Arguments of `images`.
#[derive(Debug, Clone, Args)]
#[command(after_help = IMAGES)]
pub struct ImagesArgs {}

/// Arguments of `inspect`.
#[derive(Debug, Clone, Args)]
#[command(after_help = INSPECT)]
pub struct InspectArgs {
    /// Image, spec or lock file [default: current project].
    #[arg(value_name = "IMAGE|SPEC|LOCK")]
    pub name: Option<String>,
    /// Print a software bill of materials (SPDX 2.3 JSON).
    #[arg(long)]
    pub sbom: bool,
    /// Parts of the spec.
    #[command(flatten)]
    pub parts: SpecPartArgs,
    /// The project.
    #[command(flatten)]
    pub project: ProjectArgs,
}

/// Arguments of `diff`.
#[derive(Debug, Clone, Args)]
#[command(after_help = DIFF)]
pub struct DiffArgs {
    /// Image, spec, lock file or project directory.
    #[arg(value_name = "A")]
    pub from: String,
    /// Image, spec, lock file or project directory to compare with [default: current project].
    #[arg(value_name = "B")]
    pub to: Option<String>,
    /// Also write the changes as an HTML page.
    #[arg(long, value_name = "FILE")]
    pub html: Option<camino::Utf8PathBuf>,
    /// Parts of A and B, of those that are specs.
    #[command(flatten)]
    pub parts: SpecPartArgs,
    /// The project, in place of B.
    #[command(flatten)]
    pub project: ProjectArgs,
}

/// The parts whose sizes are shown.
fn parts_of_size() -> impl TypedValueParser<Value = SizeBy> {
    one_of([
        ("component", SizeBy::Component, "Layers of the image"),
        ("gpu", SizeBy::Gpu, "Device code in its libraries, by GPU architecture"),
    ])
}

/// Arguments of `size`.
#[derive(Debug, Clone, Args)]
#[command(after_help = SIZE)]
pub struct SizeArgs {
    /// Image or spec [default: current project].
    #[arg(value_name = "IMAGE|SPEC")]
    pub name: Option<String>,
    /// Parts to list.
    #[arg(long, value_parser = parts_of_size(), default_value = "component", value_name = "PARTS")]
    pub by: SizeBy,
    /// Also write both as an HTML page with treemaps.
    #[arg(long, value_name = "FILE")]
    pub html: Option<camino::Utf8PathBuf>,
    /// Parts of the spec.
    #[command(flatten)]
    pub parts: SpecPartArgs,
    /// The project.
    #[command(flatten)]
    pub project: ProjectArgs,
}

/// Arguments of `prune`.
#[derive(Debug, Clone, Args)]
#[command(after_help = PRUNE)]
pub struct PruneArgs {
    /// Remove what is listed.
    #[arg(short, long)]
    pub yes: bool,
    /// List downloads and layers of the cache that no lock in use names, too.
    #[arg(long)]
    pub cache: bool,
}

into_request!(DiffArgs => Diff { from, to, html, parts, project });

into_request!(SizeArgs => Size { name, by, html, parts, project });

into_request!(PruneArgs => Prune { yes, cache });

into_request!(InspectArgs => Inspect { name, sbom, parts, project });

//! The command line of the maintainers' program.

use camino::Utf8PathBuf;
use clap::{Args, Parser, Subcommand};

use crate::cli::{GlobalArgs, TargetArgs};
use crate::model::request::SpecArgument;

const EXAMPLES: &str = "\
Examples (`maintain` is `cargo run --features maintain --bin maintain --`):
  maintain docs docs/src/reference    rewrite the generated pages of the book
  maintain plan compat pytorch-cuda   plan with the rows of a folder, whatever the lint says
  maintain refresh pytorch jax        compare these rows with the package index
  maintain site public                write the matrix as HTML pages";

const REFRESH_EXAMPLES: &str = "\
Examples:
  maintain refresh                 compare every framework
  maintain refresh pytorch jax
  maintain refresh --json
  maintain refresh cupy --release 14.0.0 --architectures
  maintain refresh --write compat  append the rows of new releases for review

Prints changed fields and newer releases; modifies files only with --write. Exit code 1 if there are any. --architectures reads the GPU
targets from the compressed libraries inside the wheels, with range requests.";

const SITE_EXAMPLES: &str = "\
Examples:
  maintain site public    index.html and one page for each GPU model

The pages load nothing: open them from disk, or serve the directory. index.html filters the variants by GPU, driver and text.";

/// The maintainers' program of envforge.
#[derive(Debug, Parser)]
#[command(name = "maintain", about, after_help = EXAMPLES, max_term_width = 100)]
pub(super) struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub(super) global: GlobalArgs,
    /// The command.
    #[command(subcommand)]
    pub(super) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Compare the default channel of the matrix with the configured package index.
    Refresh(RefreshArgs),
    /// Show the plan of a spec from a folder of rows, also while the lint refuses it.
    Plan(PlanArgs),
    /// Write the matrix as HTML pages: which variants run on which GPU and driver.
    #[command(after_help = SITE_EXAMPLES)]
    Site {
        /// Output directory.
        dir: Utf8PathBuf,
    },
    /// Write the reference pages of the book.
    Docs {
        /// Output directory.
        dir: Utf8PathBuf,
    },
    /// Print every compatibility rule with an example.
    Rules,
    /// Print the support table of the matrix.
    Support,
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    /// Directory of `.toml` files.
    pub(super) dir: Utf8PathBuf,
    /// The spec.
    pub(super) spec: SpecArgument,
    /// The target machine.
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

/// Arguments of `refresh`.
#[derive(Debug, Args)]
#[command(after_help = REFRESH_EXAMPLES)]
pub(super) struct RefreshArgs {
    /// Frameworks to compare [default: all].
    #[arg(value_name = "FRAMEWORK")]
    pub(super) frameworks: Vec<String>,
    /// Compare only this release.
    #[arg(long, value_name = "VERSION", requires = "frameworks")]
    pub(super) release: Option<String>,
    /// Also compare GPU architectures (reads up to gigabytes per row).
    #[arg(long, requires = "release")]
    pub(super) architectures: bool,
    /// Append rows of new releases to the files of this directory; those that lack a field as comments.
    #[arg(long, value_name = "DIR", conflicts_with = "release")]
    pub(super) write: Option<Utf8PathBuf>,
    /// Compare the rows of this directory [default: those built in].
    #[arg(long, value_name = "DIR")]
    pub(super) rows: Option<Utf8PathBuf>,
}

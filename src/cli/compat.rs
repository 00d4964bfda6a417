//! `envforge compat`.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand};

const LINT_EXAMPLES: &str = "\
Examples:
  envforge compat lint            the matrix this program was built with
  envforge compat lint ./compat   files of your own";

const SHOW_EXAMPLES: &str = "\
Examples:
  envforge compat show \"variant jax 0.8.0\"
  envforge compat show \"toolkit 12.8.1\" --json";

/// What can be asked of the compatibility matrix.
#[derive(Debug, Clone, Subcommand)]
pub enum CompatCommand {
    /// Check sources, references and contradictions of the matrix or of a folder of its files.
    Lint(CompatLintArgs),
    /// Print the rows whose name begins so, with every field and source.
    Show(CompatShowArgs),
}

/// Arguments of `compat lint`.
#[derive(Debug, Clone, Args)]
#[command(after_help = LINT_EXAMPLES)]
pub struct CompatLintArgs {
    /// The folder of `.toml` files; without one the matrix of this program.
    pub dir: Option<Utf8PathBuf>,
}

/// Arguments of `compat show`.
#[derive(Debug, Clone, Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct CompatShowArgs {
    /// The row's name or its beginning, as messages write it: `variant pytorch 2.8.0`.
    pub row: String,
}

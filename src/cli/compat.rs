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

const REFRESH_EXAMPLES: &str = "\
Examples:
  envforge compat refresh                 every framework
  envforge compat refresh pytorch jax
  envforge compat refresh --json
  envforge compat refresh cupy --release 14.0.0 --architectures

What differs is printed as a row's field in both forms, and what is newer as far as the index says it; nothing is changed. Exit
code 1 if there is any of it. GPU targets lie inside the wheels' compressed libraries: --architectures fetches those part by
part and reads what they have code for.";

const USE_EXAMPLES: &str = "\
Examples:
  tar -C compat -cf edition.tar . && sha256sum edition.tar
  envforge compat use edition.tar --sha256 HASH    until this program is replaced by another release
  envforge compat use --builtin                    the program's own again

An edition is a tar archive of the files of compat/, packed with gzip or not. It is linted before it is taken, and locks name it.";

/// What can be asked of the compatibility matrix.
#[derive(Debug, Clone, Subcommand)]
pub enum CompatCommand {
    /// Check sources, references and contradictions of the matrix or of a folder of its files.
    Lint(CompatLintArgs),
    /// Compare the rows of the default channel with the package index of the settings.
    Refresh(CompatRefreshArgs),
    /// Use another edition of the matrix than this program's own.
    Use(CompatUseArgs),
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

/// Arguments of `compat refresh`.
#[derive(Debug, Clone, Args)]
#[command(after_help = REFRESH_EXAMPLES)]
pub struct CompatRefreshArgs {
    /// Frameworks to compare [default: all].
    #[arg(value_name = "FRAMEWORK")]
    pub frameworks: Vec<String>,
    /// Only the rows of this release.
    #[arg(long, value_name = "VERSION", requires = "frameworks")]
    pub release: Option<String>,
    /// Also which GPUs the wheels have code for: reads their libraries, up to gigabytes for each row.
    #[arg(long, requires = "release")]
    pub architectures: bool,
}

/// Arguments of `compat use`.
#[derive(Debug, Clone, Args)]
#[command(after_help = USE_EXAMPLES)]
pub struct CompatUseArgs {
    /// The edition.
    #[arg(required_unless_present = "builtin", requires = "sha256")]
    pub file: Option<Utf8PathBuf>,
    /// The SHA-256 that its publisher names.
    #[arg(long, value_name = "HASH", requires = "file")]
    pub sha256: Option<String>,
    /// The matrix this program was built with.
    #[arg(long, conflicts_with = "file")]
    pub builtin: bool,
}

/// Arguments of `compat show`.
#[derive(Debug, Clone, Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct CompatShowArgs {
    /// The row's name or its beginning, as messages write it: `variant pytorch 2.8.0`.
    pub row: String,
}

into_request!(CompatLintArgs => CompatLint { dir });

into_request!(CompatRefreshArgs => CompatRefresh { frameworks, release, architectures });

into_request!(CompatUseArgs => CompatUse { file, sha256, builtin });

into_request!(CompatShowArgs => CompatShow { row });

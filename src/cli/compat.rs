//! `envforge compat`.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand};

use crate::model::request::SpecArgument;

const EXAMPLES: &str = "\
Examples:
  envforge compat show \"variant jax 0.8.0\"    print the facts of a row and their source
  envforge compat lint                         lint the built-in matrix";

const LINT_EXAMPLES: &str = "\
Examples:
  envforge compat lint            lint the built-in matrix
  envforge compat lint ./compat   lint your own files";

const SHOW_EXAMPLES: &str = "\
Examples:
  envforge compat show \"variant jax 0.8.0\"
  envforge compat show \"toolkit 12.8.1\" --json";

const USE_EXAMPLES: &str = "\
Examples:
  tar -C compat -cf matrix.tar . && sha256sum matrix.tar
  envforge compat use matrix.tar --sha256 HASH    use it until envforge is updated
  envforge compat use --builtin                    return to the built-in matrix

A matrix archive is a tar file, optionally gzipped, of the files in compat/. It is linted before use; lock files record it.";

const ABI_EXAMPLES: &str = "\
Examples:
  envforge compat abi ./my_extension-1.0-cp311-cp311-linux_x86_64.whl --spec pytorch-cuda:2.8-cu128
  envforge compat abi my-extension==1.0 --spec pytorch-cuda:2.8-cu128    the wheel of the package index for it

Reads symbol tables only; nothing of the wheel runs. The lock of the spec must exist (`envforge lock`). Exit code 1 if the release has
no wheel for its Python, processor and glibc, or if a library of the wheel would not load: a symbol, library or version is missing, or it is for another processor. Symbols of glibc are compared by
version; those of the C++ library and of Python are taken to be there, and `verify` compares them in the image (check extension-abi).";

/// Commands for the compatibility matrix.
#[derive(Debug, Clone, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum CompatCommand {
    /// Check the sources, references and consistency of the matrix.
    Lint(CompatLintArgs),
    /// Use a matrix archive instead of the built-in matrix.
    Use(CompatUseArgs),
    /// Print matching rows with all fields and sources.
    Show(CompatShowArgs),
    /// Check whether the libraries of a wheel load with the locked PyTorch and CUDA.
    Abi(CompatAbiArgs),
}

/// Arguments of `compat lint`.
#[derive(Debug, Clone, Args)]
#[command(after_help = LINT_EXAMPLES)]
pub struct CompatLintArgs {
    /// Directory of `.toml` files [default: the active matrix].
    pub dir: Option<Utf8PathBuf>,
}

/// Arguments of `compat use`.
#[derive(Debug, Clone, Args)]
#[command(after_help = USE_EXAMPLES)]
pub struct CompatUseArgs {
    /// Matrix archive.
    #[arg(required_unless_present = "builtin", requires = "sha256")]
    pub file: Option<Utf8PathBuf>,
    /// Expected SHA-256.
    #[arg(long, value_name = "HASH", requires = "file")]
    pub sha256: Option<String>,
    /// Use the built-in matrix.
    #[arg(long, conflicts_with = "file")]
    pub builtin: bool,
}

/// Arguments of `compat show`.
#[derive(Debug, Clone, Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct CompatShowArgs {
    /// Row name or its beginning, such as `variant pytorch 2.8.0`.
    pub row: String,
}

/// Arguments of `compat abi`.
#[derive(Debug, Clone, Args)]
#[command(after_help = ABI_EXAMPLES)]
pub struct CompatAbiArgs {
    /// Wheel to check: a file, or NAME==VERSION of the package index.
    pub wheel: String,
    /// Spec whose lock the wheel is checked against [default: current project].
    #[arg(long, value_name = "SPEC")]
    pub spec: Option<SpecArgument>,
    /// Lock file [default: the spec's or the project's].
    #[arg(long, value_name = "FILE")]
    pub lockfile: Option<Utf8PathBuf>,
}

into_request!(CompatAbiArgs => CompatAbi { wheel, spec, lockfile });

into_request!(CompatLintArgs => CompatLint { dir });

into_request!(CompatUseArgs => CompatUse { file, sha256, builtin });

into_request!(CompatShowArgs => CompatShow { row });

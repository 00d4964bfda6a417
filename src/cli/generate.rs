//! `envforge generate`.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand};
use clap_complete::Shell;

const COMPLETION_EXAMPLES: &str = "\
Examples:
  envforge generate completions bash > ~/.local/share/bash-completion/completions/envforge";

const MAN_EXAMPLES: &str = "\
Examples:
  envforge generate man ~/.local/share/man/man1";

/// What can be generated from the program itself.
#[derive(Debug, Clone, Subcommand)]
pub enum GenerateCommand {
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Write manual pages, one per command.
    Man(ManArgs),
}

/// Arguments of `generate completions`.
#[derive(Debug, Clone, Args)]
#[command(after_help = COMPLETION_EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Arguments of `generate man`.
#[derive(Debug, Clone, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub struct ManArgs {
    /// The folder the pages are written to.
    pub dir: Utf8PathBuf,
}

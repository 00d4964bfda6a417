//! `envforge generate`.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand};
use clap_complete::Shell;

const COMPLETION_EXAMPLES: &str = "\
Examples:
  envforge generate completions bash > ~/.local/share/bash-completion/completions/envforge";

const SCHEMA_EXAMPLES: &str = "\
Examples:
  envforge generate schema > envforge.schema.json    then `#:schema ./envforge.schema.json` on the file's first line";

const MAN_EXAMPLES: &str = "\
Examples:
  envforge generate man ~/.local/share/man/man1";

/// What can be generated from the program itself.
#[derive(Debug, Clone, Subcommand)]
pub enum GenerateCommand {
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Print the JSON schema of envforge.toml.
    Schema(SchemaArgs),
    /// Write manual pages, one per command.
    Man(ManArgs),
    /// Print every rule that can refuse a combination, with an example.
    Rules,
    /// Print the support table of the matrix.
    Support,
}

/// Arguments of `generate completions`.
#[derive(Debug, Clone, Args)]
#[command(after_help = COMPLETION_EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Arguments of `generate schema`.
#[derive(Debug, Clone, Args)]
#[command(after_help = SCHEMA_EXAMPLES)]
pub struct SchemaArgs {}

/// Arguments of `generate man`.
#[derive(Debug, Clone, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub struct ManArgs {
    /// The folder the pages are written to.
    pub dir: Utf8PathBuf,
}

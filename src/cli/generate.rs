//! `envforge generate`.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand};
use clap_complete::Shell;

use crate::model::request::Generate;

const EXAMPLES: &str = "\
Examples:
  envforge generate completions fish > ~/.config/fish/completions/envforge.fish
  envforge generate schema > .envforge.schema.json";

const COMPLETION_EXAMPLES: &str = "\
Examples:
  envforge generate completions bash > ~/.local/share/bash-completion/completions/envforge
  envforge generate completions zsh > ~/.zfunc/_envforge
  envforge generate completions fish > ~/.config/fish/completions/envforge.fish";

const SCHEMA_EXAMPLES: &str = "\
Examples:
  envforge generate schema > .envforge.schema.json    update the schema that `init` wrote for editors";

const MAN_EXAMPLES: &str = "\
Examples:
  envforge generate man ~/.local/share/man/man1";

/// Generated files.
#[derive(Debug, Clone, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum GenerateCommand {
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Print the JSON schema of envforge.toml.
    Schema(SchemaArgs),
    /// Write manual pages, one per command.
    Man(ManArgs),
    /// Print the values that complete a command line.
    #[command(hide = true)]
    Candidates(CandidatesArgs),
}

/// Arguments of `generate completions`.
#[derive(Debug, Clone, Args)]
#[command(after_help = COMPLETION_EXAMPLES)]
pub struct CompletionsArgs {
    /// Shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Arguments of `generate schema`.
#[derive(Debug, Clone, Args)]
#[command(after_help = SCHEMA_EXAMPLES)]
pub struct SchemaArgs {}

/// Arguments of `generate candidates`, which completion scripts call.
#[derive(Debug, Clone, Args)]
pub struct CandidatesArgs {
    /// Words after `envforge`; the last is completed.
    #[arg(last = true)]
    pub words: Vec<String>,
}

/// Arguments of `generate man`.
#[derive(Debug, Clone, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub struct ManArgs {
    /// Output directory.
    pub dir: Utf8PathBuf,
}

/// Returns the request of `generate`; `cli` is the whole argument parser, for completions and manual pages.
pub(super) fn request(command: GenerateCommand, mut cli: clap::Command) -> Generate {
    match command {
        GenerateCommand::Completions(args) => {
            let script = super::completion::script(args.shell, &mut cli);
            Generate::Completions(script)
        }
        GenerateCommand::Schema(SchemaArgs {}) => Generate::Schema,
        GenerateCommand::Man(args) => {
            let mut cli = cli.disable_help_subcommand(true);
            cli.build();
            let mut pages = Vec::new();
            add_pages(&cli, "envforge", &mut pages);
            Generate::Man(pages, args.dir)
        }
        GenerateCommand::Candidates(args) => {
            cli.build();
            let (kinds, prefix) = super::candidates::expected(&cli, &args.words);
            Generate::Candidates(kinds, prefix)
        }
    }
}

/// Adds the manual page of a command and those of its subcommands.
fn add_pages(command: &clap::Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) {
    let mut page = Vec::new();
    // clap keeps command names for the life of the program.
    let named = command.clone().name(&*Box::leak(name.to_owned().into_boxed_str()));
    clap_mangen::Man::new(named).render(&mut page).expect("a vector takes every byte");
    pages.push((format!("{name}.1"), page));
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        add_pages(sub, &format!("{name}-{}", sub.get_name()), pages);
    }
}

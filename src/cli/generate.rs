//! `envforge generate`.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand};
use clap_complete::Shell;

use crate::model::request::Generate;

const COMPLETION_EXAMPLES: &str = "\
Examples:
  envforge generate completions bash > ~/.local/share/bash-completion/completions/envforge";

const SCHEMA_EXAMPLES: &str = "\
Examples:
  envforge generate schema > envforge.schema.json    add `#:schema ./envforge.schema.json` as the first line of envforge.toml";

const MAN_EXAMPLES: &str = "\
Examples:
  envforge generate man ~/.local/share/man/man1";

/// Generated files.
#[derive(Debug, Clone, Subcommand)]
pub enum GenerateCommand {
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Print the JSON schema of envforge.toml.
    Schema(SchemaArgs),
    /// Write manual pages, one per command.
    Man(ManArgs),
    /// Print every compatibility rule with an example.
    Rules,
    /// Print the support table of the matrix.
    Support,
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
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut cli, "envforge", &mut script);
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
        GenerateCommand::Rules => Generate::Rules,
        GenerateCommand::Support => Generate::Support,
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

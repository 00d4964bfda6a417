//! `generate`: completions and manual pages from the argument parser, rules and support table from the matrix.
#![expect(clippy::disallowed_methods, reason = "writes the pages")]

use clap::CommandFactory;

use super::{CommandError, Exit};
use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::compat::Matrix;
use crate::report::Printer;
use crate::resolve::{rules_text, support_text};

pub(super) fn completions(args: &CompletionsArgs) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "envforge", &mut script);
    Printer.bytes(&script);
    Exit::Done
}

pub(super) fn rules() -> Exit {
    Printer.text(&rules_text(Matrix::current()));
    Exit::Done
}

pub(super) fn support() -> Exit {
    Printer.text(&support_text(Matrix::current()));
    Exit::Done
}

pub(super) fn man(args: &ManArgs) -> Result<Exit, CommandError> {
    fs_err::create_dir_all(&args.dir)?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    write_pages(&command, "envforge", args)?;
    Ok(Exit::Done)
}

fn write_pages(command: &clap::Command, name: &str, args: &ManArgs) -> Result<(), CommandError> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone().name(leaked(name))).render(&mut page)?;
    let path = args.dir.join(format!("{name}.1"));
    fs_err::write(&path, page)?;
    Printer.text(path.as_str());
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        write_pages(sub, &format!("{name}-{}", sub.get_name()), args)?;
    }
    Ok(())
}

/// clap keeps command names for the life of the program.
fn leaked(name: &str) -> &'static str {
    Box::leak(name.to_owned().into_boxed_str())
}

/// The JSON schema of the project file, on stdout.
pub(super) fn schema() -> Exit {
    Printer.json(&crate::project::json_schema());
    Exit::Done
}

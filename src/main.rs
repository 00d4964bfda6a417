//! The `envforge` program: parse, run, exit code; nothing else.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use envforge::cli::Cli;

fn main() -> ExitCode {
    let Cli { global, command } = Cli::parse();
    envforge::commands::run(&global.into(), command.into(), std::io::stderr().is_terminal())
}

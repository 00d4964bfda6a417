//! The `envforge` program: parse, run, exit code; nothing else.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use envforge::cli::Cli;

fn main() -> ExitCode {
    envforge::commands::run(Cli::parse(), std::io::stderr().is_terminal())
}

//! The maintainers' program: `cargo run --features maintain --bin maintain -- --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    envforge::maintain::run(std::env::args_os())
}

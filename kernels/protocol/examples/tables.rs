//! Prints the tables of symbols of libraries: `tables SITE LIBRARY...`. Paths below `SITE` are written relative to it.
#![expect(clippy::disallowed_methods, reason = "reads libraries")]

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use envforge_protocol::abi::Table;
use envforge_protocol::elf;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let site = arguments.next().unwrap_or_default();
    let mut text = String::new();
    for library in arguments {
        let path = Path::new(&library);
        let shown = path.strip_prefix(&site).unwrap_or(path).display().to_string();
        let Ok(file) = File::open(path) else { return ExitCode::FAILURE };
        match elf::object(&file) {
            Ok(object) => Table::new(shown, object).write(&mut text),
            Err(error) => drop(writeln!(std::io::stderr(), "{shown}: {error}")),
        }
    }
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

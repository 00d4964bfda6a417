//! `generate`: completions and manual pages of the argument parser, and the schema.
#![expect(clippy::disallowed_methods, reason = "writes the pages")]

mod candidates;

use crate::failure::Exit;
use crate::model::request::Generate;
use crate::report::Printer;
use crate::settings::Settings;
use crate::workflow::error::CommandError;

pub(super) async fn generate(request: &Generate, settings: &Settings) -> Result<Exit, CommandError> {
    match request {
        Generate::Completions(script) => Printer.bytes(script),
        Generate::Man(pages, dir) => {
            fs_err::create_dir_all(dir)?;
            for (name, page) in pages {
                let path = dir.join(name);
                fs_err::write(&path, page)?;
                Printer.text(path.as_str());
            }
        }
        Generate::Candidates(kinds, prefix) => candidates::print(kinds, prefix, settings).await,
        Generate::Schema => Printer.json(&crate::model::project::json_schema()),
    }
    Ok(Exit::Done)
}

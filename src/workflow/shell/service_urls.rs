//! The addresses of a container's services: printed, and opened with `--open`.

use serde::Serialize;

use crate::host::{open_page, open_program};
use crate::model::request::ServiceOptions;
use crate::model::verdict::Proven;
use crate::report::{Event, Printer};
use crate::settings::Settings;
use crate::workflow::session::Session;

/// What can be opened, for people and programs.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ServiceUrls {
    pub(super) schema: u32,
    pub(crate) name: String,
    pub(super) jupyter: Option<String>,
    pub(super) ssh: Option<String>,
    pub(super) vscode: Option<String>,
    /// What is proven of the container's image; `None`: the engine no longer has it.
    #[serde(flatten)]
    pub(super) proven: Option<Proven>,
}

impl ServiceUrls {
    /// Prints it: one line each, or JSON.
    pub(crate) fn print(&self, settings: &Settings) {
        if settings.output.json {
            return Printer.json(self);
        }
        let lines: Vec<_> = [&self.jupyter, &self.ssh, &self.vscode].into_iter().flatten().collect();
        if lines.is_empty() {
            Printer.text(&self.name);
        }
        for line in lines {
            Printer.text(line);
        }
    }

    /// Opens what `--open` asks for.
    pub(super) fn open(&self, session: &Session<'_>, args: &ServiceOptions) {
        if !args.open {
            return;
        }
        let page = self.jupyter.as_deref().map_or(Ok(()), open_page);
        let opened = page.and_then(|()| self.vscode.as_deref().map_or(Ok(()), open_program));
        if let Err(error) = opened {
            let text = format!("cannot open the URL: {error}");
            session.reporter.report(Event::Warning { text });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ServiceUrls;
    use crate::model::markdown::{documented_fields, printed_fields};
    use crate::model::verdict::standing::ImageReports;

    #[test]
    fn every_field_is_documented() {
        let documented = documented_fields("envforge shell pytorch-cuda:2.8-cu128 --jupyter");
        let proven = Some(ImageReports::default().proven(None));
        assert_eq!(printed_fields(&ServiceUrls { proven, ..ServiceUrls::default() }), documented);
    }
}

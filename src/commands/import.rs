//! `import`: an OCI image layout into the engine, under a tag that claims nothing.

use serde::Serialize;

use crate::commands::push::unverified;
use crate::failure::Exit;
use crate::model::counted::counted;
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::model::request;
use crate::report::{Event, Printer};
use crate::settings::Settings;
use crate::workflow::error::CommandError;
use crate::workflow::import_layout::{Imported, import_layout};
use crate::workflow::session::LazySession;

/// What `import --json` prints.
#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    image: &'a str,
    tag: &'a str,
    digest: &'a Digest,
    /// Documents of evidence that are kept; null without --evidence.
    evidence: Option<usize>,
}

pub(super) async fn import(args: &request::Import, settings: &Settings) -> Result<Exit, CommandError> {
    let typed: ImageRef = args.tag.parse()?;
    let tagged = if typed.tag().is_some() { typed } else { format!("{}:latest", args.tag).parse()? };
    let tag = unverified(&tagged)?;
    let lazy = LazySession::of(settings);
    let session = lazy.session().await?;
    let path = settings.paths.current_dir.join(&args.path);
    let imported = import_layout(session, (&path, args.evidence), &tag).await?;
    let Imported { image, digest, statements } = imported;
    let tag = tag.to_string();
    if settings.output.json {
        Printer.json(&Report {
            schema: 1,
            image: &image.id,
            tag: &tag,
            digest: &digest,
            evidence: args.evidence.then_some(statements),
        });
    } else {
        Printer.text(&tag);
        let count = counted(statements, "statement");
        let text = match (args.evidence, statements) {
            (true, 0) => Some("the layout carries no evidence of the image".to_owned()),
            (true, _) => Some(format!("evidence kept: {count} about {digest}")),
            (false, 0) => None,
            (false, _) => Some(format!("the layout carries evidence ({count}), which `--evidence` keeps")),
        };
        if let Some(text) = text {
            session.reporter.report(Event::Note { text });
        }
        session.reporter.report(Event::Note { text: format!("next: envforge verify {tag}") });
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::Report;
    use crate::model::image_digest::Digest;
    use crate::model::markdown::{documented_fields, printed_fields};

    #[test]
    fn every_field_is_documented() {
        let digest = Digest::of(b"");
        let report = Report {
            schema: 1,
            image: "sha256:1",
            tag: "torch:2.8-unverified",
            digest: &digest,
            evidence: None,
        };
        assert_eq!(printed_fields(&report), documented_fields("envforge import image.tar torch:2.8"));
    }
}

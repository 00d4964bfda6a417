//! `export oci`: an assembled image as an OCI image layout.

use serde::Serialize;

use crate::failure::Exit;
use crate::model::counted::counted;
use crate::model::image_digest::Digest;
use crate::model::request;
use crate::report::{Event, Printer};
use crate::settings::Settings;
use crate::workflow::error::CommandError;
use crate::workflow::export_layout::export_layout;
use crate::workflow::image_error::ImageError;
use crate::workflow::image_info::described;
use crate::workflow::session::LazySession;

/// What `export oci --json` prints.
#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    image: &'a str,
    path: &'a str,
    digest: &'a Digest,
    size: u64,
    /// Documents of evidence in it; null without --evidence.
    evidence: Option<usize>,
}

pub(super) async fn export_oci(args: &request::ExportOci, settings: &Settings) -> Result<Exit, CommandError> {
    let lazy = LazySession::of(settings);
    let session = lazy.session().await?;
    let found = described(session, args.image.as_deref(), &args.project).await?;
    let unbuilt = || ImageError::SpecNotBuilt { spec: found.name.clone() };
    let image = found.image.as_ref().ok_or_else(unbuilt)?;
    let machine = found.lock.as_ref().map_or(session.engine.info().machine, |lock| lock.stack.machine);
    let target = settings.paths.current_dir.join(&args.target);
    let name = image.tags.iter().find(|tag| **tag == found.name).or_else(|| image.tags.first());
    let name = name.map_or(found.name.as_str(), String::as_str);
    let written = export_layout(session, (image, name), (machine, args.evidence), &target).await?;
    if settings.output.json {
        let (path, digest, size) = (target.as_str(), &written.digest, written.size);
        Printer.json(&Report {
            schema: 1,
            image: &image.id,
            path,
            digest,
            size,
            evidence: written.statements,
        });
    } else {
        Printer.text(target.as_str());
        if let Some(count) = written.statements {
            let text = match count {
                0 => format!("no evidence of {} is known here", written.digest),
                count => format!("with evidence: {} about {}", counted(count, "statement"), written.digest),
            };
            session.reporter.report(Event::Note { text });
        }
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
        let report =
            Report { schema: 1, image: "sha256:1", path: "/image", digest: &digest, size: 1, evidence: None };
        assert_eq!(
            printed_fields(&report),
            documented_fields("envforge export oci pytorch-cuda:2.8-cu128 image.tar")
        );
    }
}

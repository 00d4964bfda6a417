//! `export squashfs` and `export sif`: an assembled image as a file that a cluster starts.

use serde::Serialize;

use crate::failure::Exit;
use crate::model::request::{self, FileKind};
use crate::report::Printer;
use crate::settings::Settings;
use crate::workflow::error::CommandError;
use crate::workflow::export_file::{ImageFile, write_file};
use crate::workflow::image_error::ImageError;
use crate::workflow::image_info::described;
use crate::workflow::session::Session;

/// What `export squashfs --json` and `export sif --json` print.
#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    image: &'a str,
    path: &'a str,
    size: u64,
    compression: String,
}

pub(super) async fn export_file(
    kind: FileKind,
    args: &request::ExportFile,
    settings: &Settings,
) -> Result<Exit, CommandError> {
    let session = &Session::open(settings, None).await?;
    let found = described(session, args.image.as_deref(), &args.project).await?;
    let unbuilt = || ImageError::SpecNotBuilt { spec: found.name.clone() };
    let image = found.image.as_ref().ok_or_else(unbuilt)?;
    let machine = found.lock.as_ref().map_or(session.engine.info().machine, |lock| lock.stack.machine);
    let target = settings.paths.current_dir.join(&args.target);
    let (compression, force) = (args.compression, args.force);
    let file = ImageFile { kind, image: &image.id, name: &found.name, machine, compression, force };
    let size = write_file(session, file, &target).await?;
    if settings.output.json {
        let (path, compression) = (target.as_str(), compression.to_string());
        Printer.json(&Report { schema: 1, image: &image.id, path, size, compression });
    } else {
        Printer.text(target.as_str());
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::Report;
    use crate::model::markdown::{documented_fields, printed_fields};

    #[test]
    fn every_field_is_documented() {
        let compression = "zstd:1".to_owned();
        let report = Report { schema: 1, image: "sha256:1", path: "/torch.sqsh", size: 1, compression };
        let documented = documented_fields("envforge export squashfs pytorch-cuda:2.8-cu128 torch.sqsh");
        assert_eq!(printed_fields(&report), documented);
    }
}

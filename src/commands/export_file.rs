//! `export squashfs` and `export sif`: an assembled image as a file that a cluster starts.

use std::sync::Arc;

use serde::Serialize;

use crate::failure::{Exit, Failure};
use crate::model::lock::Lock;
use crate::model::request::{self, FileKind};
use crate::model::versions::Machine;
use crate::report::{Event, Printer, Reporter, reporter};
use crate::settings::Settings;
use crate::store::Store;
use crate::workflow::assemble::Recipe;
use crate::workflow::error::CommandError;
use crate::workflow::export_file::{ImageFile, check_target, recipe_of_image, recipe_of_lock, write_file};
use crate::workflow::image_error::ImageError;
use crate::workflow::image_info::{NamedImage, described, lock_at_hand};
use crate::workflow::image_parts::bring_base;
use crate::workflow::proven::reports_of;
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
    if args.target == "-" || args.target.as_str().ends_with('/') {
        return Err(FileNameError.into());
    }
    let target = settings.paths.current_dir.join(&args.target);
    check_target(&target, args.force)?;
    let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
    let reporter = reporter(settings.output);
    let Found { image, machine, recipe, lock } = found(args, settings, (&store, &reporter)).await?;
    let (compression, force) = (args.compression, args.force);
    let file = ImageFile { kind, machine, compression, force };
    let size = write_file((&store, &reporter), recipe, file, &target).await?;
    if settings.output.json {
        let (path, compression) = (target.as_str(), compression.to_string());
        Printer.json(&Report { schema: 1, image: &image, path, size, compression });
    } else {
        Printer.text(target.as_str());
    }
    let proven = reports_of(&store, &*reporter, &image)?.proven(lock.as_ref());
    reporter.report(Event::Note { text: proven.to_string() });
    Ok(Exit::Done)
}

/// The file was to go to standard output, or is a directory.
#[derive(Debug, thiserror::Error)]
#[error("the output must be a file, neither standard output nor a directory: its first bytes are known last")]
struct FileNameError;

impl Failure for FileNameError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec!["name a file: `envforge export sif torch.sif`".to_owned()]
    }
}

/// An image that can be written.
struct Found {
    /// Its id.
    image: String,
    machine: Machine,
    recipe: Recipe,
    lock: Option<Lock>,
}

/// The image of the engine, or the one that was built here from the lock: it needs no engine.
async fn found(
    args: &request::ExportFile,
    settings: &Settings,
    parts: (&Store, &Arc<dyn Reporter>),
) -> Result<Found, CommandError> {
    let session = &match Session::open(settings, None).await {
        Ok(session) => session,
        Err(error) => return at_hand(args, settings, parts, error),
    };
    let named = match described(session, args.image.as_deref(), &args.project).await {
        Err(error) if matches!(error.downcast_ref(), Some(ImageError::SpecNotBuilt { .. })) => Err(error),
        named => Ok(named?),
    };
    let unbuilt = match named {
        Ok(NamedImage { name, image: None, .. }) => ImageError::SpecNotBuilt { spec: name }.into(),
        Err(error) => error,
        Ok(NamedImage { name, image: Some(image), lock }) => {
            let machine = lock.as_ref().map_or(session.engine.info().machine, |lock| lock.stack.machine);
            let recipe = recipe_of_image(session, &image.id, &name).await?;
            return Ok(Found { image: image.id, machine, recipe, lock });
        }
    };
    let found = at_hand(args, settings, parts, unbuilt)?;
    bring_base(session, &found.recipe).await?;
    Ok(found)
}

/// The image that was built here from the lock of what was named; `error` if there is none.
fn at_hand(
    args: &request::ExportFile,
    settings: &Settings,
    parts: (&Store, &Arc<dyn Reporter>),
    error: CommandError,
) -> Result<Found, CommandError> {
    let name = args.image.as_deref();
    let is_file = name.is_none_or(|name| settings.paths.current_dir.join(name).exists());
    let lock = match lock_at_hand(settings, name, &args.project) {
        // A name that is no spec names an image of the engine.
        Err(_) if !is_file => None,
        lock => lock?,
    };
    let Some(lock) = lock else { return Err(error) };
    let (image, recipe) = recipe_of_lock(parts, &lock)?.ok_or(error)?;
    Ok(Found { image, machine: lock.stack.machine, recipe, lock: Some(lock) })
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

//! `export squashfs` and `export sif`: an assembled image as a file that a cluster starts.

use serde::Serialize;

use crate::failure::{Exit, Failure};
use crate::model::request::{self, FileKind};
use crate::model::versions::Machine;
use crate::report::{Printer, reporter};
use crate::settings::Settings;
use crate::store::Store;
use crate::workflow::assemble::Recipe;
use crate::workflow::error::CommandError;
use crate::workflow::export_file::{ImageFile, check_target, recipe_of_image, recipe_of_lock, write_file};
use crate::workflow::image_error::ImageError;
use crate::workflow::image_info::{described, lock_at_hand};
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
    if args.target == "-" {
        return Err(FileNameError.into());
    }
    let target = settings.paths.current_dir.join(&args.target);
    check_target(&target, args.force)?;
    let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
    let Found { image, machine, recipe } = found(args, settings, &store).await?;
    let (compression, force) = (args.compression, args.force);
    let file = ImageFile { kind, machine, compression, force };
    let size = write_file((&store, &reporter(settings.output)), recipe, file, &target).await?;
    if settings.output.json {
        let (path, compression) = (target.as_str(), compression.to_string());
        Printer.json(&Report { schema: 1, image: &image, path, size, compression });
    } else {
        Printer.text(target.as_str());
    }
    Ok(Exit::Done)
}

/// The file was to go to standard output.
#[derive(Debug, thiserror::Error)]
#[error("a squashfs cannot be written to standard output: its first bytes are known last")]
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
}

/// The image of the engine, or the one that was built here from the lock: it needs no engine.
async fn found(
    args: &request::ExportFile,
    settings: &Settings,
    store: &Store,
) -> Result<Found, CommandError> {
    let at_hand = |error: CommandError| {
        let lock = lock_at_hand(settings, args.image.as_deref(), &args.project).ok().flatten();
        let Some(lock) = lock else { return Err(error) };
        let (image, recipe) = recipe_of_lock(store, &lock)?.ok_or(error)?;
        Ok(Found { image, machine: lock.stack.machine, recipe })
    };
    let session = &match Session::open(settings, None).await {
        Ok(session) => session,
        Err(error) => return at_hand(error),
    };
    let named = match described(session, args.image.as_deref(), &args.project).await {
        Err(error) if matches!(error.downcast_ref(), Some(ImageError::SpecNotBuilt { .. })) => {
            return at_hand(error);
        }
        named => named?,
    };
    let Some(image) = named.image else {
        return at_hand(ImageError::SpecNotBuilt { spec: named.name }.into());
    };
    let machine = named.lock.map_or(session.engine.info().machine, |lock| lock.stack.machine);
    let recipe = recipe_of_image(session, &image.id, &named.name).await?;
    Ok(Found { image: image.id, machine, recipe })
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

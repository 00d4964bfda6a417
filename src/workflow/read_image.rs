//! An image that people bring, read by its files: from an archive, an image layout or the engine. Nothing of it is run.

use std::fs::File;

use camino::Utf8Path;

use crate::archive::image_names::{names_in_layout, names_in_saved};
use crate::archive::saved_layers::SavedImageError;
use crate::failure::{Exit, Failure};
use crate::model::migrate::{Reading, from_image};
use crate::workflow::assemble::blocking;
use crate::workflow::error::CommandError;
use crate::workflow::read_folder::Surroundings;
use crate::workflow::session::Session;

/// Reads an OCI image layout.
pub(crate) fn read_layout(path: &Utf8Path, around: Surroundings<'_>) -> Result<Reading, CommandError> {
    let content = names_in_layout(path)?;
    Ok(from_image(path.file_name().unwrap_or_default(), &content, around.matrix))
}

/// Reads a tar: what `docker save` writes, or an image layout.
pub(crate) fn read_archive(path: &Utf8Path, around: Surroundings<'_>) -> Result<Reading, CommandError> {
    match names_in_saved(open(path)?) {
        Ok(content) => Ok(from_image(path.file_name().unwrap_or_default(), &content, around.matrix)),
        // Without its list it may be a layout.
        Err(SavedImageError::Archive(_)) => read_layout(path, around),
        Err(cause) => Err(UnreadableImage { image: path.to_string(), cause }.into()),
    }
}

/// Reads an image that the engine has.
pub(crate) async fn read_image(
    session: &Session<'_>,
    name: &str,
    around: Surroundings<'_>,
) -> Result<Reading, CommandError> {
    let saved = session.store.temp_file()?;
    let path = Utf8Path::from_path(saved.path()).expect("the cache's path is UTF-8");
    session.engine.save(name, path.to_owned()).await?;
    let file = open(path)?;
    let content = blocking(move || names_in_saved(file)).await?;
    let content = content.map_err(|cause| UnreadableImage { image: name.to_owned(), cause })?;
    Ok(from_image(name, &content, around.matrix))
}

#[expect(clippy::disallowed_methods, reason = "reads the archive that was named, or that the engine wrote")]
fn open(path: &Utf8Path) -> std::io::Result<File> {
    Ok(fs_err::File::open(path)?.into_file())
}

/// An archive that has no image, or that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read image `{image}`")]
struct UnreadableImage {
    image: String,
    #[source]
    cause: SavedImageError,
}

impl Failure for UnreadableImage {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec![
            "write it again: `docker save IMAGE -o FILE.tar`, then `envforge init --from FILE.tar`"
                .to_owned(),
        ]
    }
}

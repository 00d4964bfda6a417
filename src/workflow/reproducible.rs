//! `--bit-identical`: the built image goes out of the engine, is written anew without its times, and comes back.
#![expect(clippy::disallowed_methods, reason = "opens the archive it made")]

use std::sync::Arc;

use crate::archive::normalize_image::{FixError, normalize_image};
use crate::base::Base;
use crate::engine::{EngineError, ImageInfo};
use crate::report::Event;
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;

/// The image under `tag`, replaced by the one that every build of this content gives; the tag moves to it.
pub(crate) async fn fixed(
    session: &Session<'_>,
    base: &Base,
    image: ImageInfo,
    tag: &str,
) -> Result<ImageInfo, CommandError> {
    let (saved, fixed) = (session.store.temp_file()?, session.store.temp_file()?);
    session.engine.save(tag, path(&saved)?).await?;
    let layers = session.engine.image(&base.reference).await?.map(|base| base.layers).unwrap_or_default();
    let (archive, out) = (fs_err::File::open(saved.path())?.into_file(), fixed.reopen()?);
    let (name, folder) = (tag.to_owned(), session.store.cache_dir().to_owned());
    let written = tokio::task::spawn_blocking(move || {
        normalize_image(archive, std::io::BufWriter::new(out), &name, &layers, || {
            tempfile::tempfile_in(&folder)
        })
    });
    let wanted = match written.await {
        Ok(written) => written?,
        Err(error) => return Err(FixError::from(std::io::Error::other(error)).into()),
    };
    drop(saved);
    session.engine.load(path(&fixed)?, Arc::clone(&session.reporter)).await?;
    let loaded = session
        .engine
        .image(tag)
        .await?
        .ok_or_else(|| EngineError::NoSuchImage { reference: tag.to_owned() })?;
    if loaded.id != wanted {
        let text = format!(
            "the engine changed the image digest on load ({} instead of {wanted}): the content is reproducible, the image \
             digest may not be",
            loaded.id
        );
        session.reporter.report(Event::Warning { text });
    }
    if loaded.id != image.id && session.engine.image(&image.id).await?.is_some_and(|old| old.tags.is_empty())
    {
        session.engine.remove_image(&image.id).await?;
    }
    Ok(loaded)
}

fn path(file: &tempfile::NamedTempFile) -> Result<camino::Utf8PathBuf, CommandError> {
    let path = camino::Utf8Path::from_path(file.path());
    path.map(camino::Utf8Path::to_owned)
        .ok_or_else(|| FixError::Archive("cache directory is not UTF-8".into()).into())
}

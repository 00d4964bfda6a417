//! Writes the engine's stream of an archive to a file: the file system of a container, or an image.
//!
//! The file gets its name only when it is complete.

use bytes::Bytes;
use camino::Utf8Path;
use futures_util::{Stream, StreamExt};
use tokio::io::AsyncWriteExt;

use crate::engine::error::EngineError;
use crate::engine::transport::daemon::Daemon;
use crate::host::process_owner::unique_name;

/// Writes `parts` to `archive`.
pub(in crate::engine) async fn write_archive(
    daemon: &Daemon,
    archive: &Utf8Path,
    during: &str,
    parts: impl Stream<Item = Result<Bytes, bollard::errors::Error>>,
) -> Result<(), EngineError> {
    let folder = archive.parent().filter(|folder| !folder.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    // The guard removes the file unless it is persisted at the end.
    let partial = tempfile::Builder::new()
        .prefix(&format!("envforge-{}", unique_name()))
        .suffix(".partial")
        .rand_bytes(0)
        .tempfile_in(folder)?;
    let mut file = tokio::io::BufWriter::new(tokio::fs::File::from_std(partial.reopen()?));
    let mut parts = std::pin::pin!(parts);
    while let Some(part) = parts.next().await {
        let part = part.map_err(|error| daemon.fault(during, error))?;
        file.write_all(&part).await?;
    }
    file.flush().await?;
    partial.persist(archive).map_err(|error| error.error)?;
    Ok(())
}

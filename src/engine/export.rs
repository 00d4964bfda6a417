//! Writes to a file what the engine streams: the whole file system of a finished container, or an image.
//!
//! The file appears under its name only when it is whole.

use bytes::Bytes;
use camino::Utf8Path;
use futures_util::{Stream, StreamExt};
use tokio::io::AsyncWriteExt;

use super::connect::Daemon;
use super::container::Container;
use super::{EngineError, RunOutcome, RunRequest};
use crate::owner::own_name;
use crate::report::Reporter;

impl Daemon {
    /// Runs a container to its end, exports it if it ended with 0, and removes it.
    pub(super) async fn run_and_export(
        &self,
        request: &RunRequest,
        archive: &Utf8Path,
        reporter: &dyn Reporter,
    ) -> Result<RunOutcome, EngineError> {
        let container = Container::create(self, request).await?;
        let outcome = self.run_in(&container, request, reporter).await?;
        if outcome.code == 0 {
            self.export(&container, archive).await?;
        }
        container.remove().await?;
        Ok(outcome)
    }

    async fn export(&self, container: &Container, archive: &Utf8Path) -> Result<(), EngineError> {
        let parts = self.client.export_container(&container.name);
        self.write(archive, "exporting a container", parts).await
    }

    /// Writes an image with its layers to a file.
    pub(super) async fn save(&self, image: &str, archive: &Utf8Path) -> Result<(), EngineError> {
        self.write(archive, &format!("exporting image `{image}`"), self.client.export_image(image)).await
    }

    async fn write(
        &self,
        archive: &Utf8Path,
        during: &str,
        parts: impl Stream<Item = Result<Bytes, bollard::errors::Error>>,
    ) -> Result<(), EngineError> {
        let folder =
            archive.parent().filter(|folder| !folder.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
        // Removed with its guard unless it is kept at the end.
        let partial = tempfile::Builder::new()
            .prefix(&format!("envforge-{}", own_name()))
            .suffix(".partial")
            .rand_bytes(0)
            .tempfile_in(folder)?;
        let mut file = tokio::io::BufWriter::new(tokio::fs::File::from_std(partial.reopen()?));
        let mut parts = std::pin::pin!(parts);
        while let Some(part) = parts.next().await {
            let part = part.map_err(|error| self.fault(during, error))?;
            file.write_all(&part).await?;
        }
        file.flush().await?;
        partial.persist(archive).map_err(|error| error.error)?;
        Ok(())
    }
}

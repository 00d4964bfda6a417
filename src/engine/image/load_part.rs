//! One request of a load: layers on top of those that the engine has.

use std::io::Write;

use bollard::query_parameters::ImportImageOptions;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tokio::sync::{mpsc, oneshot};

use super::layered::ImageLayer;
use super::load_archive::{write_end, write_layers};
use crate::engine::docker::Docker;
use crate::engine::error::EngineError;

/// Bytes of a piece of a request, and pieces that may wait for the connection.
const PIECE: usize = 256 << 10;
const WAITING: usize = 8;
const DURING: &str = "loading an image";

/// One request: the layers from `start` on of an image.
pub(super) struct Part {
    pub(super) layers: Vec<ImageLayer>,
    pub(super) start: usize,
    pub(super) config: Bytes,
    pub(super) tag: String,
    /// Says that the layers below are applied.
    pub(super) parent: Option<oneshot::Receiver<()>>,
}

impl Part {
    /// Sends the part; `sent` is told when its layers are on their way.
    pub(super) async fn load(self, docker: &Docker, sent: oneshot::Sender<()>) -> Result<(), EngineError> {
        let (pieces, waiting) = mpsc::channel::<Bytes>(WAITING);
        let writer = tokio::task::spawn_blocking(move || self.write(PieceWriter::new(pieces), sent));
        let body = stream::unfold(waiting, |mut waiting| async move {
            waiting.recv().await.map(|piece| (Ok::<_, std::io::Error>(piece), waiting))
        });
        let body = bollard::body_try_stream(body);
        let messages = docker.daemon.client.import_image(ImportImageOptions::default(), body, None);
        let mut messages = std::pin::pin!(messages);
        let mut result = Ok(());
        while let Some(message) = messages.next().await {
            if let Err(error) = message {
                result = Err(docker.daemon.fault(DURING, error));
                break;
            }
        }
        // What could not be written is the cause of what the engine then says.
        match writer.await {
            Ok(Err(error)) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(EngineError::File(error)),
            Err(error) => Err(EngineError::File(std::io::Error::other(error))),
            _ => result,
        }
    }

    fn write(self, out: PieceWriter, sent: oneshot::Sender<()>) -> std::io::Result<()> {
        let mut tar = tar::Builder::new(out);
        write_layers(&mut tar, &self.layers[self.start..])?;
        tar.get_mut().flush()?;
        // A receiver that has gone is a load that was given up.
        let _ = sent.send(());
        if let Some(parent) = self.parent {
            parent.blocking_recv().map_err(|_| std::io::Error::from(std::io::ErrorKind::BrokenPipe))?;
        }
        write_end(tar, &self.config, &self.layers, &self.tag)
    }
}

/// A writer into the pieces of a request. A request that ended is a broken pipe.
struct PieceWriter {
    piece: Vec<u8>,
    pieces: mpsc::Sender<Bytes>,
}

impl PieceWriter {
    fn new(pieces: mpsc::Sender<Bytes>) -> Self {
        Self { piece: Vec::with_capacity(PIECE), pieces }
    }
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = bytes.len().min(PIECE - self.piece.len());
        self.piece.extend_from_slice(&bytes[..count]);
        if self.piece.len() == PIECE {
            self.flush()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        let sent = self.pieces.blocking_send(Bytes::from(piece));
        sent.map_err(|_| std::io::Error::from(std::io::ErrorKind::BrokenPipe))
    }
}

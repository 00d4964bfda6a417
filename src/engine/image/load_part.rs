//! One request of a load: layers on top of those that the engine has.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use tokio::sync::{mpsc, oneshot};

use super::delivered::{Delivered, PartBytes};
use super::in_flight::Sending;
use super::layered::ImageLayer;
use super::load_archive::{write_end, write_layers};
use super::progress::{ByteCount, ProgressStep};
use crate::engine::docker::Docker;
use crate::engine::error::EngineError;
use crate::model::counted::counted;

/// Bytes of a piece of a request, and pieces that may wait for the connection.
const PIECE: usize = 256 << 10;
const WAITING: usize = 8;

/// One request: the layers from `start` on of an image.
pub(super) struct Part {
    pub(super) layers: Vec<ImageLayer>,
    pub(super) start: usize,
    pub(super) config: Bytes,
    pub(super) tag: String,
    /// Says that the layers below are applied.
    pub(super) parent: Option<oneshot::Receiver<()>>,
    /// Where its progress goes.
    pub(super) delivered: Arc<Delivered>,
}

impl Part {
    /// Sends the part, as a step of its own if it has layers; `sent` is signalled after them, before the configuration.
    pub(super) async fn load(
        self,
        docker: &Docker,
        sent: oneshot::Sender<()>,
        sending: Sending,
    ) -> Result<(), EngineError> {
        let delivered = Arc::clone(&self.delivered);
        let layers = &self.layers[self.start..];
        let (Some(text), count) = (step_text(layers), layers.len()) else {
            return self.send(docker, sent, sending).await;
        };
        let step = ProgressStep::begin(delivered.reporter.as_ref(), self.tag.clone(), text);
        step.end(self.send(docker, sent, sending).await)?;
        delivered.applied(count);
        Ok(())
    }

    async fn send(
        self,
        docker: &Docker,
        sent: oneshot::Sender<()>,
        sending: Sending,
    ) -> Result<(), EngineError> {
        let (pieces, waiting) = mpsc::channel::<Bytes>(WAITING);
        let layers = &self.layers[self.start..];
        let total = layers.iter().map(|layer| layer.blob().size).sum();
        let progress = ByteCount::new(self.tag.clone(), total, Arc::clone(&self.delivered.reporter));
        let of_image = PartBytes::new(Arc::clone(&self.delivered), layers);
        let writer = PieceWriter { piece: Vec::with_capacity(PIECE), pieces, progress, of_image };
        let writer = tokio::task::spawn_blocking(move || self.write(writer, sent));
        let body = stream::unfold((waiting, sending), |(mut waiting, sending)| async move {
            let next = match waiting.recv().await {
                Some(piece) if !sending.is_given_up() => Ok(piece),
                None if sending.end() => return None,
                _ => Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe)),
            };
            Some((next, (waiting, sending)))
        });
        let body = bollard::body_try_stream(body);
        let result = docker.daemon.load(body).await;
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

/// `torch 2.8.0`, or `torch 2.8.0 and 2 more layers`; `None` without a layer.
fn step_text(layers: &[ImageLayer]) -> Option<String> {
    let (first, rest) = layers.split_first()?;
    Some(match rest.len() {
        0 => first.title.clone(),
        more => format!("{} and {}", first.title, counted(more, "more layer")),
    })
}

/// A writer into the pieces of a request. A request that ended is a broken pipe.
struct PieceWriter {
    piece: Vec<u8>,
    pieces: mpsc::Sender<Bytes>,
    progress: ByteCount,
    /// The same bytes as part of the whole image.
    of_image: PartBytes,
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
        self.progress.add(piece.len() as u64);
        self.of_image.add(piece.len() as u64);
        let sent = self.pieces.blocking_send(Bytes::from(piece));
        sent.map_err(|_| std::io::Error::from(std::io::ErrorKind::BrokenPipe))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_names_its_first_layer() {
        let layer = |title: &str| ImageLayer {
            title: title.to_owned(),
            diff_id: "sha256:0".to_owned(),
            size: 0,
            content: None,
            packed: None,
        };
        let layers = [layer("torch 2.8.0"), layer("97 wheels"), layer("files")];
        assert_eq!(step_text(&layers).as_deref(), Some("torch 2.8.0 and 2 more layers"));
        assert_eq!(step_text(&layers[..2]).as_deref(), Some("torch 2.8.0 and 1 more layer"));
        assert_eq!(step_text(&layers[..1]).as_deref(), Some("torch 2.8.0"));
        assert_eq!(step_text(&[]), None);
    }
}

//! A blob on its way into a registry: made in pieces while it is sent, never whole in memory.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::fetch::{Piece, Transfer};
use crate::model::image::manifest::BlobDescriptor;
use crate::model::sha256::Sha256Hex;

/// Bytes of a piece, and pieces that may wait for the connection.
const PIECE: usize = 256 << 10;
const WAITING: usize = 8;

/// The bytes of a blob. They are written again where an upload broke off: always the same ones.
pub trait BlobContent: Send + Sync {
    /// Writes all of them.
    fn write_to(&self, out: &mut dyn Write) -> io::Result<()>;
}

impl BlobContent for Bytes {
    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self)
    }
}

/// A blob that a registry is to have.
#[derive(Clone)]
pub struct Blob {
    /// What it holds, for progress.
    pub title: String,
    /// Its descriptor; `None`: its bytes were never made before.
    pub known: Option<BlobDescriptor>,
    /// Its bytes.
    pub content: Arc<dyn BlobContent>,
    /// Repositories of the same registry that may have it.
    pub mount_from: Vec<String>,
}

/// Bytes of an upload that have left, for its progress.
#[derive(Clone)]
pub(super) struct Sent {
    transfer: Transfer,
    bytes: Arc<AtomicU64>,
}

impl Sent {
    pub(super) fn new(transfer: Transfer) -> Self {
        Self { transfer, bytes: Arc::default() }
    }

    /// The bytes from the start of the blob.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.transfer.add(bytes);
    }

    /// What follows `offset` goes once more.
    pub(super) fn restart_at(&self, offset: u64) {
        self.transfer.take_back(self.bytes().saturating_sub(offset));
        self.bytes.store(offset, Ordering::Relaxed);
    }
}

/// Writes a blob into pieces on a thread of its own, without the first `from` bytes. The handle returns the descriptor of
/// the whole blob; a receiver that has gone is a broken pipe.
pub(super) fn pieces_of(
    content: Arc<dyn BlobContent>,
    from: u64,
    sent: Sent,
) -> (mpsc::Receiver<Piece>, JoinHandle<io::Result<BlobDescriptor>>) {
    let (pieces, waiting) = mpsc::channel(WAITING);
    let writer = tokio::task::spawn_blocking(move || {
        let mut out = PieceWriter {
            pieces: pieces.clone(),
            piece: Vec::with_capacity(PIECE),
            skip: from,
            hash: Sha256Hex::default(),
            size: 0,
            sent,
        };
        let written = content.write_to(&mut out).and_then(|()| out.flush());
        match written {
            Ok(()) => {
                let digest = format!("sha256:{}", out.hash.finish());
                let digest = digest.parse().expect("a hash of ours is a digest");
                Ok(BlobDescriptor { digest, size: out.size })
            }
            Err(error) => {
                // The request breaks off: an end would look like the end of the blob.
                let _ = pieces.blocking_send(Err(io::Error::from(error.kind())));
                Err(error)
            }
        }
    });
    (waiting, writer)
}

struct PieceWriter {
    pieces: mpsc::Sender<Piece>,
    piece: Vec<u8>,
    /// Bytes that the registry has.
    skip: u64,
    hash: Sha256Hex,
    size: u64,
    sent: Sent,
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(PIECE)];
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
        self.skip -= skipped as u64;
        self.piece.extend_from_slice(&bytes[skipped..]);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        let count = piece.len() as u64;
        let sent = self.pieces.blocking_send(Ok(Bytes::from(piece)));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        self.sent.add(count);
        Ok(())
    }
}

//! A file on its way to the engine, hashed while it is sent.
//!
//! Its last bytes are sent only if the whole file has the expected SHA-256: an engine never gets a complete file of other content.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use camino::{Utf8Path, Utf8PathBuf};
use futures_util::{Stream, StreamExt as _};
use tokio_util::io::ReaderStream;

use crate::engine::error::EngineError;
use crate::model::sha256::Sha256Hex;

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

/// A file and the hash it must have.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    pub(super) path: Utf8PathBuf,
    pub(super) sha256: String,
}

/// What came of the files of a request. The engine itself only says that the request ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Refusal(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// The first one that had other content, and its hash.
    first: OnceLock<(Expected, String)>,
    /// How many were sent whole.
    whole: AtomicUsize,
}

impl Refusal {
    /// Whether a file was sent whole: an engine may answer before it has read everything.
    pub(super) fn has_whole_file(&self) -> bool {
        self.0.whole.load(Ordering::Relaxed) > 0
    }

    /// Notes the error of opening a file: one that is absent has other content, too.
    pub(super) fn absent(&self, path: &Utf8Path, sha256: &str, error: &std::io::Error) {
        if error.kind() == std::io::ErrorKind::NotFound {
            let expected = Expected { path: path.to_owned(), sha256: sha256.to_owned() };
            let _ = self.0.first.set((expected, "missing".to_owned()));
        }
    }

    /// The error of a request: that of a file of other content, if there was one.
    pub(super) fn or(&self, error: EngineError) -> EngineError {
        match self.0.first.get() {
            Some((Expected { path, sha256 }, found)) => {
                EngineError::OtherContent { path: path.clone(), wanted: sha256.clone(), found: found.clone() }
            }
            None => error,
        }
    }
}

/// Compares a file without sending it.
pub(super) async fn compare(path: &Utf8Path, sha256: &str) -> Result<(), EngineError> {
    let refusal = Refusal::default();
    let file = fs_err::tokio::File::open(path.as_std_path()).await.map_err(|error| {
        refusal.absent(path, sha256, &error);
        refusal.or(error.into())
    })?;
    let comparison = Comparison::new(path, sha256, &refusal);
    let mut pieces = Box::pin(compared(ReaderStream::with_capacity(file, PIECE), comparison));
    while let Some(piece) = pieces.next().await {
        piece.map_err(|error| refusal.or(error.into()))?;
    }
    Ok(())
}

/// Compares pieces of a file with its hash; each is handed out when the next one is there.
#[derive(Debug)]
pub(super) struct Comparison {
    expected: Expected,
    refusal: Refusal,
    hash: Sha256Hex,
    held: Option<Bytes>,
}

impl Comparison {
    pub(super) fn new(path: &Utf8Path, sha256: &str, refusal: &Refusal) -> Self {
        let expected = Expected { path: path.to_owned(), sha256: sha256.to_owned() };
        Self { expected, refusal: refusal.clone(), hash: Sha256Hex::default(), held: None }
    }

    /// Takes a piece and returns the one before it.
    pub(super) fn push(&mut self, piece: Bytes) -> Option<Bytes> {
        self.hash.update(&piece);
        self.held.replace(piece)
    }

    /// Returns the last piece, if the file is the expected one.
    pub(super) fn finish(&mut self) -> std::io::Result<Option<Bytes>> {
        let found = std::mem::take(&mut self.hash).finish();
        if found == self.expected.sha256 {
            self.refusal.0.whole.fetch_add(1, Ordering::Relaxed);
            return Ok(self.held.take());
        }
        let text = format!("`{}` has other content than expected", self.expected.path);
        // Another file may have been first.
        let _ = self.refusal.0.first.set((self.expected.clone(), found));
        Err(std::io::Error::other(text))
    }
}

/// The same for a stream.
pub(super) fn compared(
    pieces: impl Stream<Item = std::io::Result<Bytes>>,
    comparison: Comparison,
) -> impl Stream<Item = std::io::Result<Bytes>> {
    let start = (Box::pin(pieces), Some(comparison));
    futures_util::stream::unfold(start, |(mut pieces, comparison)| async move {
        let mut comparison = comparison?;
        loop {
            match pieces.next().await {
                Some(Ok(piece)) => {
                    if let Some(piece) = comparison.push(piece) {
                        return Some((Ok(piece), (pieces, Some(comparison))));
                    }
                }
                Some(Err(error)) => return Some((Err(error), (pieces, None))),
                None => {
                    let last = comparison.finish().transpose()?;
                    return Some((last, (pieces, None)));
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sha256::sha256_hex;

    /// What is sent of a file in pieces that is known by the hash of a text.
    async fn sent(pieces: &[&'static str], known: &str) -> (Vec<String>, EngineError) {
        let refusal = Refusal::default();
        let comparison = Comparison::new("a/file".into(), &sha256_hex(known.as_bytes()), &refusal);
        let pieces = futures_util::stream::iter(pieces.to_vec()).map(|piece| Ok(Bytes::from(piece)));
        let text = |piece: std::io::Result<Bytes>| match piece {
            Ok(piece) => String::from_utf8(piece.to_vec()).expect("UTF-8"),
            Err(error) => format!("error: {error}"),
        };
        let sent = compared(pieces, comparison).map(text).collect().await;
        (sent, refusal.or(EngineError::Lost { during: "a build".to_owned(), cause: "gone".to_owned() }))
    }

    #[tokio::test]
    async fn expected_file_is_sent_whole() {
        for (pieces, known) in [(&["one", "two"][..], "onetwo"), (&["one"], "one"), (&[], "")] {
            let (sent, error) = sent(pieces, known).await;
            assert_eq!(sent, pieces);
            assert!(matches!(error, EngineError::Lost { .. }), "{error}");
        }
    }

    #[tokio::test]
    async fn last_piece_of_another_file_is_never_sent() {
        let (pieces, error) = sent(&["one", "two"], "onethree").await;
        assert_eq!(pieces, ["one", "error: `a/file` has other content than expected"]);
        let EngineError::OtherContent { path, wanted, found } = error else { panic!("{error}") };
        let hash = |text: &str| sha256_hex(text.as_bytes());
        assert_eq!((path.as_str(), wanted, found), ("a/file", hash("onethree"), hash("onetwo")));
    }

    #[tokio::test]
    async fn file_that_vanished_has_other_content() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = Utf8Path::from_path(folder.path()).expect("UTF-8").join("gone");
        let error = compare(&path, &sha256_hex(b"content")).await.expect_err("it is gone");
        assert!(matches!(&error, EngineError::OtherContent { path: found, .. } if *found == path), "{error}");
    }
}

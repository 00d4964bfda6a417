//! Progress of image transfers as events of the reporter.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use camino::Utf8Path;
use futures_util::{Stream, TryStreamExt};
use tokio_util::io::ReaderStream;

use crate::engine::error::EngineError;
use crate::engine::transport::messages::Progress;
use crate::report::{Event, Reporter};

/// Bytes read at once when an archive is sent.
const CHUNK: usize = 256 * 1024;
/// Bytes between two progress events.
const PROGRESS: u64 = 8 * 1024 * 1024;

/// One step of the report from start to end.
pub(super) struct ProgressStep<'a> {
    reporter: &'a dyn Reporter,
    id: String,
    started: Instant,
}

impl<'a> ProgressStep<'a> {
    #[expect(clippy::disallowed_methods, reason = "measures the daemon's response time")]
    pub(super) fn begin(reporter: &'a dyn Reporter, id: String, text: String) -> Self {
        reporter.report(Event::StepStarted { id: id.clone(), text });
        Self { reporter, id, started: Instant::now() }
    }

    pub(super) fn progress(&self, done: u64, total: Option<u64>) {
        self.reporter.report(Event::StepProgress { id: self.id.clone(), done, total });
    }

    pub(super) fn end<T>(self, result: Result<T, EngineError>) -> Result<T, EngineError> {
        let id = self.id;
        self.reporter.report(match &result {
            Ok(_) => Event::StepFinished { id, cached: false, seconds: self.started.elapsed().as_secs_f64() },
            Err(error) => Event::StepFailed {
                id,
                text: error.to_string().lines().next().unwrap_or_default().to_owned(),
            },
        });
        result
    }
}

/// Opens a file as the body of a request and reports progress under `id`.
pub(super) async fn upload(
    archive: &Utf8Path,
    id: String,
    reporter: Arc<dyn Reporter>,
) -> std::io::Result<impl Stream<Item = std::io::Result<Bytes>> + use<>> {
    let file = fs_err::tokio::File::open(archive.as_std_path()).await?;
    let total = file.metadata().await?.len();
    let mut sent = ByteCount::new(id, total, reporter);
    Ok(ReaderStream::with_capacity(file, CHUNK).inspect_ok(move |chunk| sent.add(chunk.len() as u64)))
}

/// Bytes of a step on their way, reported from time to time.
pub(super) struct ByteCount {
    id: String,
    total: u64,
    done: u64,
    reported: u64,
    reporter: Arc<dyn Reporter>,
}

impl ByteCount {
    pub(super) fn new(id: String, total: u64, reporter: Arc<dyn Reporter>) -> Self {
        Self { id, total, done: 0, reported: 0, reporter }
    }

    /// Adds bytes; what surrounds the content does not count.
    pub(super) fn add(&mut self, bytes: u64) {
        self.done = (self.done + bytes).min(self.total);
        if self.done - self.reported >= PROGRESS || (self.done == self.total && self.reported < self.done) {
            self.reported = self.done;
            let (id, done, total) = (self.id.clone(), self.done, Some(self.total));
            self.reporter.report(Event::StepProgress { id, done, total });
        }
    }
}

/// Layers whose progress is summed: the engine names them.
const MOST_LAYERS: usize = 1000;

/// The sum of the layers of a pull or push.
#[derive(Debug, Default)]
pub(super) struct TransferProgress {
    layers: BTreeMap<String, (u64, u64)>,
}

impl TransferProgress {
    /// Adds one message; returns done and total bytes if they changed.
    pub(super) fn update(&mut self, message: &Progress) -> Option<(u64, u64)> {
        let id = message.id.as_ref()?;
        let size = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        let detail = message.amount.as_ref();
        let layer = match message.status.as_deref()? {
            "Downloading" => {
                let (done, total) = (size(detail?.current)?, size(detail?.total).unwrap_or(0));
                (done, total.max(done))
            }
            // The tar around a layer makes it slightly longer than announced.
            "Pushing" => {
                let total = size(detail?.total).filter(|total| *total > 0)?;
                (size(detail?.current)?.min(total), total)
            }
            "Download complete" | "Pull complete" => {
                let (_, total) = *self.layers.get(id)?;
                (total, total)
            }
            _ => return None,
        };
        if self.layers.len() < MOST_LAYERS || self.layers.contains_key(id) {
            self.layers.insert(id.clone(), layer);
        }
        let sum = |(done, total): (u64, u64), layer: &(u64, u64)| {
            (done.saturating_add(layer.0), total.saturating_add(layer.1))
        };
        Some(self.layers.values().fold((0, 0), sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pull_progress_sums_layers() {
        let mut progress = TransferProgress::default();
        let message = |line: &str| serde_json::from_str::<Progress>(line).expect("a recorded message");
        let mut take = |line| progress.update(&message(line));
        assert_eq!(take(r#"{"status":"Pulling from library/debian","id":"12"}"#), None);
        let first = r#"{"status":"Downloading","progressDetail":{"current":10,"total":100},"id":"aa"}"#;
        assert_eq!(take(first), Some((10, 100)));
        let second = r#"{"status":"Downloading","progressDetail":{"current":5,"total":50},"id":"bb"}"#;
        assert_eq!(take(second), Some((15, 150)));
        assert_eq!(take(r#"{"status":"Download complete","progressDetail":{},"id":"aa"}"#), Some((105, 150)));
        assert_eq!(take(r#"{"status":"Already exists","progressDetail":{},"id":"cc"}"#), None);
    }

    #[test]
    fn push_progress_sums_layers() {
        let mut progress = TransferProgress::default();
        let message = |line: &str| serde_json::from_str::<Progress>(line).expect("a recorded message");
        let mut take = |line| progress.update(&message(line));
        assert_eq!(take(r#"{"status":"Preparing","progressDetail":{},"id":"aa"}"#), None);
        let first = r#"{"status":"Pushing","progressDetail":{"current":10,"total":100},"id":"aa"}"#;
        assert_eq!(take(first), Some((10, 100)));
        let second = r#"{"status":"Pushing","progressDetail":{"current":60,"total":50},"id":"bb"}"#;
        assert_eq!(take(second), Some((60, 150)));
        assert_eq!(take(r#"{"status":"Pushing","progressDetail":{"current":60},"id":"cc"}"#), None);
        assert_eq!(take(r#"{"status":"Layer already exists","progressDetail":{},"id":"dd"}"#), None);
    }

    #[test]
    fn layers_without_end_are_counted_up_to_a_bound() {
        let mut progress = TransferProgress::default();
        for id in 0..2 * MOST_LAYERS {
            let line =
                format!(r#"{{"status":"Pushing","progressDetail":{{"current":1,"total":2}},"id":"{id}"}}"#);
            progress.update(&serde_json::from_str(&line).expect("a message"));
        }
        assert_eq!(progress.layers.len(), MOST_LAYERS);
    }
}

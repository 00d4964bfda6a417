//! How long the engine still takes for the layers of an image, by the deliveries before on this machine.
#![expect(clippy::disallowed_methods, reason = "measures the delivery")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::engine::EngineInfo;
use crate::model::sha256::sha256_hex;
use crate::report::{Event, Reporter};
use crate::store::Store;
use crate::workflow::session::Session;

/// A delivery of fewer bytes says little of the next one.
const LEAST: u64 = 256 << 20;
/// The part of the mean that the newest delivery has.
const NEWEST: f64 = 0.3;
/// A record outside of these is damaged, seconds per GB.
const SPEEDS: std::ops::Range<f64> = 0.01..3600.0;

/// What is remembered of an engine.
#[derive(Serialize, Deserialize)]
struct Record {
    /// The mean of the deliveries, the newest ones most.
    seconds_per_gb: f64,
}

/// A delivery on its way: a reporter that adds the time left.
pub(super) struct Delivery {
    inner: Arc<dyn Reporter>,
    /// Of the deliveries before; `None`: this is the first one.
    seconds_per_gb: Option<f64>,
    sent: AtomicU64,
    began: Instant,
}

impl Delivery {
    /// Begins now.
    pub(super) fn begin(session: &Session<'_>) -> Arc<Self> {
        let past = read(&session.store, session.engine.info());
        Arc::new(Self::new(Arc::clone(&session.reporter), past))
    }

    fn new(inner: Arc<dyn Reporter>, seconds_per_gb: Option<f64>) -> Self {
        Self { inner, seconds_per_gb, sent: AtomicU64::new(0), began: Instant::now() }
    }

    /// Remembers how long it took. Only an estimate is lost with it, so that an error ends nothing.
    pub(super) fn end(&self, session: &Session<'_>) {
        let (sent, seconds) = (self.sent.load(Ordering::Relaxed), self.began.elapsed().as_secs_f64());
        if let Some(seconds_per_gb) = mean(self.seconds_per_gb, sent, seconds) {
            let text = serde_json::to_vec(&Record { seconds_per_gb }).expect("a finite number");
            if let Err(error) = session.store.write_state(&place(session.engine.info()), &text) {
                tracing::debug!(%error, "the time of this delivery is not kept");
            }
        }
    }
}

impl Reporter for Delivery {
    fn report(&self, event: Event) {
        self.inner.report(match event {
            Event::StepParts { id, done, total, done_bytes, total_bytes, .. } => {
                self.sent.store(done_bytes, Ordering::Relaxed);
                let left = total_bytes.saturating_sub(done_bytes);
                let left_s = self.seconds_per_gb.map(|seconds| seconds * gigabytes(left));
                Event::StepParts { id, done, total, done_bytes, total_bytes, left_s }
            }
            event => event,
        });
    }
}

/// The mean with one more delivery; `None`: it says too little.
fn mean(before: Option<f64>, sent: u64, seconds: f64) -> Option<f64> {
    let new = Some(seconds / gigabytes(sent)).filter(|new| sent >= LEAST && SPEEDS.contains(new))?;
    Some(before.map_or(new, |before| before + NEWEST * (new - before)))
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

/// Where the record of an engine is.
fn place(engine: &EngineInfo) -> String {
    let id = engine.id.as_ref().unwrap_or(&engine.name);
    format!("deliveries/{}.json", &sha256_hex(id.as_bytes())[..16])
}

/// The record of an engine; a damaged one is none.
fn read(store: &Store, engine: &EngineInfo) -> Option<f64> {
    let bytes = store.read_state(&place(engine)).ok()??;
    let Record { seconds_per_gb } = serde_json::from_slice(&bytes).ok()?;
    Some(seconds_per_gb).filter(|seconds| SPEEDS.contains(seconds))
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;
    use crate::report::Recorder;

    fn left(past: Option<f64>, done_bytes: u64) -> Option<f64> {
        let seen = Arc::new(Recorder::default());
        let delivery = Delivery::new(Arc::clone(&seen) as Arc<dyn Reporter>, past);
        let (id, left_s) = ("load:a".to_owned(), None);
        let total_bytes = 10_000_000_000;
        delivery.report(Event::StepParts { id, done: 1, total: 2, done_bytes, total_bytes, left_s });
        assert_eq!(delivery.sent.load(Ordering::Relaxed), done_bytes);
        match seen.take().pop() {
            Some(Event::StepParts { left_s, .. }) => left_s,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn time_left_is_known_from_earlier_deliveries_alone() {
        assert_eq!(left(None, 2_000_000_000), None);
        assert_eq!(left(Some(5.0), 2_000_000_000), Some(40.0));
        assert_eq!(left(Some(5.0), 10_000_000_000), Some(0.0));
    }

    #[test]
    fn newest_delivery_moves_the_mean_and_a_small_one_does_not() {
        assert_eq!(mean(None, 2_000_000_000, 10.0), Some(5.0));
        assert_eq!(mean(Some(5.0), 2_000_000_000, 30.0), Some(8.0));
        assert_eq!(mean(Some(5.0), LEAST - 1, 30.0), None);
        assert_eq!(mean(Some(5.0), 0, 30.0), None);
    }

    #[test]
    fn record_is_of_one_engine_and_a_damaged_one_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let engine = EngineInfo { id: Some("a".to_owned()), ..EngineInfo::sample() };
        let other = EngineInfo { id: Some("b".to_owned()), ..EngineInfo::sample() };
        for (text, expected) in [
            (r#"{"seconds_per_gb":5.0}"#, Some(5.0)),
            (r#"{"seconds_per_gb":-5.0}"#, None),
            (r#"{"seconds_per_gb":1e300}"#, None),
            ("{", None),
        ] {
            store.write_state(&place(&engine), text.as_bytes()).expect("written");
            assert_eq!(read(&store, &engine), expected, "{text}");
            assert_eq!(read(&store, &other), None);
        }
    }
}

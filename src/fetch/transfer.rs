//! Counts bytes that move and reports the progress of one step.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::report::{Event, Reporter};

/// Bytes between two progress reports.
const REPORT_EVERY: u64 = 512 * 1024;

/// Bytes of one step, of one or more parallel downloads or of an upload.
#[derive(Clone)]
pub struct Transfer(Arc<TransferState>);

struct TransferState {
    reporter: Arc<dyn Reporter>,
    id: String,
    total: Option<u64>,
    done: AtomicU64,
    reported: AtomicU64,
}

impl Transfer {
    /// Counts the bytes of the step `id`, of `total` if that is known.
    pub fn new(reporter: Arc<dyn Reporter>, id: &str, total: Option<u64>) -> Self {
        let zero = || AtomicU64::new(0);
        Self(Arc::new(TransferState { reporter, id: id.to_owned(), total, done: zero(), reported: zero() }))
    }
    /// Counts bytes that have moved.
    pub(crate) fn add(&self, bytes: u64) {
        let done = self.0.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let reported = self.0.reported.load(Ordering::Relaxed);
        if done >= reported + REPORT_EVERY || Some(done) == self.0.total {
            self.0.reported.store(done, Ordering::Relaxed);
            self.0.reporter.report(Event::StepProgress { id: self.0.id.clone(), done, total: self.0.total });
        }
    }
    /// Counts bytes back that move once more.
    pub(crate) fn take_back(&self, bytes: u64) {
        self.0.done.fetch_sub(bytes, Ordering::Relaxed);
        self.0.reported.store(self.0.done.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

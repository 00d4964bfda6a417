//! How slow a body may come: each byte may be waited for, but not all of them.

use std::time::Duration;

use tokio::time::Instant;

use super::error::FetchError;
use crate::model::address::Address;

/// The slowest server that is listened to, bytes per second: a body of a known bound has an end in time, too.
const SLOWEST: u64 = 4 << 10;

/// The pace of one body.
pub(super) struct Pace {
    started: Instant,
    patience: Duration,
    moved: u64,
}

impl Pace {
    /// Begins with a body; `patience` is what it may be behind.
    pub(super) fn new(patience: Duration) -> Self {
        Self { started: Instant::now(), patience, moved: 0 }
    }

    /// Counts bytes that came; an error if all of them together took too long.
    pub(super) fn count(&mut self, bytes: usize, address: &Address) -> Result<(), FetchError> {
        self.moved += bytes as u64;
        let due = self.patience + Duration::from_secs(self.moved / SLOWEST);
        let taken = self.started.elapsed();
        if taken <= due {
            return Ok(());
        }
        let cause = format!("too slow: {} bytes in {} s", self.moved, taken.as_secs());
        Err(FetchError::Transfer { address: address.clone(), cause })
    }
}

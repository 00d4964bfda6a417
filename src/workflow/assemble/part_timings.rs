//! How long the parts of making an image took: they run at the same time, so that their sum may exceed the whole.
#![expect(clippy::disallowed_methods, reason = "measures the parts of a build")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

/// A part of making an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Wheels come from their indexes.
    Downloads,
    /// Layers of distribution packages and of /usr/local/cuda.
    System,
    /// Wheels are listed, and the digests of their layers computed.
    Wheels,
    /// Byte code is compiled and put into layers.
    ByteCode,
    /// The engine is given layers: from the first one to its answer to the last.
    Delivery,
}

/// Seconds in which each part ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct PartTimings {
    pub(crate) downloads: f64,
    pub(crate) system: f64,
    pub(crate) wheels: f64,
    pub(crate) byte_code: f64,
    pub(crate) delivery: f64,
}

/// Measures the parts of one image. What several threads do of one part at the same time counts once.
#[derive(Debug, Clone, Default)]
pub(crate) struct PartClock(Arc<Mutex<[Stopwatch; 5]>>);

impl PartClock {
    /// Counts the time until the result is dropped.
    pub(super) fn start(&self, part: Part) -> RunningPart {
        self.watches()[part as usize].start(Instant::now());
        RunningPart { clock: self.clone(), part }
    }

    /// The time of each part so far; one that still runs counts up to its last pause.
    pub(crate) fn timings(&self) -> PartTimings {
        let watches = *self.watches();
        let seconds = |part: Part| watches[part as usize].total.as_secs_f64();
        PartTimings {
            downloads: seconds(Part::Downloads),
            system: seconds(Part::System),
            wheels: seconds(Part::Wheels),
            byte_code: seconds(Part::ByteCode),
            delivery: seconds(Part::Delivery),
        }
    }

    fn watches(&self) -> MutexGuard<'_, [Stopwatch; 5]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part that is running until this is dropped.
pub(super) struct RunningPart {
    clock: PartClock,
    part: Part,
}

impl Drop for RunningPart {
    fn drop(&mut self) {
        self.clock.watches()[self.part as usize].stop(Instant::now());
    }
}

/// The time in which at least one of several runs was on.
#[derive(Debug, Clone, Copy, Default)]
struct Stopwatch {
    running: usize,
    since: Option<Instant>,
    total: Duration,
}

impl Stopwatch {
    fn start(&mut self, now: Instant) {
        self.running += 1;
        self.since.get_or_insert(now);
    }

    fn stop(&mut self, now: Instant) {
        self.running -= 1;
        if self.running == 0
            && let Some(since) = self.since.take()
        {
            self.total += now.duration_since(since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_a_part_at_the_same_time_count_once() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut watch = Stopwatch::default();
        watch.start(at(0));
        watch.start(at(2));
        watch.stop(at(3));
        assert_eq!(watch.total, Duration::ZERO, "one is still running");
        watch.stop(at(5));
        watch.start(at(9));
        watch.stop(at(10));
        assert_eq!(watch.total, Duration::from_secs(6), "the pause does not count");
    }

    #[test]
    fn parts_are_measured_apart() {
        let clock = PartClock::default();
        let (downloads, delivery) = (clock.start(Part::Downloads), clock.start(Part::Delivery));
        std::thread::sleep(Duration::from_millis(2));
        drop(downloads);
        let timings = clock.timings();
        assert!(timings.downloads >= 0.002, "{timings:?}");
        assert_eq!(timings, PartTimings { downloads: timings.downloads, ..PartTimings::default() });
        drop(delivery);
        assert!(clock.timings().delivery >= 0.002, "it ran as long as the sleep");
    }
}

//! Events as one JSON object per line on stderr (`--progress json`). While a step runs, no three seconds pass without a line.
#![expect(clippy::disallowed_methods, reason = "measures the time since the last line")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::bounds::bounded;
use super::printer::{json_line, talk};
use super::{Event, Reporter};

/// The time after a line in which the next one comes, if a step runs.
const INTERVAL: Duration = Duration::from_secs(2);

/// Writes each event at once.
pub struct JsonLines {
    lines: Arc<Lines>,
}

/// What the reporter and its thread share.
struct Lines {
    interval: Duration,
    write: Box<dyn Fn(&str) + Send + Sync>,
    state: Mutex<State>,
}

/// The steps that run, each with its start, and the last line.
struct State {
    running: BTreeMap<String, Instant>,
    last: Instant,
    /// Whether a thread waits for the end of the interval.
    is_watched: bool,
}

/// A line without news.
#[derive(Serialize)]
struct Heartbeat<'a> {
    event: &'static str,
    running: Vec<RunningStep<'a>>,
}

/// A step that has not ended.
#[derive(Serialize)]
struct RunningStep<'a> {
    id: &'a str,
    seconds: f64,
}

impl JsonLines {
    /// On standard error.
    pub(super) fn new() -> Self {
        Self::with(INTERVAL, Box::new(talk))
    }

    fn with(interval: Duration, write: Box<dyn Fn(&str) + Send + Sync>) -> Self {
        let state = State { running: BTreeMap::new(), last: Instant::now(), is_watched: false };
        Self { lines: Arc::new(Lines { interval, write, state: Mutex::new(state) }) }
    }
}

impl Reporter for JsonLines {
    fn report(&self, event: Event) {
        if matches!(event, Event::StepTable { .. }) {
            return;
        }
        let mut state = self.lines.state();
        state.last = Instant::now();
        match &event {
            Event::StepStarted { id, .. } => {
                let now = state.last;
                state.running.insert(id.clone(), now);
            }
            Event::StepFinished { id, .. } | Event::StepFailed { id, .. } => {
                state.running.remove(id);
            }
            _ => {}
        }
        // Under the lock: a step that has ended is named by no later line.
        (self.lines.write)(&json_line(&bounded(event)));
        if !state.running.is_empty() && !state.is_watched {
            let lines = Arc::clone(&self.lines);
            // Without a thread only the heartbeats are missing.
            let started = thread::Builder::new().name("heartbeat".to_owned()).spawn(move || lines.watch());
            state.is_watched = started.is_ok();
        }
    }
}

/// Steps of a command that was interrupted never end.
impl Drop for JsonLines {
    fn drop(&mut self) {
        self.lines.state().running.clear();
    }
}

impl Lines {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a heartbeat after each interval without a line, until no step runs.
    fn watch(&self) {
        loop {
            let mut state = self.state();
            if state.running.is_empty() {
                state.is_watched = false;
                return;
            }
            let now = Instant::now();
            if now.duration_since(state.last) >= self.interval {
                state.last = now;
                (self.write)(&heartbeat(&state.running, now));
            }
            let wait = self.interval.saturating_sub(now.duration_since(state.last));
            drop(state);
            thread::sleep(wait);
        }
    }
}

/// The running steps with their times.
fn heartbeat(running: &BTreeMap<String, Instant>, now: Instant) -> String {
    let seconds = |start: &Instant| now.duration_since(*start).as_secs_f64();
    let steps = running.iter().map(|(id, start)| RunningStep { id: id.as_str(), seconds: seconds(start) });
    json_line(&Heartbeat { event: "heartbeat", running: steps.collect() })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

    use serde_json::Value;

    use super::*;

    /// A reporter with a short interval, and its lines.
    fn reporter() -> (JsonLines, Receiver<Value>) {
        let (sender, lines) = channel();
        let write = move |line: &str| {
            // A test that has ended reads no more.
            let _ = sender.send(serde_json::from_str(line).expect("JSON"));
        };
        (JsonLines::with(Duration::from_millis(20), Box::new(write)), lines)
    }

    fn started(id: &str) -> Event {
        Event::StepStarted { id: id.to_owned(), text: "load".to_owned() }
    }

    fn finished(id: &str) -> Event {
        Event::StepFinished { id: id.to_owned(), cached: false, seconds: 1.0 }
    }

    /// The next line that is no heartbeat, and whether one came before it.
    fn next_event(lines: &Receiver<Value>) -> String {
        loop {
            let line = lines.recv_timeout(Duration::from_secs(30)).expect("a line");
            if line["event"] != "heartbeat" {
                return line["event"].as_str().expect("a name").to_owned();
            }
        }
    }

    #[test]
    fn silence_is_broken_by_the_names_of_the_running_steps() {
        let (reporter, lines) = reporter();
        reporter.report(started("a"));
        reporter.report(started("b"));
        reporter.report(finished("a"));
        for expected in ["step-started", "step-started", "step-finished"] {
            assert_eq!(next_event(&lines), expected);
        }
        for _ in 0..2 {
            let beat = lines.recv_timeout(Duration::from_secs(30)).expect("a heartbeat");
            assert_eq!(beat["event"], "heartbeat");
            let running = beat["running"].as_array().expect("steps");
            assert_eq!(running.len(), 1, "{beat}");
            assert_eq!(running[0]["id"], "b");
            assert!(running[0]["seconds"].as_f64().expect("a number") >= 0.02, "{beat}");
        }
    }

    #[test]
    fn nothing_is_written_while_no_step_runs() {
        let (reporter, lines) = reporter();
        let silence = Duration::from_millis(200);
        reporter.report(started("a"));
        reporter.report(finished("a"));
        assert_eq!([next_event(&lines), next_event(&lines)], ["step-started", "step-finished"]);
        assert_eq!(lines.recv_timeout(silence), Err(RecvTimeoutError::Timeout));
        // The thread that ended begins again with the next step.
        reporter.report(started("b"));
        assert_eq!(next_event(&lines), "step-started");
        assert_eq!(lines.recv_timeout(Duration::from_secs(30)).expect("one")["event"], "heartbeat");
        drop(reporter);
        // One may have been on its way.
        while let Ok(line) = lines.recv_timeout(silence) {
            assert_eq!(line["event"], "heartbeat");
        }
        assert_eq!(lines.recv(), Err(std::sync::mpsc::RecvError));
    }
}

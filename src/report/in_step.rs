//! A step of work with its two events.
#![expect(clippy::disallowed_methods, reason = "times the step")]

use std::fmt::Display;
use std::time::Instant;

use super::event::{Event, Reporter};

/// Does some work as a step: its start, and its end with the time or its error, are reported.
pub(crate) async fn in_step<T, E: Display>(
    reporter: &dyn Reporter,
    id: &str,
    text: String,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let (id, started) = (id.to_owned(), Instant::now());
    reporter.report(Event::StepStarted { id: id.clone(), text });
    let result = work.await;
    reporter.report(match &result {
        Ok(_) => Event::StepFinished { id, cached: false, seconds: started.elapsed().as_secs_f64() },
        Err(error) => Event::StepFailed { id, text: error.to_string() },
    });
    result
}

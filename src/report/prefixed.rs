//! Events of one piece of work among several: ids made distinct, texts named.

use std::sync::Arc;

use super::{Event, Reporter};

/// Puts a label before every id and text.
pub struct Prefixed {
    label: String,
    inner: Arc<dyn Reporter>,
}

impl Prefixed {
    /// Events go on to `inner`.
    pub fn new(label: &str, inner: Arc<dyn Reporter>) -> Self {
        Self { label: label.to_owned(), inner }
    }

    fn named(&self, text: &str) -> String {
        format!("[{}] {text}", self.label)
    }
}

impl Reporter for Prefixed {
    fn report(&self, event: Event) {
        let own = |id: String| format!("{}:{id}", self.label);
        self.inner.report(match event {
            Event::StepStarted { id, text } => Event::StepStarted { id: own(id), text: self.named(&text) },
            Event::StepProgress { id, done, total } => Event::StepProgress { id: own(id), done, total },
            Event::StepParts { id, done, total, done_bytes, total_bytes, left_s } => {
                Event::StepParts { id: own(id), done, total, done_bytes, total_bytes, left_s }
            }
            Event::StepOutput { id, line } => Event::StepOutput { id: own(id), line },
            Event::StepTable { id, summary, lines } => {
                Event::StepTable { id: own(id), summary: self.named(&summary), lines }
            }
            Event::StepFinished { id, cached, seconds } => {
                Event::StepFinished { id: own(id), cached, seconds }
            }
            Event::StepFailed { id, text } => Event::StepFailed { id: own(id), text },
            Event::Note { text } => Event::Note { text: self.named(&text) },
            Event::Warning { text } => Event::Warning { text: self.named(&text) },
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::Recorder;
    use super::*;

    #[test]
    fn two_builds_with_the_same_step_stay_apart() {
        let kept = Arc::new(Recorder::default());
        for label in ["a", "b"] {
            let started = Event::StepStarted { id: "checks".into(), text: "check".into() };
            Prefixed::new(label, Arc::clone(&kept) as _).report(started);
        }
        let expected = ["a", "b"].map(|label| Event::StepStarted {
            id: format!("{label}:checks"),
            text: format!("[{label}] check"),
        });
        assert_eq!(kept.take(), expected);
    }
}

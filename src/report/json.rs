//! Events as one JSON object per line on stderr (`--progress json`).

use super::bounds::bounded;
use super::printer::say_json;
use super::{Event, Reporter};

/// Writes each event at once.
#[derive(Debug, Clone, Copy)]
pub struct JsonLines;

impl Reporter for JsonLines {
    fn report(&self, event: Event) {
        if !matches!(event, Event::StepTable { .. }) {
            say_json(&bounded(event));
        }
    }
}

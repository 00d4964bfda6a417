//! Events as one JSON object per line on stderr (`--progress json`).

use super::{Event, Printer, Reporter};

/// Writes each event at once.
#[derive(Debug, Clone, Copy)]
pub struct JsonLines;

impl Reporter for JsonLines {
    fn report(&self, event: Event) {
        Printer.say(
            &serde_json::to_string(&event).expect("events serialise: they hold text and finite numbers"),
        );
    }
}

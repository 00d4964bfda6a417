//! Events as one JSON object per line on stderr (`--progress json`).

use super::bounds::bounded;
use super::printer::json_visible;
use super::{Event, Printer, Reporter};

/// Writes each event at once.
#[derive(Debug, Clone, Copy)]
pub struct JsonLines;

impl Reporter for JsonLines {
    fn report(&self, event: Event) {
        let text = serde_json::to_string(&bounded(event));
        let text = text.expect("events serialise: they hold text and finite numbers");
        Printer.say_colored(&json_visible(&text));
    }
}

//! Logs on stderr: warnings always, decisions with `-v`, traffic with `-vv`.

use std::fmt::{Debug, Write as _};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use super::paint::Painted;
use super::printer::Printer;
use crate::settings::Output;

/// Starts logging for this process. A second call changes nothing.
pub fn start_log(output: Output) {
    let lines = Lines { color: output.color, write: |line: &Painted| Printer.say_painted(line) };
    // A subscriber that is there already belongs to a test.
    let _ = tracing_subscriber::registry().with(filter(output)).with(lines).try_init();
}

/// Writes each record as one line, escaped as every other text of others.
pub(super) struct Lines<W> {
    pub(super) color: bool,
    /// Where a line goes, without its end.
    pub(super) write: W,
}

impl<S: Subscriber, W: Fn(&Painted) + 'static> Layer<S> for Lines<W> {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let line = Painted::new(self.color).level(*event.metadata().level());
        (self.write)(&line.line(&format!(" {}{}", text.message, text.fields)));
    }
}

/// The message of a record, and its fields.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

/// The levels that are shown. Other crates stay silent: what they log of requests may hold headers with credentials.
fn filter(output: Output) -> Targets {
    let own = match (output.quiet, output.verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::DEBUG,
        (false, _) => LevelFilter::TRACE,
    };
    Targets::new().with_default(LevelFilter::OFF).with_target("envforge", own)
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;
    use crate::model::request::ProgressMode;
    use crate::model::wrap::Width;

    fn shows(quiet: bool, verbose: u8, target: &str, level: Level) -> bool {
        let progress = ProgressMode::Plain;
        let output = Output {
            json: false,
            quiet,
            verbose,
            progress,
            bars: false,
            color: false,
            width: Width::UNLIMITED,
            talk_width: Width::UNLIMITED,
        };
        filter(output).would_enable(target, &level)
    }

    #[test]
    fn verbosity_selects_levels_of_envforge_alone() {
        assert!(shows(false, 0, "envforge::engine", Level::WARN));
        assert!(!shows(false, 0, "envforge::engine", Level::DEBUG));
        assert!(!shows(true, 0, "envforge::engine", Level::WARN) && shows(true, 0, "envforge", Level::ERROR));
        assert!(shows(false, 1, "envforge::engine", Level::DEBUG));
        assert!(!shows(false, 2, "hyper_util::client", Level::ERROR), "its records may hold headers");
        assert!(shows(false, 2, "envforge::fetch", Level::TRACE));
    }
}

//! Logs on stderr: warnings always, decisions with `-v`, traffic with `-vv`.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::screen::Talk;
use crate::settings::Output;

/// Starts logging for this process. A second call changes nothing.
pub fn start_log(output: Output) {
    let lines = tracing_subscriber::fmt::layer()
        .without_time()
        .with_target(false)
        .with_ansi(output.color)
        .with_writer(Talk::default);
    // A subscriber that is there already belongs to a test.
    let _ = tracing_subscriber::registry().with(filter(output)).with(lines).try_init();
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

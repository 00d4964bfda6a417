//! The reporter of a command.

use std::sync::Arc;

use super::event::{NullReporter, Reporter};
use super::human::{Bars, Plain};
use super::json::JsonLines;
use crate::model::request::ProgressMode;
use crate::settings::Output;

/// The reporter that the settings ask for.
pub fn reporter(output: Output) -> Arc<dyn Reporter> {
    match output.progress {
        ProgressMode::Json => Arc::new(JsonLines::new()),
        _ if output.quiet => Arc::new(NullReporter),
        ProgressMode::Auto if output.bars => Arc::new(Bars::new(output.color)),
        _ => Arc::new(Plain::new(output.verbose > 0)),
    }
}

//! How work in progress and results are shown: events, human lines and bars, JSON.

mod bounds;
mod event;
mod human;
mod in_step;
mod json;
mod log;
mod paint;
mod prefixed;
mod printer;
#[cfg(test)]
mod recorder;
mod screen;
mod select;

pub use event::{Event, NullReporter, Reporter};
pub(crate) use human::duration_text;
pub use human::{Bars, Plain};
pub(crate) use in_step::in_step;
pub use json::JsonLines;
pub use log::start_log;
pub use paint::{Mark, Painted};
pub use prefixed::Prefixed;
pub use printer::Printer;
#[cfg(test)]
pub(crate) use recorder::Recorder;
pub(crate) use screen::rows;
pub use screen::terminals;
pub use select::reporter;

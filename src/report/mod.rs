//! How work in progress and results are shown: events, human lines and bars, JSON.

mod event;
mod human;
mod json;
mod labelled;
mod printer;
#[cfg(test)]
mod recorder;

pub use event::{Event, Reporter, Silent};
pub use human::{Bars, Plain};
pub use json::JsonLines;
pub use labelled::Labelled;
pub use printer::{Printer, reporter};
#[cfg(test)]
pub(crate) use recorder::Recorder;

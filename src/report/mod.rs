//! How work in progress and results are shown: events, human lines and bars, JSON.

mod event;
mod human;
mod json;
mod printer;

pub use event::{Event, Reporter, Silent};
pub use human::{Bars, Plain};
pub use json::JsonLines;
pub use printer::{Printer, reporter};

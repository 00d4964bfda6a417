//! How work in progress and results are shown: events, human lines and bars, JSON.

mod event;

pub use event::{Event, Reporter, Silent};

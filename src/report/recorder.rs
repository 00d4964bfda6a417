//! A reporter for tests: keeps what it is told.

use std::sync::Mutex;

use super::event::{Event, Reporter};

/// The events reported, in order.
#[derive(Default)]
pub(crate) struct Recorder(Mutex<Vec<Event>>);

impl Recorder {
    /// All events so far; they are taken out.
    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock().expect("no panic while it is held"))
    }
}

impl Reporter for Recorder {
    fn report(&self, event: Event) {
        self.0.lock().expect("no panic while it is held").push(event);
    }
}

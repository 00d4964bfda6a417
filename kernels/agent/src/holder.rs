//! Holds a context of each GPU open while the checks run: without the persistence daemon a GPU that no process holds is shut
//! down, and starting it again takes seconds in each of the checks' processes.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use crate::checks::{self, Options};
use crate::supervisor;

/// Free memory that a GPU must have left beside the context: checks come first.
const LEFT: usize = 2 << 30;

/// The process that holds the contexts; it ends when this is dropped.
pub(crate) struct Holder(Option<Child>);

impl Holder {
    /// Starts it. Nothing depends on it: an error is no finding.
    pub(crate) fn start(options: &Options) -> Self {
        let program = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
        let mut command = Command::new(program);
        command.arg("hold").args(options.words());
        Self(supervisor::in_own_group(&mut command).stdin(Stdio::piped()).spawn().ok())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            supervisor::end(&mut child);
        }
    }
}

/// What the process does: it opens the GPUs and waits until nobody has the other end of its standard input.
pub(crate) fn hold(options: &Options) {
    let Ok(devices) = checks::open_all(options) else { return };
    if devices.iter().all(|device| device.memory().is_ok_and(|(free, _)| free >= LEFT)) {
        let _ = std::io::stdin().read(&mut [0]);
    }
}

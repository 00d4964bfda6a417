//! What opening a container gives: a program to join, or services.

use crate::engine::{Attached, Program};
use crate::shell::Tunnels;
use crate::workflow::shell::service_urls::ServiceUrls;

/// What came of the call.
pub(crate) enum OpenOutcome {
    /// A program that waits to be joined.
    Program(Box<Started>),
    /// A container that runs on its own, with what it serves; its id, if it goes with this call.
    Served { told: ServiceUrls, container: Option<String>, tunnels: Tunnels },
}

impl OpenOutcome {
    /// The same in a container that was named: the call opens nothing that is not there.
    pub(super) fn of_container(mut self) -> Self {
        if let Self::Program(started) = &mut self {
            started.opens_again = false;
        }
        self
    }
}

/// A program that was started.
pub(crate) struct Started {
    /// Its container.
    pub(crate) container: String,
    pub(crate) program: Program,
    pub(crate) attached: Attached,
    pub(crate) terminal: bool,
    /// Where it wrote its process id, if it runs beside the container's own command.
    pub(crate) pid_file: Option<String>,
    /// What becomes of the container when the program has ended.
    pub(crate) then: Then,
    /// Whether the same call opens it again.
    pub(crate) opens_again: bool,
    /// Ports of this machine that lead into it meanwhile.
    pub(crate) tunnels: Tunnels,
}

/// What becomes of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// It goes.
    Remove,
    /// It goes with its last terminal.
    RemoveIfLast,
    /// It stays.
    Keep,
}

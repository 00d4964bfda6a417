//! This machine as a node: its own bash runs the launcher.

use std::sync::Arc;

use super::error::FleetError;
use super::launched::launched;
use super::node_job::Asked;
use super::processes::Processes;
use crate::fleet::{NodeReport, Outcome};
use crate::host::async_child;

/// What this machine is called while it is asked.
pub(crate) const HERE: &str = "this machine";

/// Runs the launcher on this machine; returns its report, or why there is none.
pub(crate) async fn ask_here(asked: &Asked<'_>) -> Result<Result<Box<NodeReport>, Outcome>, FleetError> {
    let mut command = async_child("bash");
    command.arg("-s");
    launched(HERE, ("bash", command), asked, &Arc::new(Processes::default())).await
}

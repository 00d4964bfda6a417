//! Docker, or an engine with the same API.

use std::sync::Arc;

use crate::engine::info::EngineInfo;
use crate::engine::transport::daemon::Daemon;

/// A connected Docker daemon. Cheap to clone; every request opens its own connection.
#[derive(Debug, Clone)]
pub struct Docker {
    pub(in crate::engine) daemon: Daemon,
    pub(in crate::engine) info: Arc<EngineInfo>,
}

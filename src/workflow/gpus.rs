//! Which GPUs of the engine's host the checks get, and whether there are any to ask for.

use crate::engine::{GpuAccess, GpuChoice, GpuRequest, GpuSelection};
use crate::host::{self, GpuError};
use crate::workflow::request_error::RequestError;
use crate::workflow::session::Session;

/// Parses `--gpus`.
pub(crate) fn selection(text: Option<&str>) -> Result<GpuSelection, RequestError> {
    GpuSelection::parse(text)
        .ok_or_else(|| RequestError::BadGpus { found: text.unwrap_or_default().to_owned() })
}

/// The GPUs to ask the engine for; `None` if there is none for sure.
pub(crate) fn request(session: &Session<'_>, selection: &GpuSelection) -> Option<GpuRequest> {
    let info = session.engine.info();
    let choice = match selection {
        GpuSelection::None => return None,
        GpuSelection::These(choice) => return Some(info.gpus(choice.clone())),
        GpuSelection::IfAny => GpuChoice::All,
    };
    // An empty ENVFORGE_GPU means: no GPU.
    if session.settings.target.gpu.as_ref().is_some_and(Vec::is_empty) {
        return None;
    }
    // The engine lists nothing, and this is its machine: the driver knows without a container.
    if info.gpu_access() == GpuAccess::Request
        && info.local
        && matches!(host::detect(), Err(GpuError::NoDriver))
    {
        return None;
    }
    Some(info.gpus(choice))
}

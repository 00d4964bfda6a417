//! Which GPUs of the engine's host the checks get, and whether there are any to ask for.

use crate::engine::{GpuAccess, GpuChoice, GpuRequest, GpuSelection};
use crate::host::{self, GpuError};
use crate::settings::Settings;
use crate::workflow::request_error::RequestError;
use crate::workflow::session::Session;

/// Parses `--gpus`.
pub(crate) fn selection(text: Option<&str>) -> Result<GpuSelection, RequestError> {
    GpuSelection::parse(text)
        .ok_or_else(|| RequestError::BadGpus { found: text.unwrap_or_default().to_owned() })
}

/// Whether the environment says that there is no GPU: an empty `ENVFORGE_GPU`.
fn is_without(settings: &Settings) -> bool {
    settings.target.gpu.as_ref().is_some_and(Vec::is_empty)
}

/// Whether this machine has no GPU for sure.
pub(crate) fn none_here(settings: &Settings) -> bool {
    is_without(settings)
        || match host::detect() {
            Ok(facts) => facts.gpus.is_empty() && facts.troubled.is_empty(),
            Err(error) => matches!(error, GpuError::NoDriver),
        }
}

/// The GPUs to ask the engine for; `None` if there is none for sure.
pub(crate) fn request(session: &Session<'_>, selection: &GpuSelection) -> Option<GpuRequest> {
    let info = session.engine.info();
    let choice = match selection {
        GpuSelection::None => return None,
        GpuSelection::These(choice) => return Some(info.gpus(choice.clone())),
        GpuSelection::IfAny => GpuChoice::All,
    };
    if is_without(session.settings) {
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

//! Which GPUs of the engine's host the checks get, and whether there are any to ask for.

use crate::engine::{GpuAccess, GpuChoice, GpuRequest};
use crate::host::{self, GpuError};
use crate::workflow::error::CommandError;
use crate::workflow::request_error::RequestError;
use crate::workflow::session::Session;

/// What was typed for `--gpus`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Nothing: all, if there is one.
    IfAny,
    /// No GPU.
    None,
    /// These, or an error.
    These(GpuChoice),
}

impl Wish {
    /// Reads `all`, `none`, `0,1`, a UUID.
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, CommandError> {
        let Some(text) = text else { return Ok(Self::IfAny) };
        match text {
            "none" => return Ok(Self::None),
            "all" => return Ok(Self::These(GpuChoice::All)),
            _ => {}
        }
        let names: Vec<_> = text.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().all(|name| is_name(name)) {
            Ok(Self::These(GpuChoice::Named(names)))
        } else {
            Err(RequestError::BadGpus { found: text.to_owned() }.into())
        }
    }
}

/// An index, a UUID of a GPU or of a MIG instance.
fn is_name(name: &str) -> bool {
    let plain = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-/:".contains(&byte))
    };
    let number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    number || name.strip_prefix("GPU-").or_else(|| name.strip_prefix("MIG-")).is_some_and(plain)
}

/// The GPUs to ask the engine for; `None` if there is none for sure.
pub(crate) fn request(session: &Session<'_>, wish: &Wish) -> Option<GpuRequest> {
    let info = session.engine.info();
    let choice = match wish {
        Wish::None => return None,
        Wish::These(choice) => return Some(info.gpus(choice.clone())),
        Wish::IfAny => GpuChoice::All,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_read_as_the_driver_writes_them() {
        let these = |names: &[&str]| {
            Wish::These(GpuChoice::Named(names.iter().map(|name| (*name).to_owned()).collect()))
        };
        let read = |text| Wish::parse(Some(text)).expect("reads");
        assert_eq!(Wish::parse(None).expect("reads"), Wish::IfAny);
        assert_eq!(read("none"), Wish::None);
        assert_eq!(read("all"), Wish::These(GpuChoice::All));
        assert_eq!(read("0, 1"), these(&["0", "1"]));
        assert_eq!(read("GPU-5c89852c-3268,MIG-1/2/3"), these(&["GPU-5c89852c-3268", "MIG-1/2/3"]));
        for wrong in ["", "0,", "first", "-1", "GPU-", "0;rm"] {
            assert!(
                matches!(Wish::parse(Some(wrong)), Err(error) if matches!(error.downcast_ref(), Some(RequestError::BadGpus { .. }))),
                "{wrong}"
            );
        }
    }
}

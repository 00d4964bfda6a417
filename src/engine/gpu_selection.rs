//! The selection of GPUs for a container.

use super::gpu::GpuChoice;

/// A selection of GPUs, as `--gpus` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuSelection {
    /// All available ones, or none.
    IfAny,
    /// No GPU.
    None,
    /// These, or an error if one is missing.
    These(GpuChoice),
}

impl GpuSelection {
    /// Parses `all`, `none`, or comma-separated indices or UUIDs; `None` if the text is none of them.
    pub fn parse(text: Option<&str>) -> Option<Self> {
        match text {
            None => return Some(Self::IfAny),
            Some("none") => return Some(Self::None),
            Some("all") => return Some(Self::These(GpuChoice::All)),
            Some(_) => {}
        }
        let names: Vec<_> = text?.split(',').map(|name| name.trim().to_owned()).collect();
        names.iter().all(|name| is_name(name)).then_some(Self::These(GpuChoice::Named(names)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_parsed_as_the_driver_prints_them() {
        let these = |names: &[&str]| {
            GpuSelection::These(GpuChoice::Named(names.iter().map(|name| (*name).to_owned()).collect()))
        };
        let read = |text| GpuSelection::parse(Some(text)).expect("valid");
        assert_eq!(GpuSelection::parse(None).expect("valid"), GpuSelection::IfAny);
        assert_eq!(read("none"), GpuSelection::None);
        assert_eq!(read("all"), GpuSelection::These(GpuChoice::All));
        assert_eq!(read("0, 1"), these(&["0", "1"]));
        assert_eq!(read("GPU-5c89852c-3268,MIG-1/2/3"), these(&["GPU-5c89852c-3268", "MIG-1/2/3"]));
        for wrong in ["", "0,", "first", "-1", "GPU-", "0;rm"] {
            assert_eq!(GpuSelection::parse(Some(wrong)), None, "{wrong}");
        }
    }
}

//! Exit codes and hints of package errors.

use super::error::PackagesError;
use super::uv_hints::facts;
use crate::failure::{Exit, Failure};
use crate::model::compat::Matrix;
use crate::model::diagnosis::diagnose;
use crate::model::index_address::WITH_OWN_SETTING;
use crate::model::lock::DEFAULT_INDEX;

impl Failure for PackagesError {
    fn exit(&self) -> Exit {
        match self {
            Self::Unpublished { .. }
            | Self::WheelMisfit { .. }
            | Self::NoneCompatible { .. }
            | Self::NoSolution { with_additions: true, .. }
            | Self::NoWheel { .. }
            | Self::Apt { .. }
            | Self::AptChanges { .. }
            | Self::OtherHash { .. }
            | Self::Python { .. }
            | Self::OtherVersion { .. } => Exit::No,
            Self::NotAWheel { .. }
            | Self::TwoWheels { .. }
            | Self::Requirement { .. }
            | Self::InvalidRelease { .. }
            | Self::NoUvLocked
            | Self::IndexUnset { .. }
            | Self::NoIndexNamed { .. } => Exit::Usage,
            Self::Base(error) => error.exit(),
            Self::Engine(error) => error.exit(),
            Self::LocalWheelGone { .. }
            | Self::NoSolution { with_additions: false, .. }
            | Self::NoFrameworkIndex { .. }
            | Self::NoUploadTimes { .. }
            | Self::FlatWithDate { .. }
            | Self::NoUv { .. }
            | Self::Index { .. }
            | Self::Page { .. }
            | Self::IndexAccess { .. }
            | Self::NoUvWheel { .. }
            | Self::Mirror { .. }
            | Self::Vendor { .. }
            | Self::VendorKey { .. }
            | Self::Nvcc { .. }
            | Self::Expired { .. }
            | Self::Older(..)
            | Self::System { .. }
            | Self::Resolver { .. }
            | Self::Output { .. }
            | Self::DebGone { .. }
            | Self::WheelGone { .. }
            | Self::NoMirror { .. }
            | Self::UvWheel { .. }
            | Self::UvHash { .. }
            | Self::Pip { .. }
            | Self::Fetch(..)
            | Self::Store(..) => Exit::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        self.known_hint().into_iter().chain(self.own_hints()).collect()
    }
}

/// Ids of errors between this machine and a server, whatever was to be downloaded.
const TRANSPORT: &[&str] =
    &["certificate", "proxy-authentication", "proxy-unreachable", "name-resolution", "disk-full", "quota"];

impl PackagesError {
    /// Returns the fix of a known error in the output of uv or apt that is not about packages.
    fn known_hint(&self) -> Option<String> {
        let (Self::Index { cause, .. }
        | Self::Mirror { cause, no_network: false }
        | Self::Resolver { cause }) = self
        else {
            return None;
        };
        let known = diagnose(&cause.0).filter(|known| TRANSPORT.contains(&known.id))?;
        Some(format!("{}: {}", known.what, known.cure))
    }

    /// Returns the hints of the error itself.
    fn own_hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Base(error) => return error.hints(),
            Self::Index { .. } | Self::NoUvWheel { .. } | Self::Page { .. } => {
                "set the index with `[index] default` (ENVFORGE_INDEX or PIP_INDEX_URL) or, for the framework's own wheels, `[index] \
                 framework` (ENVFORGE_FRAMEWORK_INDEX); if only containers cannot reach it, set `[network] mode = \
                 \"host\"` (ENVFORGE_NETWORK=host)"
            }
            Self::NoUploadTimes { .. } => {
                "set `[index] default` (ENVFORGE_INDEX) or `[index] framework` (ENVFORGE_FRAMEWORK_INDEX) to an index \
                 that lists upload times (PEP 700), or drop the date: `envforge lock --upgrade`"
            }
            Self::IndexAccess { .. } => {
                "put user and token into the address of `[index] default` (ENVFORGE_INDEX or PIP_INDEX_URL); envforge writes it to no image"
            }
            Self::Pip { .. } | Self::UvHash { .. } => {
                "set the index with `[index] default` (ENVFORGE_INDEX or PIP_INDEX_URL): uv is then downloaded directly"
            }
            Self::Unpublished { .. } => "use a prebuilt wheel: `--wheel FILE`",
            Self::NotAWheel { .. } => "rename it to `NAME-VERSION+CUDA-PYTHON-ABI-PLATFORM.whl` (PEP 427)",
            Self::WheelMisfit { .. } => "build it for this stack, or request the stack it was built for",
            Self::TwoWheels { .. } => "pass only one of them",
            Self::LocalWheelGone { file } => {
                return vec![format!("pass the file: `--wheel PATH/{file}`")];
            }
            Self::IndexUnset { name } if name == DEFAULT_INDEX => {
                "set `[index] default` in your configuration, or ENVFORGE_INDEX"
            }
            Self::IndexUnset { name } => {
                return vec![format!("add `{name}` to `[indexes]` of your configuration")];
            }
            Self::FlatWithDate { .. } => {
                "use an index that lists upload times (PEP 700), or drop the date: `envforge lock --upgrade`"
            }
            Self::NoFrameworkIndex { framework, .. } if WITH_OWN_SETTING.contains(&framework.as_str()) => {
                let variable = framework.to_uppercase();
                return vec![format!("set `[index] {framework}` (ENVFORGE_{variable}_INDEX)")];
            }
            Self::NoFrameworkIndex { .. } => "set `[index] framework` (ENVFORGE_FRAMEWORK_INDEX)",
            Self::Mirror { no_network: true, .. } => {
                "set `[network] mode = \"host\"` (ENVFORGE_NETWORK=host), or configure a DNS server in the engine: containers \
                 have no network"
            }
            Self::Mirror { .. } | Self::NoMirror { .. } => {
                "set `[mirrors] debian` (ENVFORGE_DEBIAN_MIRROR) to a mirror that containers can reach"
            }
            Self::Vendor { .. } => {
                "set `[mirrors] nvidia` (ENVFORGE_NVIDIA_MIRROR) to a copy of the repositories that this machine and \
                 containers can reach, or remove `vendor` from `[toolkit] sources` (ENVFORGE_NVCC_SOURCES)"
            }
            Self::VendorKey { .. } => {
                "for a re-signed repository set `[mirrors] nvidia-fingerprint` (ENVFORGE_NVIDIA_FINGERPRINT) and, unless \
                 the key is next to its index, `nvidia-key` (ENVFORGE_NVIDIA_KEY)"
            }
            Self::Older(error) => return vec![error.hint()],
            Self::Expired { .. } => "use a current mirror, or set `[mirrors] accept-expired = true`",
            Self::NoSolution { with_additions: true, .. } => {
                let loosen = "relax or remove one of the added packages".to_owned();
                return self.resolver_hints().into_iter().chain([loosen]).collect();
            }
            Self::NoSolution { .. } => {
                let hints = self.resolver_hints();
                if !hints.is_empty() {
                    return hints;
                }
                "check `[index] default` (ENVFORGE_INDEX) and `[index] framework` (ENVFORGE_FRAMEWORK_INDEX): the index \
                 lacks a version of the matrix"
            }
            Self::DebGone { .. } => {
                "run `envforge lock --upgrade SPEC` to select current versions (mirrors delete old ones)"
            }
            Self::Apt { .. } => "correct or remove the packages of `--apt` or `[packages] apt`",
            Self::AptChanges { .. } => "remove the conflicting packages",
            Self::OtherHash { .. } => {
                "regenerate the requirement file, or remove its hashes (the lock file has its own)"
            }
            Self::WheelGone { .. } => "run `envforge lock --upgrade` to select available versions",
            Self::NoIndexNamed { .. } => {
                "set it with `[index] default` (ENVFORGE_INDEX or PIP_INDEX_URL): only builds use uv's own default"
            }
            Self::NoUvLocked => "run `envforge lock --upgrade SPEC` to create a new lock file",
            Self::Python { .. } => "use a base with this Python, or none: envforge then selects one",
            Self::Engine(error) => return error.hints(),
            Self::Fetch(error) => return error.hints(),
            Self::Store(error) => return error.hints(),
            _ => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}

impl PackagesError {
    /// Returns what the resolver's output tells a user to do.
    pub fn resolver_hints(&self) -> Vec<String> {
        let Self::NoSolution { cause, .. } = self else { return Vec::new() };
        let known = self.source_hint().into_iter().chain(self.index_hint());
        known.chain(facts(&cause.0)).collect()
    }

    /// Returns the error with what the matrix says of the package that has no wheel: what an index has under the name of another package
    /// is not to be built.
    #[must_use]
    pub(super) fn with_trap(mut self, matrix: &Matrix) -> Self {
        if let Self::NoSolution { cause, trap, .. } = &mut self {
            let name = without_wheel(&cause.0);
            let row = matrix.coupled_packages.iter().find(|row| Some(row.package.as_str()) == name);
            *trap = row.and_then(|row| {
                let instead = row.instead.as_deref().unwrap_or("remove it");
                Some(format!("{}; {instead}", row.trap.as_ref()?))
            });
        }
        self
    }

    /// Returns how to allow building the package that has no wheel, if it is the cause of the conflict.
    pub fn source_hint(&self) -> Option<String> {
        let Self::NoSolution { with_additions: true, cause, trap } = self else { return None };
        let name = without_wheel(&cause.0)?;
        if let Some(trap) = trap {
            return Some(format!("do not build `{name}`: {trap}"));
        }
        Some(format!(
            "no compatible wheel of `{name}`: allow building from source (runs the package's build code): `allow-source = \
             [\"{name}\"]` in `[packages]` (`--allow-source {name}`)"
        ))
    }

    /// Returns how to choose another index for the package that the first index has in other versions only.
    pub fn index_hint(&self) -> Option<String> {
        let Self::NoSolution { cause, .. } = self else { return None };
        if without_wheel(&cause.0).is_some() {
            return None;
        }
        let (before, _) = cause.0.split_once("` was found on ")?;
        let name = before.rsplit('`').next()?;
        Some(format!(
            "the first index that has `{name}` serves it: choose another one with `{{ name = \"{name}\", index = \
             \"INDEX\" }}` in `[packages] python`"
        ))
    }

    /// Whether the user's additions conflict.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::NoSolution { with_additions: true, .. })
    }

    /// Whether only nvcc is unavailable: a CUDA version with another source of nvcc may still work.
    pub fn is_nvcc_error(&self) -> bool {
        matches!(self, Self::Vendor { .. } | Self::VendorKey { .. } | Self::Nvcc { .. })
    }
}

/// Returns the package that uv reports as lacking wheels.
fn without_wheel(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("Wheels are required for `")?;
    rest.split('`').next()
}

//! `[mirrors]`: where distribution packages, vendor packages and images come from.

use camino::Utf8PathBuf;
use serde::Deserialize;

use super::environment::{Environment, set};
use super::registry::ImageMirrorConfig;

/// `[mirrors]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MirrorConfig {
    /// Root of a Debian mirror, the directory that holds `dists/` and `pool/`.
    pub debian: Option<String>,
    /// Root of a Debian security mirror.
    pub debian_security: Option<String>,
    /// Accept a signed index whose validity has ended.
    #[serde(default)]
    pub accept_expired: bool,
    /// For image registries by host: their mirrors.
    #[serde(default)]
    pub images: ImageMirrorConfig,
    /// A copy of the vendor's apt repositories: the directory that holds `debian12/` and its like.
    pub nvidia: Option<String>,
    /// A file with their signing key, if it is not next to their index.
    pub nvidia_key: Option<Utf8PathBuf>,
    /// The fingerprint of that key, if it is not the vendor's own.
    pub nvidia_fingerprint: Option<String>,
}

impl MirrorConfig {
    /// The same with the values of the environment, which win.
    pub(super) fn with_environment(self, environment: &Environment) -> Self {
        let set = |name| set(environment, name);
        Self {
            debian: set("ENVFORGE_DEBIAN_MIRROR").or(self.debian),
            debian_security: set("ENVFORGE_DEBIAN_SECURITY_MIRROR").or(self.debian_security),
            nvidia: set("ENVFORGE_NVIDIA_MIRROR").or(self.nvidia),
            nvidia_key: set("ENVFORGE_NVIDIA_KEY").map(Utf8PathBuf::from).or(self.nvidia_key),
            nvidia_fingerprint: set("ENVFORGE_NVIDIA_FINGERPRINT").or(self.nvidia_fingerprint),
            ..self
        }
    }
}

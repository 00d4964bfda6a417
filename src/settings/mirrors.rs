//! `[mirrors]`: where distribution packages, vendor packages and images come from.

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::Deserialize;

use super::environment::Environment;
use super::registry::ImageMirrorConfig;
use super::variables;

/// `[mirrors]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MirrorConfig {
    /// Root of a Debian mirror, the directory with `dists/` and `pool/`.
    pub debian: Option<String>,
    /// Root of a Debian security mirror.
    pub debian_security: Option<String>,
    /// Root of an Ubuntu mirror, the directory with `dists/` and `pool/`.
    pub ubuntu: Option<String>,
    /// Root of an Ubuntu security mirror; without it the mirror's own security updates are used.
    pub ubuntu_security: Option<String>,
    /// Accept a signed index after its end of validity: `true`.
    #[serde(default)]
    pub accept_expired: bool,
    /// Mirrors of image registries, by host: one, or a list in the order to try.
    #[serde(default)]
    pub images: ImageMirrorConfig,
    /// A copy of NVIDIA's apt repositories: the directory with `debian12/`, `ubuntu2204/`.
    pub nvidia: Option<String>,
    /// A file with the signing key of that copy, if the key is not next to its index.
    #[schemars(with = "Option<String>")]
    pub nvidia_key: Option<Utf8PathBuf>,
    /// The fingerprint of that key, if it is not NVIDIA's.
    pub nvidia_fingerprint: Option<String>,
}

impl MirrorConfig {
    /// The same with the values of the environment, which win.
    pub(super) fn with_environment(self, environment: &Environment) -> Self {
        Self {
            debian: variables::DEBIAN_MIRROR.of(environment).or(self.debian),
            debian_security: variables::DEBIAN_SECURITY_MIRROR.of(environment).or(self.debian_security),
            ubuntu: variables::UBUNTU_MIRROR.of(environment).or(self.ubuntu),
            ubuntu_security: variables::UBUNTU_SECURITY_MIRROR.of(environment).or(self.ubuntu_security),
            nvidia: variables::NVIDIA_MIRROR.of(environment).or(self.nvidia),
            nvidia_key: variables::NVIDIA_KEY.of(environment).map(Utf8PathBuf::from).or(self.nvidia_key),
            nvidia_fingerprint: variables::NVIDIA_FINGERPRINT.of(environment).or(self.nvidia_fingerprint),
            ..self
        }
    }
}

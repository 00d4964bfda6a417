//! Network settings of image registries: plain values made of the environment and the configuration file.

use camino::Utf8PathBuf;
use secrecy::SecretString;

use crate::model::image_mirrors::ImageMirrors;
use crate::model::image_ref::ImageRef;
use crate::model::layer_compression::LayerCompression;

/// A login from the environment.
#[derive(Debug, Clone)]
pub struct EnvironmentLogin {
    /// Its registry, as in an image reference.
    pub registry: String,
    /// The user.
    pub user: String,
    /// The password.
    pub password: SecretString,
}

/// The repository of finished layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerRepository {
    /// Its registry and name, without a tag.
    pub repository: ImageRef,
    /// Whether builds put layers into it.
    pub write: bool,
}

/// Network settings of image registries.
#[derive(Debug, Clone, Default)]
pub struct RegistrySettings {
    /// Mirrors of images.
    pub mirrors: ImageMirrors,
    /// Registries without TLS, in addition to those on this machine, which get no login.
    pub insecure: Vec<String>,
    /// A login from the environment; takes precedence.
    pub login: Option<EnvironmentLogin>,
    /// The text of `DOCKER_AUTH_CONFIG`; takes precedence over Docker's file.
    pub auth_config: Option<SecretString>,
    /// Docker's configuration directory.
    pub docker_config: Option<Utf8PathBuf>,
    /// Directories as `/etc/docker/certs.d`: a directory for each registry, with the authorities (`*.crt`) trusted for it.
    pub certificates: Vec<Utf8PathBuf>,
    /// Where finished layers are looked for; `None`: nowhere.
    pub layers: Option<LayerRepository>,
    /// How layers of pushed images are compressed.
    pub compression: LayerCompression,
}

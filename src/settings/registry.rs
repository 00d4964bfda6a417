//! `[registry]`, the mirrors of images, and the logins of the environment.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::environment::Environment;
use super::error::SettingsError;
use super::image_registry::{EnvironmentLogin, LayerRepository, RegistrySettings};
use super::variables::{self, Variable};
use crate::model::image_mirrors::ImageMirrors;
use crate::model::image_ref::ImageRef;
use crate::model::layer_compression::LayerCompression;

/// `[registry]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RegistryConfig {
    /// Registries without TLS (`host:port` or `http://host:port`), in addition to those on this machine. Only these get a
    /// login without TLS.
    #[serde(default)]
    pub insecure: Vec<String>,
    /// Repository of finished layers, `registry.example.com/team/envforge-layers`: builds take from it what would need a
    /// container (system, `/usr/local/cuda`, byte code, wheels of source builds), if the lock file records the same digest.
    #[serde(default)]
    pub layers: Option<String>,
    /// Put layers into that repository that it lacks: `true`. Byte code of all packages is among them, and wheels that were
    /// compiled here.
    #[serde(default)]
    pub layers_write: bool,
    /// Compression of the layers of pushed images: `gzip` (default), `zstd` or `zstd:LEVEL`. Docker reads `zstd` from version 23 on.
    #[serde(default)]
    pub compression: Option<String>,
}

/// `[mirrors] images`: for each registry one mirror, or several in the order they are asked.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ImageMirrorConfig(BTreeMap<String, OneOrMany>);

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl std::fmt::Debug for ImageMirrorConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ImageMirrorConfig({:?})", self.0.keys())
    }
}

/// Joins environment and configuration; directories are added by the caller.
pub(super) fn registry_settings(
    environment: &Environment,
    mirrors: &ImageMirrorConfig,
    config: &RegistryConfig,
) -> Result<RegistrySettings, SettingsError> {
    let mut rules = ImageMirrors::default();
    if let Some(mirror) = variables::IMAGE_MIRROR.of(environment) {
        rules.add("docker.io", &mirror)?;
    }
    for (registry, mirrors) in &mirrors.0 {
        let mirrors = match mirrors {
            OneOrMany::One(mirror) => std::slice::from_ref(mirror),
            OneOrMany::Many(mirrors) => mirrors,
        };
        for mirror in mirrors {
            rules.add(registry, mirror)?;
        }
    }
    let mut insecure: Vec<String> = config
        .insecure
        .iter()
        .map(|entry| entry.strip_prefix("http://").unwrap_or(entry).to_owned())
        .collect();
    let of = |variable: Variable| variable.of(environment);
    let login =
        match (of(variables::REGISTRY), of(variables::REGISTRY_USER), of(variables::REGISTRY_PASSWORD)) {
            (Some(registry), Some(user), Some(password)) => {
                let registry = match registry.strip_prefix("http://") {
                    Some(host) => {
                        insecure.push(host.to_owned());
                        host.to_owned()
                    }
                    None => registry,
                };
                Some(EnvironmentLogin { registry, user, password: password.into() })
            }
            (None, Some(_), Some(_)) => return Err(SettingsError::LoginOfNoRegistry),
            _ => None,
        };
    Ok(RegistrySettings {
        mirrors: rules,
        insecure,
        login,
        auth_config: of(variables::AUTH_CONFIG).map(Into::into),
        layers: layer_repository(environment, config)?,
        compression: layer_compression(environment, config)?,
        ..RegistrySettings::default()
    })
}

/// The compression of pushed layers.
fn layer_compression(
    environment: &Environment,
    config: &RegistryConfig,
) -> Result<LayerCompression, SettingsError> {
    let text = variables::LAYER_COMPRESSION.of(environment).or_else(|| config.compression.clone());
    let Some(text) = text else { return Ok(LayerCompression::default()) };
    text.parse().map_err(|_| SettingsError::Value {
        setting: "[registry] compression (ENVFORGE_LAYER_COMPRESSION)",
        value: text,
        allowed: "`gzip`, `zstd` or `zstd:LEVEL` (1 to 19)",
    })
}

/// The repository of finished layers.
fn layer_repository(
    environment: &Environment,
    config: &RegistryConfig,
) -> Result<Option<LayerRepository>, SettingsError> {
    let repository = variables::LAYERS.of(environment).or_else(|| config.layers.clone());
    let repository = repository.map(|text| parsed_repository(&text)).transpose()?;
    let write = flag(variables::LAYERS_WRITE, environment, "ENVFORGE_LAYERS_WRITE")?;
    let write = write.unwrap_or(config.layers_write);
    match repository {
        Some(repository) => Ok(Some(LayerRepository { repository, write })),
        None if write => Err(SettingsError::LayersOfNoRepository),
        None => Ok(None),
    }
}

fn parsed_repository(text: &str) -> Result<ImageRef, SettingsError> {
    let is_repository =
        |found: &ImageRef| found.names_registry() && found.tag().is_none() && found.digest().is_none();
    text.parse::<ImageRef>().ok().filter(is_repository).ok_or_else(|| SettingsError::Value {
        setting: "[registry] layers (ENVFORGE_LAYERS)",
        value: without_login(text),
        allowed: "HOST/NAME or HOST:PORT/NAME, without a tag",
    })
}

/// A value for an error message, without the login that a user may have put into the address.
fn without_login(text: &str) -> String {
    let text = text.split('?').next().unwrap_or_default();
    text.rsplit_once('@').map_or_else(|| text.to_owned(), |(_, rest)| format!("…@{rest}"))
}

fn flag(
    variable: Variable,
    environment: &Environment,
    setting: &'static str,
) -> Result<Option<bool>, SettingsError> {
    match variable.of(environment).as_deref() {
        None => Ok(None),
        Some("true" | "1") => Ok(Some(true)),
        Some("false" | "0") => Ok(Some(false)),
        Some(other) => {
            Err(SettingsError::Value { setting, value: other.to_owned(), allowed: "`true` or `false`" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Config, parse_config};

    fn built(pairs: &[(&str, &str)], text: &str) -> Result<RegistrySettings, SettingsError> {
        let config: Config = parse_config("c.toml".into(), text)?;
        let environment =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        registry_settings(&environment, &config.mirrors.images, &config.registry)
    }

    fn sources(settings: &RegistrySettings, image: &str) -> Vec<String> {
        let image = image.parse().expect("a reference");
        settings.mirrors.of(&image).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn mirrors_come_from_the_environment_first_then_from_the_file() {
        let file =
            "[mirrors]\nimages = { 'docker.io' = ['m.test/hub', 'n.test'], 'ghcr.test' = 'm.test/ghcr' }";
        let settings = built(&[("ENVFORGE_IMAGE_MIRROR", "e.test")], file).expect("settings");
        assert_eq!(
            sources(&settings, "debian:12"),
            ["e.test/library/debian:12", "m.test/hub/library/debian:12", "n.test/library/debian:12"]
        );
        assert_eq!(sources(&settings, "ghcr.test/a:1"), ["m.test/ghcr/a:1"]);
    }

    #[test]
    fn a_login_without_its_registry_is_refused_and_none_is_printed() {
        let pairs = [("ENVFORGE_REGISTRY_USER", "ann"), ("ENVFORGE_REGISTRY_PASSWORD", "hunter2")];
        assert!(matches!(built(&pairs, ""), Err(SettingsError::LoginOfNoRegistry)));
        let all = [pairs[0], pairs[1], ("ENVFORGE_REGISTRY", "box:5000"), ("DOCKER_AUTH_CONFIG", "hunter2")];
        let text = format!("{:?}", built(&all, "[registry]\ninsecure = ['box:5000']").expect("settings"));
        assert!(text.contains("ann") && !text.contains("hunter2"), "{text}");
    }

    #[test]
    fn registry_of_a_login_may_be_written_without_tls() {
        let login = [("ENVFORGE_REGISTRY_USER", "ann"), ("ENVFORGE_REGISTRY_PASSWORD", "hunter2")];
        for (address, insecure) in [("http://localhost:5000", 2), ("localhost:5000", 1)] {
            let pairs = [login[0], login[1], ("ENVFORGE_REGISTRY", address)];
            let settings = built(&pairs, "[registry]\ninsecure = ['http://box:5000']").expect("settings");
            assert_eq!(settings.insecure.len(), insecure, "{:?}", settings.insecure);
            assert!(settings.insecure.contains(&"box:5000".to_owned()), "{:?}", settings.insecure);
            assert_eq!(settings.login.expect("a login").registry, "localhost:5000");
        }
    }

    #[test]
    fn compression_of_layers_is_gzip_unless_it_is_set() {
        let of = |pairs: &[(&str, &str)], text: &str| built(pairs, text).map(|settings| settings.compression);
        let file = "[registry]\ncompression = 'zstd:9'";
        assert_eq!(of(&[], "").expect("settings"), LayerCompression::Gzip);
        assert_eq!(of(&[], file).expect("settings"), LayerCompression::Zstd(9));
        let environment = [("ENVFORGE_LAYER_COMPRESSION", "gzip")];
        assert_eq!(of(&environment, file).expect("settings"), LayerCompression::Gzip);
        let error = of(&[], "[registry]\ncompression = 'xz'").expect_err("refused").to_string();
        assert!(error.contains("[registry] compression") && error.contains("xz"), "{error}");
    }

    #[test]
    fn repository_of_layers_is_read_only_unless_it_is_set() {
        let of = |pairs: &[(&str, &str)], text: &str| built(pairs, text).map(|settings| settings.layers);
        let known = |text: &str, write| {
            let repository = text.parse().expect("a reference");
            Some(LayerRepository { repository, write })
        };
        assert_eq!(of(&[], "").expect("settings"), None);
        let file = "[registry]\nlayers = 'box:5000/team/layers'";
        assert_eq!(of(&[], file).expect("settings"), known("box:5000/team/layers", false));
        let all = format!("{file}\nlayers-write = true");
        assert_eq!(of(&[], &all).expect("settings"), known("box:5000/team/layers", true));
        let pairs = [("ENVFORGE_LAYERS", "r.test/l"), ("ENVFORGE_LAYERS_WRITE", "false")];
        assert_eq!(of(&pairs, &all).expect("settings"), known("r.test/l", false));
        for wrong in ["layers", "team/layers", "r.test/l:tag", "https://r.test/l", "r.test/UPPER"] {
            let error = of(&[("ENVFORGE_LAYERS", wrong)], "").expect_err("refused").to_string();
            assert!(error.contains("[registry] layers") && error.contains(wrong), "{error}");
        }
        for repository in ["r.test/l", ""] {
            let pairs = [("ENVFORGE_LAYERS", repository), ("ENVFORGE_LAYERS_WRITE", "maybe")];
            let error = of(&pairs, "").expect_err("refused").to_string();
            assert!(error.contains("ENVFORGE_LAYERS_WRITE"), "{error}");
        }
    }

    #[test]
    fn layers_are_written_only_with_a_repository() {
        let write = "[registry]\nlayers-write = true";
        let error = built(&[], write).expect_err("refused");
        let text = "`[registry] layers-write` requires `[registry] layers` (ENVFORGE_LAYERS)";
        assert_eq!(error.to_string(), text);
        let set = built(&[("ENVFORGE_LAYERS", "r.test/l")], write);
        assert!(set.expect("settings").layers.is_some());
        let variable = [("ENVFORGE_LAYERS_WRITE", "true")];
        assert!(matches!(built(&variable, ""), Err(SettingsError::LayersOfNoRepository)));
        assert!(built(&[("ENVFORGE_LAYERS_WRITE", "false")], "").expect("settings").layers.is_none());
    }

    #[test]
    fn login_in_a_wrong_repository_of_layers_is_not_printed() {
        for wrong in [
            "https://ann:hunter2@r.test/team/layers",
            "ann:hunter2@r.test/team/layers",
            "https://ann:hun@ter2:hunter2@r.test/team/layers",
            "https://r.test/team/layers?token=hunter2",
        ] {
            let error = built(&[("ENVFORGE_LAYERS", wrong)], "").expect_err("refused");
            let (text, debug) = (error.to_string(), format!("{error:?}"));
            assert!(text.contains("r.test/team/layers"), "{text}");
            assert!(!text.contains("hunter2") && !debug.contains("hunter2"), "{text} {debug}");
        }
    }

    #[test]
    fn a_mirror_that_is_none_names_its_registry() {
        let error = built(&[], "[mirrors]\nimages = { 'docker.io' = 'https://u:hunter2@m.test' }")
            .expect_err("refused");
        assert!(
            error.to_string().contains("`docker.io`") && !error.to_string().contains("hunter2"),
            "{error}"
        );
    }
}

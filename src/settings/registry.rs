//! `[registry]`, the mirrors of images, and the logins of the environment.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::environment::Environment;
use super::error::SettingsError;
use super::image_registry::{EnvironmentLogin, RegistrySettings};
use super::variables::{self, Variable};
use crate::model::image_mirrors::ImageMirrors;

/// `[registry]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RegistryConfig {
    /// Registries without TLS (`host:port` or `http://host:port`), in addition to those on this machine. Only these get a
    /// login without TLS.
    #[serde(default)]
    pub insecure: Vec<String>,
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
        ..RegistrySettings::default()
    })
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
    fn a_mirror_that_is_none_names_its_registry() {
        let error = built(&[], "[mirrors]\nimages = { 'docker.io' = 'https://u:hunter2@m.test' }")
            .expect_err("refused");
        assert!(
            error.to_string().contains("`docker.io`") && !error.to_string().contains("hunter2"),
            "{error}"
        );
    }
}

//! The configuration file.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use schemars::JsonSchema;
use serde::Deserialize;

use super::configured_index::ConfiguredIndex;
use super::engine::EngineConfig;
use super::environment::Environment;
use super::error::SettingsError;
use super::index::IndexConfig;
use super::mirrors::MirrorConfig;
use super::named::{NamedIndexes, SecretSource};
use super::network::NetworkConfig;
use super::paths::UserDirectories;
use super::registry::RegistryConfig;
use super::source::{SourceConfig, ToolkitConfig};
use super::trust::TrustConfig;
use super::variables;
use crate::model::request::GlobalOptions;

/// The settings of one machine and user, `~/.config/envforge/config.toml`. Every table and key may be missing.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Mirrors of distribution packages, NVIDIA's packages and images.
    #[serde(default)]
    pub mirrors: MirrorConfig,
    /// Indexes of Python packages. Addresses may contain a login.
    #[serde(default)]
    pub index: IndexConfig,
    /// Network of build containers, proxies and certificates.
    #[serde(default)]
    pub network: NetworkConfig,
    /// The container engine.
    #[serde(default)]
    pub engine: EngineConfig,
    /// Image registries.
    #[serde(default)]
    pub registry: RegistryConfig,
    /// Additional package indexes, by the name that a project uses: `internal = "https://wheels.example.com/simple"`, or
    /// `pages = { url = "https://wheels.example.com/files.html", format = "flat" }` for a page of links.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, ConfiguredIndex>")]
    pub indexes: NamedIndexes,
    /// Secrets of run steps, by the name that a project uses: `{ env = "HF_TOKEN" }` or `{ file = "/path" }`.
    #[serde(default)]
    pub secrets: BTreeMap<String, SecretSource>,
    /// The compiler of the `devel` flavour.
    #[serde(default)]
    pub toolkit: ToolkitConfig,
    /// Release archives of source builds.
    #[serde(default)]
    pub source: SourceConfig,
    /// Projects that may use mounts, ports and secrets of this machine without a question.
    #[serde(default)]
    pub trust: TrustConfig,
}

/// Reads the configuration file that an argument or the environment names, else the user's own.
pub(super) fn read_config(
    args: &GlobalOptions,
    environment: &Environment,
    directories: &UserDirectories,
) -> Result<(Utf8PathBuf, Config), SettingsError> {
    let named =
        args.config.clone().or_else(|| variables::CONFIG.set_or_empty(environment).map(Utf8PathBuf::from));
    let path = named.clone().unwrap_or_else(|| directories.config.join("config.toml"));
    match fs_err::read_to_string(&path) {
        Ok(text) => Ok((path.clone(), parse_config(&path, &text)?)),
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            Ok((path, Config::default()))
        }
        Err(cause) => Err(SettingsError::Unreadable { cause }),
    }
}

/// Returns the JSON schema of the configuration file.
pub fn config_schema() -> schemars::Schema {
    schemars::schema_for!(Config)
}

/// Parses a configuration file; the error names line and column.
pub fn parse_config(file: &Utf8Path, text: &str) -> Result<Config, SettingsError> {
    toml::from_str(text).map_err(|error| SettingsError::Malformed {
        file: file.to_owned(),
        detail: error.to_string().trim_end().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_line_and_column() {
        let error = parse_config("c.toml".into(), "[mirrors]\ndebain = 'x'\n").unwrap_err().to_string();
        assert!(error.contains("line 2, column 1") && error.contains("debain"), "{error}");
    }

    #[test]
    fn addresses_with_credentials_are_not_in_debug() {
        let text =
            "[index]\ndefault='https://u:hunter2@x/simple'\n[network]\nhttp-proxy='http://u:hunter2@p'";
        let config = parse_config("c".into(), text).unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}

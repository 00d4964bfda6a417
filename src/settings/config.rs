//! The configuration file.

use std::collections::BTreeMap;

use camino::Utf8Path;
use schemars::JsonSchema;
use serde::Deserialize;

use super::cluster::ClusterConfig;
use super::configured_index::ConfiguredIndex;
use super::engine::EngineConfig;
use super::error::SettingsError;
use super::index::IndexConfig;
use super::matrix::MatrixConfig;
use super::mirrors::MirrorConfig;
use super::named::{NamedIndexes, SecretSource};
use super::network::NetworkConfig;
use super::policy::PolicyConfig;
use super::registry::RegistryConfig;
use super::source::{SourceConfig, ToolkitConfig};
use super::tables::Origins;
use super::trust::TrustConfig;

/// The settings of a user, `~/.config/envforge/config.toml`, over those of the machine, `/etc/envforge/config.toml`. Every table and key
/// may be missing.
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
    /// Projects that may use mounts, ports and secrets of this machine without a question, and keys whose evidence counts.
    #[serde(default)]
    pub trust: TrustConfig,
    /// Rules that hold for every call.
    #[serde(default)]
    pub policy: PolicyConfig,
    /// The compatibility matrix.
    #[serde(default)]
    pub matrix: MatrixConfig,
    /// Clusters whose nodes start images from files.
    #[serde(default)]
    pub cluster: ClusterConfig,
    /// The file of each key that is set.
    #[serde(skip)]
    pub origins: Origins,
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
    use crate::settings::tables::TABLES;

    #[test]
    fn error_names_line_and_column() {
        let error = parse_config("c.toml".into(), "[mirrors]\ndebain = 'x'\n").unwrap_err().to_string();
        assert!(error.contains("line 2, column 1") && error.contains("debain"), "{error}");
    }

    #[test]
    fn tables_are_those_of_the_schema() {
        let schema = config_schema();
        let properties = schema.as_value()["properties"].as_object().expect("tables");
        let mut tables = TABLES.to_vec();
        tables.sort_unstable();
        let mut documented: Vec<&str> = properties.keys().map(String::as_str).collect();
        documented.sort_unstable();
        assert_eq!(tables, documented);
    }

    #[test]
    fn addresses_with_credentials_are_not_in_debug() {
        let text =
            "[index]\ndefault='https://u:hunter2@x/simple'\n[network]\nhttp-proxy='http://u:hunter2@p'";
        let config = parse_config("c".into(), text).unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}

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
use super::join::{ConfigText, Origins, joined};
use super::mirrors::MirrorConfig;
use super::named::{NamedIndexes, SecretSource};
use super::network::NetworkConfig;
use super::paths::UserDirectories;
use super::policy::PolicyConfig;
use super::registry::RegistryConfig;
use super::site::{ROOT, SITE_FILE, read_site};
use super::source::{SourceConfig, ToolkitConfig};
use super::trust::TrustConfig;
use super::variables;
use crate::model::request::GlobalOptions;

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
    /// The file of each key that is set.
    #[serde(skip)]
    pub origins: Origins,
}

/// Its tables.
pub(super) const TABLES: [&str; 11] = [
    "mirrors", "index", "indexes", "secrets", "network", "engine", "registry", "toolkit", "source", "trust",
    "policy",
];

/// Reads the configuration file that an argument or the environment names, else the user's own, over that of the site. Returns its
/// path, too, and what is to be warned of.
pub(super) fn read_config(
    args: &GlobalOptions,
    environment: &Environment,
    directories: &UserDirectories,
) -> Result<(Utf8PathBuf, Config, Vec<String>), SettingsError> {
    let site_file = Utf8Path::new(SITE_FILE);
    let site = read_site(site_file, ROOT)?;
    let site = site.as_ref().map(|text| ConfigText { file: site_file, text });
    let named =
        args.config.clone().or_else(|| variables::CONFIG.set_or_empty(environment).map(Utf8PathBuf::from));
    let path = named.clone().unwrap_or_else(|| directories.config.join("config.toml"));
    let text = match fs_err::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => None,
        Err(cause) => return Err(SettingsError::Unreadable { cause }),
    };
    let user = text.as_ref().map(|text| ConfigText { file: &path, text });
    let (config, warnings) = joined(site.as_ref(), user.as_ref())?;
    Ok((path, config, warnings))
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

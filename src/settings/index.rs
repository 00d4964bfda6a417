//! `[index]` and `[indexes]`: where Python packages come from. Addresses may hold credentials.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;

use super::environment::{Environment, first, set};
use super::named::{NamedIndexes, indexes};
use super::netrc::Netrc;

/// `[index]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct IndexConfig {
    /// The Python package index (simple API).
    pub default: Option<SecretString>,
    /// The framework's own index; `{cuda}` stands for the variant (`cu118`).
    pub framework: Option<SecretString>,
}

/// Package indexes.
#[derive(Debug, Clone, Default)]
pub struct PackageIndexes {
    /// The Python package index (simple API).
    pub default: Option<SecretString>,
    /// The framework's own index; `{cuda}` stands for the variant (`cu118`).
    pub framework: Option<SecretString>,
    /// Further indexes by name.
    pub named: BTreeMap<String, SecretString>,
    /// Logins by host, for addresses without one of their own.
    pub netrc: Netrc,
}

impl PackageIndexes {
    /// Joins environment and configuration.
    pub(super) fn of(environment: &Environment, config: IndexConfig, named: NamedIndexes) -> Self {
        let default = ["ENVFORGE_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"];
        let framework = set(environment, "ENVFORGE_FRAMEWORK_INDEX");
        Self {
            default: first(environment, &default).map(SecretString::from).or(config.default),
            framework: framework.map(SecretString::from).or(config.framework),
            named: indexes(named, environment),
            netrc: Netrc::default(),
        }
    }

    /// Uses pip's index if none is set.
    pub(super) fn add_pip_index(&mut self, environment: &Environment) {
        if self.default.is_none() {
            let home = environment.get("HOME").cloned().unwrap_or_default();
            self.default = [format!("{home}/.config/pip/pip.conf"), format!("{home}/.pip/pip.conf")]
                .into_iter()
                .chain(["/etc/pip.conf".to_owned()])
                .filter_map(|path| fs_err::read_to_string(path).ok())
                .find_map(|text| pip_index(&text))
                .map(SecretString::from);
        }
    }

    /// Adds the logins of `NETRC` or `~/.netrc`.
    pub(super) fn add_logins(&mut self, environment: &Environment) {
        let home = || set(environment, "HOME").map(|home| format!("{home}/.netrc"));
        let file = set(environment, "NETRC").or_else(home);
        let Some(text) = file.and_then(|file| fs_err::read_to_string(file).ok()) else { return };
        self.netrc = Netrc::parse(&text);
        let set = [&mut self.default, &mut self.framework].into_iter().flatten();
        for address in set.chain(self.named.values_mut()) {
            *address = self.netrc.with_login(address);
        }
    }
}

/// `index-url` of a pip configuration file's `[global]` or `[install]` section.
fn pip_index(text: &str) -> Option<String> {
    let mut section = "";
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
        } else if let Some((key, value)) = line.split_once('=')
            && matches!(section, "global" | "install")
            && matches!(key.trim(), "index-url" | "index_url")
        {
            return Some(value.trim().to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pip_configuration_has_the_index() {
        assert_eq!(pip_index("[global]\nindex-url = http://x/simple\n").as_deref(), Some("http://x/simple"));
        assert_eq!(pip_index("[search]\nindex-url = http://x/simple\n"), None);
    }
}

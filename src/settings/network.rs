//! `[network]`: how containers and this program reach other machines.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::Deserialize;

use super::environment::Environment;
use super::error::SettingsError;
use super::variables;
use crate::model::request::network::Network;

/// `[network]`.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NetworkConfig {
    /// Network mode of build containers: `bridge` (default) or `host`.
    pub mode: Option<String>,
    /// A file of CA certificates to trust. Default: that of the system.
    #[schemars(with = "Option<String>")]
    pub ca_bundle: Option<Utf8PathBuf>,
    /// Proxy for HTTP.
    pub http_proxy: Option<String>,
    /// Proxy for HTTPS.
    pub https_proxy: Option<String>,
    /// Hosts reached without proxy.
    pub no_proxy: Option<String>,
}

impl std::fmt::Debug for NetworkConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NetworkConfig(mode {:?}, ca_bundle {:?})", self.mode, self.ca_bundle)
    }
}

/// Network settings.
#[derive(Clone)]
pub struct NetworkSettings {
    /// Network mode of build containers.
    pub mode: Network,
    /// CA certificates this machine trusts, if a bundle was found.
    pub ca_bundle: Option<Utf8PathBuf>,
    /// Proxy variables, by their upper-case names. They may hold credentials.
    pub proxies: BTreeMap<String, String>,
}

impl NetworkSettings {
    /// Joins environment and configuration.
    pub(super) fn of(environment: &Environment, config: NetworkConfig) -> Result<Self, SettingsError> {
        let mode = variables::NETWORK.of(environment).or(config.mode);
        let mut proxies = BTreeMap::new();
        for (name, variable, configured) in [
            ("HTTP_PROXY", variables::HTTP_PROXY, config.http_proxy),
            ("HTTPS_PROXY", variables::HTTPS_PROXY, config.https_proxy),
            ("NO_PROXY", variables::NO_PROXY, config.no_proxy),
        ] {
            let found = variable.of(environment).or(configured);
            proxies.extend(found.map(|value| (name.to_owned(), value)));
        }
        let ca_bundle = variables::CA_BUNDLE.of(environment).map(Utf8PathBuf::from).or(config.ca_bundle);
        Ok(Self { mode: parse_network(mode.as_deref())?, ca_bundle, proxies })
    }

    /// Uses the system's CA bundle if none is set.
    pub(super) fn add_system_bundle(&mut self) {
        const BUNDLES: [&str; 4] = [
            "/etc/ssl/certs/ca-certificates.crt",
            "/etc/pki/tls/certs/ca-bundle.crt",
            "/etc/ssl/ca-bundle.pem",
            "/etc/ssl/cert.pem",
        ];
        if self.ca_bundle.is_none() {
            self.ca_bundle = BUNDLES.iter().map(Utf8PathBuf::from).find(|path| path.is_file());
        }
    }
}

/// Reads `bridge` or `host`; nothing is bridge.
pub fn parse_network(text: Option<&str>) -> Result<Network, SettingsError> {
    match text {
        None | Some("bridge") => Ok(Network::Bridge),
        Some("host") => Ok(Network::Host),
        Some(other) => Err(SettingsError::Value {
            setting: "network.mode (ENVFORGE_NETWORK, --network)",
            value: other.to_owned(),
            allowed: "bridge, host",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_read_in_either_spelling() {
        let pairs = [("https_proxy", "http://p:1"), ("NO_PROXY", "localhost")];
        let environment = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let found = NetworkSettings::of(&environment, NetworkConfig::default()).unwrap();
        assert_eq!(found.proxies["HTTPS_PROXY"], "http://p:1");
        assert_eq!(found.proxies["NO_PROXY"], "localhost");
        assert!(!found.proxies.contains_key("HTTP_PROXY"));
    }

    #[test]
    fn unknown_network_is_rejected() {
        assert!(parse_network(Some("bridged")).is_err());
        assert_eq!(parse_network(Some("host")).unwrap(), Network::Host);
    }
}

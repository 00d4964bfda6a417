//! What every command that works needs: settings made into an engine, a store, a fetcher and addresses.
#![expect(clippy::disallowed_methods, reason = "reads the CA bundle")]

use std::sync::Arc;

use bytes::Bytes;

use super::CommandError;
use crate::address::Address;
use crate::base::{MirrorSources, read_apt_sources};
use crate::engine::{Docker, Engine, EngineSettings, Network};
use crate::fetch::{FetchSettings, Fetcher};
use crate::packages::{IndexSettings, Proxies};
use crate::report::{Reporter, reporter};
use crate::settings::Settings;
use crate::store::Store;

/// Everything a command that works holds.
pub(super) struct Session<'a> {
    pub(super) settings: &'a Settings,
    pub(super) reporter: Arc<dyn Reporter>,
    pub(super) store: Store,
    pub(super) fetch: Fetcher,
    pub(super) engine: Arc<dyn Engine>,
    pub(super) index: IndexSettings,
    pub(super) network: Network,
}

impl<'a> Session<'a> {
    /// Connects to the engine and opens the folders. `network` is what was typed, if anything.
    pub(super) async fn open(settings: &'a Settings, network: Option<&str>) -> Result<Self, CommandError> {
        let network =
            network.map_or(Ok(settings.network), |text| crate::settings::parse_network(Some(text)))?;
        let ca_bundle = settings.ca_bundle.as_ref().map(fs_err::read).transpose()?.map(Bytes::from);
        let fetch = Fetcher::new(&fetch_settings(settings, ca_bundle.clone())?)?;
        let index = index_settings(settings, ca_bundle)?;
        let engine = Docker::connect(&EngineSettings {
            docker_host: settings.engine_host.clone(),
            docker_context: settings.docker_context.clone(),
            docker_config: Some(settings.docker_config.clone()),
        })
        .await?;
        Ok(Self {
            settings,
            reporter: reporter(settings.output),
            store: Store::open(&settings.cache_dir, &settings.state_dir)?,
            fetch,
            engine: Arc::new(engine),
            index,
            network,
        })
    }

    /// Where mirrors of the distribution are looked for: settings first, then this machine's own apt sources.
    pub(super) fn mirror_sources(&self) -> Result<MirrorSources, CommandError> {
        Ok(MirrorSources {
            main: self.settings.mirrors.debian.clone(),
            security: self.settings.mirrors.debian_security.clone(),
            apt: read_apt_sources("/etc/apt".into())?,
        })
    }

    /// What must be found nowhere in an image: addresses and credentials of this machine's settings.
    pub(super) fn forbidden(&self) -> Vec<String> {
        let mirrors = [&self.settings.mirrors.debian, &self.settings.mirrors.debian_security];
        let indexes = [&self.settings.index.default, &self.settings.index.framework];
        let addresses = mirrors.into_iter().chain(indexes).flatten().chain(self.settings.proxies.values());
        addresses.flat_map(|text| credentials(text)).collect()
    }
}

/// User name with password, and password alone, of an address that has them.
fn credentials(address: &str) -> Vec<String> {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host_part = rest.split(['/', '?']).next().unwrap_or(rest);
    let Some((user, _)) = host_part.rsplit_once('@') else { return Vec::new() };
    let password = user.split_once(':').map(|(_, password)| password.to_owned());
    [Some(user.to_owned()), password].into_iter().flatten().filter(|text| text.len() >= 4).collect()
}

fn address(setting: &'static str, text: Option<&String>) -> Result<Option<Address>, CommandError> {
    text.map(|text| text.parse()).transpose().map_err(|cause| CommandError::Address { setting, cause })
}

fn fetch_settings(settings: &Settings, extra_ca: Option<Bytes>) -> Result<FetchSettings, CommandError> {
    Ok(FetchSettings {
        http_proxy: address("HTTP_PROXY", settings.proxies.get("HTTP_PROXY"))?,
        https_proxy: address("HTTPS_PROXY", settings.proxies.get("HTTPS_PROXY"))?,
        no_proxy: settings.proxies.get("NO_PROXY").cloned(),
        extra_ca,
        ..FetchSettings::default()
    })
}

fn index_settings(settings: &Settings, ca_bundle: Option<Bytes>) -> Result<IndexSettings, CommandError> {
    const FRAMEWORK: &str = "index.framework (ENVFORGE_FRAMEWORK_INDEX)";
    let framework = settings.index.framework.as_ref().map(|text| text.parse()).transpose();
    Ok(IndexSettings {
        default: address("index.default (ENVFORGE_INDEX)", settings.index.default.as_ref())?,
        framework: framework.map_err(|cause| CommandError::Address { setting: FRAMEWORK, cause })?,
        ca_bundle,
        proxies: Proxies(settings.proxies.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::credentials;

    #[test]
    fn only_credentials_are_forbidden_not_hosts() {
        assert_eq!(credentials("http://u:planted-token@host/simple"), ["u:planted-token", "planted-token"]);
        assert_eq!(credentials("http://token-only@host:80"), ["token-only"]);
        assert!(credentials("http://host/a@b").is_empty());
    }
}

//! What every command that works needs: settings made into an engine, a store, a fetcher and addresses.
#![expect(clippy::disallowed_methods, reason = "reads the CA bundle and secrets")]

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::Arc;

use bytes::Bytes;
use camino::{Utf8Path, Utf8PathBuf};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::OnceCell;

use crate::base::{AptSources, BaseError, MirrorSources};
use crate::engine::{Containers, Docker, Engine, Network};
use crate::fetch::{FetchSettings, Fetcher};
use crate::model::address::Address;
use crate::model::compat::Matrix;
use crate::model::layer_compression::LayerCompression;
use crate::model::request::LockOptions;
use crate::packages::{IndexSettings, Proxies, Resolver, VendorSettings};
use crate::registry::Registry;
use crate::report::{Reporter, reporter};
use crate::settings::{NamedSecret, Settings};
use crate::store::Store;
use crate::workflow::error::CommandError;
use crate::workflow::layer_sources::LayerSources;
use crate::workflow::request_error::RequestError;

/// Everything a command that works holds.
#[derive(Clone)]
pub(crate) struct Session<'a> {
    pub(crate) settings: &'a Settings,
    /// The matrix of the settings, with the row of a base of the user's own.
    pub(crate) matrix: Arc<Matrix>,
    pub(crate) reporter: Arc<dyn Reporter>,
    pub(crate) store: Store,
    pub(crate) fetch: Fetcher,
    pub(crate) registry: Registry,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) containers: Arc<dyn Containers>,
    pub(crate) index: IndexSettings,
    pub(crate) network: Network,
    /// Whether to accept package indexes older than the newest ones seen.
    pub(crate) accept_older: bool,
    /// Whether the image that resolves and apt's lists are made again, however new they are (`lock --refresh`).
    pub(crate) refresh: bool,
    pub(crate) vendor: VendorSettings,
    pub(crate) apt_sources: AptSources,
    /// The image that resolves, once something was to be resolved.
    pub(crate) resolver: Arc<OnceCell<Resolver>>,
    /// Where finished layers are looked for.
    pub(crate) layer_sources: LayerSources,
    /// How layers of pushed images are compressed.
    pub(crate) layer_compression: LayerCompression,
}

/// Where a command has things from. It is decided once, before anything is opened.
#[derive(Debug, Clone, Default)]
pub(crate) enum Origin {
    /// Registries, indexes and mirrors, as the settings say.
    #[default]
    Network,
    /// A vendor folder. A base that neither it nor the engine has is looked for in its registry.
    Vendor(Utf8PathBuf),
}

impl Origin {
    /// That of `--offline DIR`.
    pub(crate) fn of_offline(folder: Option<&Utf8PathBuf>, settings: &Settings) -> Self {
        folder.map_or(Self::Network, |folder| Self::Vendor(settings.paths.current_dir.join(folder)))
    }

    /// The vendor folder, if things come from one.
    pub(crate) fn folder(&self) -> Option<&Utf8Path> {
        match self {
            Self::Network => None,
            Self::Vendor(folder) => Some(folder),
        }
    }
}

/// How a session differs from what the settings say.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionOptions {
    /// Where things come from.
    pub(crate) origin: Origin,
    /// The network mode of build containers, as typed.
    pub(crate) network: Option<String>,
    /// Whether to accept package indexes older than the newest ones seen.
    pub(crate) accept_older: bool,
    /// Whether the image that resolves and apt's lists are made again.
    pub(crate) refresh: bool,
    /// How layers of pushed images are compressed.
    pub(crate) compression: Option<LayerCompression>,
}

impl SessionOptions {
    /// Those of a command that resolves packages.
    pub(crate) fn of(source: &LockOptions) -> Self {
        Self { network: source.network.clone(), accept_older: source.accept_older, ..Self::default() }
    }
}

/// The one session of a command. It is opened when it is first needed: what can be said without an engine is said without one.
pub(crate) struct LazySession<'a> {
    pub(crate) settings: &'a Settings,
    options: SessionOptions,
    opened: OnceCell<Session<'a>>,
}

impl<'a> LazySession<'a> {
    /// A session with these options, not open yet.
    pub(crate) fn new(settings: &'a Settings, options: SessionOptions) -> Self {
        Self { settings, options, opened: OnceCell::new() }
    }

    /// One as the settings say.
    pub(crate) fn of(settings: &'a Settings) -> Self {
        Self::new(settings, SessionOptions::default())
    }

    /// Where things come from.
    pub(crate) fn origin(&self) -> &Origin {
        &self.options.origin
    }

    /// The session, which the first call opens.
    pub(crate) async fn session(&self) -> Result<&Session<'a>, CommandError> {
        self.opened.get_or_try_init(|| Session::open(self.settings, &self.options)).await
    }
}

impl<'a> Session<'a> {
    /// Connects to the engine and opens the folders.
    async fn open(settings: &'a Settings, options: &SessionOptions) -> Result<Self, CommandError> {
        let named = options.network.as_deref().map(|text| crate::settings::parse_network(Some(text)));
        let named = named.transpose()?.unwrap_or(settings.network.mode);
        let (network, layer_sources) = match &options.origin {
            Origin::Network => (named, LayerSources::new(settings.registry.layers.clone())),
            Origin::Vendor(folder) => (Network::None, LayerSources::of_folder(folder.clone())),
        };
        let (fetch, index) = downloads(settings)?;
        let docker = Arc::new(connect(settings).await?);
        let (engine, containers) = (Arc::clone(&docker) as Arc<dyn Engine>, docker as Arc<dyn Containers>);
        Ok(Self {
            settings,
            matrix: Arc::clone(&settings.matrix),
            reporter: reporter(settings.output),
            store: Store::open(&settings.paths.cache, &settings.paths.state)?,
            registry: Registry::new(fetch.clone(), settings.registry.clone()),
            fetch,
            engine,
            containers,
            index,
            network,
            accept_older: options.accept_older,
            refresh: options.refresh,
            vendor: vendor_settings(settings)?,
            apt_sources: AptSources::default(),
            resolver: Arc::default(),
            layer_sources,
            layer_compression: options.compression.unwrap_or(settings.registry.compression),
        })
    }

    /// The same session with another reporter.
    pub(crate) fn with_reporter(&self, reporter: Arc<dyn Reporter>) -> Self {
        Self { reporter, ..self.clone() }
    }

    /// Where mirrors of the distribution are looked for: settings first, then this machine's own apt sources.
    pub(crate) fn mirror_sources(&self) -> Result<MirrorSources, BaseError> {
        Ok(MirrorSources {
            main: self.settings.mirrors.debian.clone(),
            security: self.settings.mirrors.debian_security.clone(),
            ubuntu: self.settings.mirrors.ubuntu.clone(),
            ubuntu_security: self.settings.mirrors.ubuntu_security.clone(),
            apt: self.apt_sources.texts()?.to_vec(),
        })
    }

    /// What must be found nowhere in an image: addresses and credentials of this machine's settings.
    pub(crate) fn forbidden_strings(&self) -> Vec<String> {
        let mirrors = &self.settings.mirrors;
        let mirrors = [
            &mirrors.debian,
            &mirrors.debian_security,
            &mirrors.ubuntu,
            &mirrors.ubuntu_security,
            &mirrors.nvidia,
            &self.settings.source.mirror,
        ];
        let index = &self.settings.index;
        let indexes = [&index.default, &index.framework].into_iter().flatten().chain(index.named.values());
        let indexes = indexes.chain(index.of_framework.values());
        let addresses = mirrors.into_iter().flatten().chain(self.settings.network.proxies.values());
        let addresses = addresses.map(String::as_str).chain(indexes.map(ExposeSecret::expose_secret));
        let secrets = self.settings.secrets.values().filter_map(secret_text);
        addresses.flat_map(credentials).chain(secrets).collect()
    }
}

/// Bytes of a secret's file that are searched for.
const SEARCHED_SECRET: u64 = 64 << 10;

/// Where the release archive of a row may lie: the folder of the settings, then its own place.
pub(crate) fn archive_addresses(
    settings: &Settings,
    row: &crate::model::compat::tables::SourceBuild,
) -> Result<Vec<Address>, CommandError> {
    let mirror = address("source.mirror (ENVFORGE_SOURCE_MIRROR)", settings.source.mirror.as_ref())?;
    let own = row.address.as_ref().and_then(|text| text.parse().ok());
    Ok(mirror.map(|folder| folder.join(&row.archive)).into_iter().chain(own).collect())
}

/// The engine that the settings lead to.
pub(crate) async fn connect(settings: &Settings) -> Result<Docker, CommandError> {
    Ok(Docker::connect(&settings.engine).await?)
}

/// The text to search for of a secret: the whole value, of several lines too, without the line break that ends a file.
/// `None`: it cannot be read here, so no image has it from here.
fn secret_text(secret: &NamedSecret) -> Option<String> {
    let bytes = match secret {
        NamedSecret::Value(value) => value.expose_secret().as_bytes().to_vec(),
        // The beginning of a large file is in every copy of it.
        NamedSecret::File(file) => {
            let mut bytes = Vec::new();
            fs_err::File::open(file).ok()?.take(SEARCHED_SECRET).read_to_end(&mut bytes).ok()?;
            bytes
        }
        NamedSecret::Unset(_) => return None,
    };
    // Texts are separated by NUL and are UTF-8: of other bytes the longest run that is both.
    let runs = bytes.utf8_chunks().flat_map(|chunk| chunk.valid().split('\0'));
    let text = runs.max_by_key(|run| run.len())?.trim_matches(['\r', '\n']);
    (text.len() >= 4).then(|| text.to_owned())
}

/// User name with password, and password alone, of an address that has them.
fn credentials(address: &str) -> Vec<String> {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host_part = rest.split(['/', '?']).next().unwrap_or(rest);
    let Some((user, _)) = host_part.rsplit_once('@') else { return Vec::new() };
    let password = user.split_once(':').map(|(_, password)| password.to_owned());
    [Some(user.to_owned()), password].into_iter().flatten().filter(|text| text.len() >= 4).collect()
}

fn address(setting: &'static str, text: Option<&String>) -> Result<Option<Address>, RequestError> {
    text.map(|text| text.parse()).transpose().map_err(|cause| RequestError::Address { setting, cause })
}

/// Downloads, and where packages come from: as the settings say.
pub(crate) fn downloads(settings: &Settings) -> Result<(Fetcher, IndexSettings), CommandError> {
    let ca_bundle = settings.network.ca_bundle.as_ref().map(fs_err::read).transpose()?.map(Bytes::from);
    let fetch = Fetcher::new(&fetch_settings(settings, ca_bundle.clone())?)?;
    Ok((fetch, index_settings(settings, ca_bundle)?))
}

fn fetch_settings(settings: &Settings, extra_ca: Option<Bytes>) -> Result<FetchSettings, CommandError> {
    Ok(FetchSettings {
        http_proxy: address("HTTP_PROXY", settings.network.proxies.get("HTTP_PROXY"))?,
        https_proxy: address("HTTPS_PROXY", settings.network.proxies.get("HTTPS_PROXY"))?,
        no_proxy: settings.network.proxies.get("NO_PROXY").cloned(),
        extra_ca,
        ..FetchSettings::default()
    })
}

fn index_settings(settings: &Settings, ca_bundle: Option<Bytes>) -> Result<IndexSettings, CommandError> {
    const FRAMEWORK: &str = "index.framework (ENVFORGE_FRAMEWORK_INDEX)";
    let exposed = |secret: &Option<SecretString>| secret.as_ref().map(|text| text.expose_secret().to_owned());
    let framework = exposed(&settings.index.framework).map(|text| text.parse()).transpose();
    let default = exposed(&settings.index.default);
    let of_framework = settings.index.of_framework.iter().map(|(name, text)| {
        let parsed = text.expose_secret().parse();
        let own = |cause| RequestError::Address { setting: "own index of a framework in `[index]`", cause };
        Ok((name.clone(), parsed.map_err(own)?))
    });
    Ok(IndexSettings {
        of_framework: of_framework.collect::<Result<_, RequestError>>()?,
        default: address("index.default (ENVFORGE_INDEX)", default.as_ref())?,
        further: BTreeMap::new(),
        of_project: false,
        framework: framework.map_err(|cause| RequestError::Address { setting: FRAMEWORK, cause })?,
        ca_bundle,
        proxies: Proxies(settings.network.proxies.clone()),
    })
}

/// Where the vendor's repositories lie and whose key signs them.
fn vendor_settings(settings: &Settings) -> Result<VendorSettings, CommandError> {
    let mirrors = &settings.mirrors;
    let parse = |text: &String| {
        text.parse().map_err(|cause| RequestError::Address { setting: "[mirrors] nvidia", cause })
    };
    Ok(VendorSettings {
        root: mirrors.nvidia.as_ref().map(parse).transpose()?,
        key: mirrors.nvidia_key.as_ref().map(fs_err::read).transpose()?.map(Bytes::from),
        fingerprint: mirrors.nvidia_fingerprint.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_files_and_of_several_lines_are_searched_for_as_one_text() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, bytes: &[u8]| {
            let path = camino::Utf8PathBuf::from_path_buf(folder.path().join(name)).expect("UTF-8");
            fs_err::write(&path, bytes).expect("written");
            secret_text(&NamedSecret::File(path))
        };
        assert_eq!(file("token", b"planted-token\n").as_deref(), Some("planted-token"));
        let key = "-----BEGIN KEY-----\nabc\ndef\n-----END KEY-----";
        assert_eq!(file("key", format!("{key}\r\n").as_bytes()).as_deref(), Some(key));
        assert_eq!(file("binary", b"\xff\xfeab\0planted-token\xff").as_deref(), Some("planted-token"));
        assert_eq!(file("large", &vec![b'x'; 1 << 20]).map(|text| text.len()), Some(64 << 10));
        assert_eq!(file("short", b"abc\n"), None);
        assert_eq!(secret_text(&NamedSecret::File("/nonexistent/secret".into())), None);
        let value = NamedSecret::Value("line one\nline two".to_owned().into());
        assert_eq!(secret_text(&value).as_deref(), Some("line one\nline two"));
        assert_eq!(secret_text(&NamedSecret::Unset("HF_TOKEN".to_owned())), None);
    }

    #[test]
    fn only_credentials_are_forbidden_not_hosts() {
        assert_eq!(credentials("http://u:planted-token@host/simple"), ["u:planted-token", "planted-token"]);
        assert_eq!(credentials("http://token-only@host:80"), ["token-only"]);
        assert!(credentials("http://host/a@b").is_empty());
    }
}

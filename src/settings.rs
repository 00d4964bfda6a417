//! Arguments, environment and configuration file become one value, built once.
//!
//! The only reader of the environment; nothing below it asks the machine for a preference. `from_parts` is pure and
//! holds the precedence: argument, then environment, then configuration file, then the host's own tool settings.
#![expect(clippy::disallowed_methods, reason = "the one place that reads environment and configuration")]

mod error;
pub mod image_registry;
mod named;
mod netrc;
mod registry;
mod toolkit;

pub use error::SettingsError;
pub use named::{NamedIndexes, NamedSecret, SecretSource};
pub use netrc::Netrc;
pub use registry::{ImageMirrorConfig, RegistryConfig};
pub use toolkit::{SourceConfig, ToolkitConfig};

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;

use crate::model::request::network::Network;
use crate::model::request::{GlobalOptions, ProgressMode};
use crate::model::resolve::ToolkitSources;
use image_registry::RegistrySettings;
use registry::registry_settings;
use toolkit::toolkit_sources;

/// The environment as it was when the program started.
pub type Environment = BTreeMap<String, String>;

/// The configuration file, `~/.config/envforge/config.toml`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Where distribution packages come from.
    #[serde(default)]
    pub mirrors: MirrorConfig,
    /// Where Python packages come from.
    #[serde(default)]
    pub index: IndexConfig,
    /// How machines are reached.
    #[serde(default)]
    pub network: NetworkConfig,
    /// The container engine.
    #[serde(default)]
    pub engine: EngineConfig,
    /// Image registries.
    #[serde(default)]
    pub registry: RegistryConfig,
    /// Further package indexes, by the names projects call them.
    #[serde(default)]
    pub indexes: NamedIndexes,
    /// Secrets of run steps, by the names projects call them.
    #[serde(default)]
    pub secrets: BTreeMap<String, SecretSource>,
    /// The compiler of the devel flavour.
    #[serde(default)]
    pub toolkit: ToolkitConfig,
    /// Release archives of what is built from source.
    #[serde(default)]
    pub source: SourceConfig,
}

/// `[mirrors]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MirrorConfig {
    /// Root of a Debian mirror, the folder that holds `dists/` and `pool/`.
    pub debian: Option<String>,
    /// Root of a Debian security mirror.
    pub debian_security: Option<String>,
    /// Accept a signed index whose validity has ended.
    #[serde(default)]
    pub accept_expired: bool,
    /// For image registries by host: where else their images may be had.
    #[serde(default)]
    pub images: ImageMirrorConfig,
    /// A copy of the vendor's apt repositories: the folder that holds `debian12/` and its like.
    pub nvidia: Option<String>,
    /// A file with their signing key, if it does not lie beside their index.
    pub nvidia_key: Option<Utf8PathBuf>,
    /// The fingerprint of that key, if it is not the vendor's own.
    pub nvidia_fingerprint: Option<String>,
}

/// `[index]`. Addresses may hold credentials, so this type has no `Debug` that prints them.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct IndexConfig {
    /// The Python package index (simple API).
    pub default: Option<String>,
    /// The framework's own index; `{cuda}` stands for the variant (`cu118`).
    pub framework: Option<String>,
}

impl std::fmt::Debug for IndexConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known = |value: &Option<String>| if value.is_some() { "set" } else { "unset" };
        write!(f, "IndexConfig(default {}, framework {})", known(&self.default), known(&self.framework))
    }
}

/// `[network]`.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NetworkConfig {
    /// `bridge` or `host`: where containers get their network from.
    pub mode: Option<String>,
    /// A file of CA certificates to trust.
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

/// `[engine]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EngineConfig {
    /// Address of the engine, as in `DOCKER_HOST`.
    pub host: Option<String>,
}

/// How results and progress are shown.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct Output {
    /// One JSON object on stdout.
    pub json: bool,
    /// Errors only.
    pub quiet: bool,
    /// 0, 1 (debug), 2 (trace).
    pub verbose: u8,
    /// How progress is shown.
    pub progress: ProgressMode,
    /// Moving bars are allowed.
    pub bars: bool,
    /// Colour is allowed.
    pub color: bool,
}

/// What the environment says of the target; `None`: not set, empty: no GPU.
#[derive(Debug, Clone, Default)]
pub struct TargetOverrides {
    /// `ENVFORGE_GPU`, split at commas.
    pub gpu: Option<Vec<String>>,
    /// `ENVFORGE_DRIVER`.
    pub driver: Option<String>,
}

/// Everything a command needs to know of its surroundings.
#[derive(Clone)]
pub struct Settings {
    /// How results and progress are shown.
    pub output: Output,
    /// Where downloads are kept.
    pub cache_dir: Utf8PathBuf,
    /// Where locks and reports are kept.
    pub state_dir: Utf8PathBuf,
    /// The configuration file that was read, or the one that a hint should name.
    pub config_file: Utf8PathBuf,
    /// Address of the engine, if one was named.
    pub engine_host: Option<String>,
    /// `DOCKER_TLS_VERIFY`: the engine's tcp address is spoken to with TLS.
    pub tls_verify: bool,
    /// `DOCKER_CERT_PATH`: where the files for TLS lie.
    pub cert_path: Option<Utf8PathBuf>,
    /// `XDG_RUNTIME_DIR`: where engines without root listen.
    pub runtime_dir: Option<Utf8PathBuf>,
    /// Docker context, if one was named.
    pub docker_context: Option<String>,
    /// The user's Docker configuration folder.
    pub docker_config: Utf8PathBuf,
    /// Where containers get their network from.
    pub network: Network,
    /// Debian mirror and its security mirror, as configured.
    pub mirrors: MirrorConfig,
    /// Where nvcc may come from.
    pub toolkit: ToolkitSources,
    /// A folder that holds release archives.
    pub source_mirror: Option<String>,
    /// Python package indexes.
    pub index: IndexConfig,
    /// Further package indexes by name. They may hold credentials.
    pub indexes: BTreeMap<String, String>,
    /// Logins of package indexes by host, for addresses without one of their own.
    pub netrc: Netrc,
    /// Secrets of run steps by name.
    pub secrets: BTreeMap<String, NamedSecret>,
    /// Proxy variables, by their upper-case names.
    pub proxies: BTreeMap<String, String>,
    /// CA certificates this machine trusts, if a bundle was found.
    pub ca_bundle: Option<Utf8PathBuf>,
    /// How image registries are reached.
    pub registry: RegistrySettings,
    /// Target named by the environment.
    pub target: TargetOverrides,
    /// The caller's working folder.
    pub current_dir: Utf8PathBuf,
    /// The caller's environment, for what is passed on by name.
    pub environment: Environment,
}

impl Settings {
    /// Reads environment and files of this machine.
    pub fn load(args: &GlobalOptions, stderr_is_terminal: bool) -> Result<Self, SettingsError> {
        let environment: Environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let current_dir = std::env::current_dir()
            .ok()
            .and_then(|dir| Utf8PathBuf::from_path_buf(dir).ok())
            .unwrap_or_else(|| Utf8PathBuf::from("."));
        let folders = Folders::of(&environment)?;
        let (config_file, config) = read_config(args, &environment, &folders)?;
        let mut settings =
            Self::from_parts(args, &environment, folders, config, config_file, stderr_is_terminal)?;
        settings.current_dir = current_dir;
        settings.add_host_settings(&environment);
        settings.add_logins(&environment);
        Ok(settings)
    }

    /// The precedence, without touching the machine.
    pub fn from_parts(
        args: &GlobalOptions,
        environment: &Environment,
        folders: Folders,
        config: Config,
        config_file: Utf8PathBuf,
        stderr_is_terminal: bool,
    ) -> Result<Self, SettingsError> {
        let set = |name: &str| environment.get(name).filter(|value| !value.is_empty()).cloned();
        let first = |names: &[&str]| names.iter().find_map(|name| set(name));
        let dumb = set("TERM").is_some_and(|term| term == "dumb");
        let network = set("ENVFORGE_NETWORK").or(config.network.mode.clone());
        let docker_config = set("DOCKER_CONFIG").map_or(folders.docker, Utf8PathBuf::from);
        let registry = registry_settings(
            &set,
            &config.mirrors.images,
            &config.registry,
            docker_config.clone(),
            folders.certificates,
        )?;
        let mut proxies = BTreeMap::new();
        for (name, configured) in [
            ("HTTP_PROXY", &config.network.http_proxy),
            ("HTTPS_PROXY", &config.network.https_proxy),
            ("NO_PROXY", &config.network.no_proxy),
        ] {
            let found = first(&[name, &name.to_lowercase()]).or_else(|| configured.clone());
            proxies.extend(found.map(|value| (name.to_owned(), value)));
        }
        Ok(Self {
            output: Output {
                json: args.json,
                quiet: args.quiet,
                verbose: args.verbose,
                progress: if args.no_progress && args.progress == ProgressMode::Auto {
                    ProgressMode::Plain
                } else {
                    args.progress
                },
                bars: stderr_is_terminal && !dumb && !args.no_progress && args.verbose == 0,
                color: stderr_is_terminal && !dumb && set("NO_COLOR").is_none(),
            },
            cache_dir: set("ENVFORGE_CACHE_DIR").map_or(folders.cache, Utf8PathBuf::from),
            state_dir: set("ENVFORGE_STATE_DIR").map_or(folders.state, Utf8PathBuf::from),
            config_file,
            engine_host: set("DOCKER_HOST").or(config.engine.host),
            tls_verify: set("DOCKER_TLS_VERIFY").is_some(),
            cert_path: set("DOCKER_CERT_PATH").map(Utf8PathBuf::from),
            runtime_dir: set("XDG_RUNTIME_DIR").map(Utf8PathBuf::from),
            docker_context: set("DOCKER_CONTEXT"),
            docker_config,
            network: parse_network(network.as_deref())?,
            mirrors: MirrorConfig {
                debian: set("ENVFORGE_DEBIAN_MIRROR").or(config.mirrors.debian),
                debian_security: set("ENVFORGE_DEBIAN_SECURITY_MIRROR").or(config.mirrors.debian_security),
                accept_expired: config.mirrors.accept_expired,
                images: config.mirrors.images,
                nvidia: set("ENVFORGE_NVIDIA_MIRROR").or(config.mirrors.nvidia),
                nvidia_key: set("ENVFORGE_NVIDIA_KEY").map(Utf8PathBuf::from).or(config.mirrors.nvidia_key),
                nvidia_fingerprint: set("ENVFORGE_NVIDIA_FINGERPRINT").or(config.mirrors.nvidia_fingerprint),
            },
            registry,
            toolkit: toolkit_sources(
                set("ENVFORGE_NVCC_SOURCES").map(|text| split_list(&text)).or(config.toolkit.sources),
            )?,
            source_mirror: set("ENVFORGE_SOURCE_MIRROR").or(config.source.mirror),
            index: IndexConfig {
                default: first(&["ENVFORGE_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"])
                    .or(config.index.default),
                framework: set("ENVFORGE_FRAMEWORK_INDEX").or(config.index.framework),
            },
            indexes: named::indexes(config.indexes, environment),
            netrc: Netrc::default(),
            secrets: named::secrets(config.secrets, environment),
            proxies,
            ca_bundle: first(&["ENVFORGE_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT"])
                .map(Utf8PathBuf::from)
                .or(config.network.ca_bundle),
            target: TargetOverrides {
                gpu: environment.get("ENVFORGE_GPU").map(|text| split_list(text)),
                driver: environment.get("ENVFORGE_DRIVER").cloned(),
            },
            current_dir: Utf8PathBuf::from("."),
            environment: environment.clone(),
        })
    }

    /// Gives the package indexes the logins of `NETRC` or `~/.netrc`.
    fn add_logins(&mut self, environment: &Environment) {
        let set = |name: &str| environment.get(name).filter(|value| !value.is_empty());
        let file = set("NETRC").cloned().or_else(|| set("HOME").map(|home| format!("{home}/.netrc")));
        let Some(text) = file.and_then(|file| fs_err::read_to_string(file).ok()) else { return };
        self.netrc = Netrc::parse(&text);
        let named = [&mut self.index.default, &mut self.index.framework].into_iter().flatten();
        for address in named.chain(self.indexes.values_mut()) {
            *address = self.netrc.with_login(address);
        }
    }

    /// Fills what nobody set from the host's own tool settings: pip's index, the system's CA bundle.
    fn add_host_settings(&mut self, environment: &Environment) {
        const BUNDLES: [&str; 4] = [
            "/etc/ssl/certs/ca-certificates.crt",
            "/etc/pki/tls/certs/ca-bundle.crt",
            "/etc/ssl/ca-bundle.pem",
            "/etc/ssl/cert.pem",
        ];
        if self.ca_bundle.is_none() {
            self.ca_bundle = BUNDLES.iter().map(Utf8PathBuf::from).find(|path| path.is_file());
        }
        if self.index.default.is_none() {
            let home = environment.get("HOME").cloned().unwrap_or_default();
            self.index.default = [format!("{home}/.config/pip/pip.conf"), format!("{home}/.pip/pip.conf")]
                .into_iter()
                .chain(["/etc/pip.conf".to_owned()])
                .filter_map(|path| fs_err::read_to_string(path).ok())
                .find_map(|text| pip_index(&text));
        }
    }
}

/// The folders of the user, before any setting.
#[derive(Debug, Clone)]
pub struct Folders {
    /// `~/.cache/envforge`.
    pub cache: Utf8PathBuf,
    /// `~/.local/state/envforge`.
    pub state: Utf8PathBuf,
    /// `~/.config/envforge`.
    pub config: Utf8PathBuf,
    /// `~/.docker`.
    pub docker: Utf8PathBuf,
    /// Where engines keep the certificate authorities of registries: the system's and the user's `certs.d`.
    pub certificates: Vec<Utf8PathBuf>,
}

impl Folders {
    /// The XDG folders of that environment.
    pub fn of(environment: &Environment) -> Result<Self, SettingsError> {
        let home = environment.get("HOME").filter(|home| !home.is_empty());
        let all_named =
            ["ENVFORGE_CACHE_DIR", "ENVFORGE_STATE_DIR"].iter().all(|name| environment.contains_key(*name));
        let home = match home {
            Some(home) => Utf8PathBuf::from(home),
            None if all_named => Utf8PathBuf::from("/nonexistent"),
            None => return Err(SettingsError::NoHome),
        };
        let root = |name: &str, default: &str| {
            let named = environment.get(name).filter(|value| Utf8Path::new(value).is_absolute());
            named.map_or_else(|| home.join(default), Utf8PathBuf::from)
        };
        let xdg = |name, default| root(name, default).join("envforge");
        let config = root("XDG_CONFIG_HOME", ".config");
        Ok(Self {
            cache: xdg("XDG_CACHE_HOME", ".cache"),
            state: xdg("XDG_STATE_HOME", ".local/state"),
            certificates: vec![
                "/etc/docker/certs.d".into(),
                "/etc/containers/certs.d".into(),
                config.join("docker/certs.d"),
                config.join("containers/certs.d"),
            ],
            config: config.join("envforge"),
            docker: home.join(".docker"),
        })
    }
}

fn read_config(
    args: &GlobalOptions,
    environment: &Environment,
    folders: &Folders,
) -> Result<(Utf8PathBuf, Config), SettingsError> {
    let named = args.config.clone().or_else(|| environment.get("ENVFORGE_CONFIG").map(Utf8PathBuf::from));
    let path = named.clone().unwrap_or_else(|| folders.config.join("config.toml"));
    match fs_err::read_to_string(&path) {
        Ok(text) => Ok((path.clone(), parse_config(&path, &text)?)),
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            Ok((path, Config::default()))
        }
        Err(cause) => Err(SettingsError::Unreadable { cause }),
    }
}

/// Parses a configuration file; the error names line and column.
pub fn parse_config(file: &Utf8Path, text: &str) -> Result<Config, SettingsError> {
    toml::from_str(text).map_err(|error| SettingsError::Malformed {
        file: file.to_owned(),
        detail: error.to_string().trim_end().to_owned(),
    })
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

fn split_list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
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

    fn args() -> GlobalOptions {
        GlobalOptions {
            json: false,
            quiet: false,
            verbose: 0,
            no_progress: false,
            progress: ProgressMode::Auto,
            config: None,
        }
    }

    fn settings(pairs: &[(&str, &str)], config: &str) -> Settings {
        let mut environment: Environment = pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        environment.entry("HOME".into()).or_insert_with(|| "/home/u".into());
        let folders = Folders::of(&environment).unwrap();
        let config = parse_config("c.toml".into(), config).unwrap();
        Settings::from_parts(&args(), &environment, folders, config, "c.toml".into(), false).unwrap()
    }

    #[test]
    fn the_environment_wins_over_the_file() {
        let file = "[mirrors]\ndebian = 'http://file'\n[index]\ndefault = 'http://file'";
        let from_file = settings(&[], file);
        assert_eq!(from_file.mirrors.debian.as_deref(), Some("http://file"));
        assert_eq!(from_file.index.default.as_deref(), Some("http://file"));
        let both =
            settings(&[("ENVFORGE_DEBIAN_MIRROR", "http://env"), ("PIP_INDEX_URL", "http://env")], file);
        assert_eq!(both.mirrors.debian.as_deref(), Some("http://env"));
        assert_eq!(both.index.default.as_deref(), Some("http://env"));
    }

    #[test]
    fn an_empty_gpu_means_no_gpu_and_an_absent_one_means_unknown() {
        assert_eq!(settings(&[], "").target.gpu, None);
        assert_eq!(settings(&[("ENVFORGE_GPU", "")], "").target.gpu, Some(vec![]));
        let two = settings(&[("ENVFORGE_GPU", "sm_90, NVIDIA L4")], "").target.gpu;
        assert_eq!(two, Some(vec!["sm_90".into(), "NVIDIA L4".into()]));
    }

    #[test]
    fn a_malformed_file_names_line_and_column() {
        let error = parse_config("c.toml".into(), "[mirrors]\ndebain = 'x'\n").unwrap_err().to_string();
        assert!(error.contains("line 2, column 1") && error.contains("debain"), "{error}");
    }

    #[test]
    fn proxies_are_found_in_either_spelling() {
        let found = settings(&[("https_proxy", "http://p:1"), ("NO_PROXY", "localhost")], "");
        assert_eq!(found.proxies["HTTPS_PROXY"], "http://p:1");
        assert_eq!(found.proxies["NO_PROXY"], "localhost");
        assert!(!found.proxies.contains_key("HTTP_PROXY"));
    }

    #[test]
    fn pip_configuration_gives_the_index() {
        assert_eq!(pip_index("[global]\nindex-url = http://x/simple\n").as_deref(), Some("http://x/simple"));
        assert_eq!(pip_index("[search]\nindex-url = http://x/simple\n"), None);
    }

    #[test]
    fn an_unknown_network_is_refused() {
        assert!(parse_network(Some("bridged")).is_err());
        assert_eq!(parse_network(Some("host")).unwrap(), Network::Host);
    }

    #[test]
    fn addresses_with_credentials_are_not_in_debug() {
        let config = parse_config("c".into(), "[index]\ndefault='https://u:hunter2@x/simple'").unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}

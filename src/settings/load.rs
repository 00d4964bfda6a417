//! The settings of one call.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8PathBuf;

use super::cluster::ClusterConfig;
use super::config::Config;
use super::engine::EngineSettings;
use super::environment::Environment;
use super::error::SettingsError;
use super::image_registry::RegistrySettings;
use super::index::PackageIndexes;
use super::matrix::MatrixSettings;
use super::mirrors::MirrorConfig;
use super::named::{NamedSecret, secrets};
use super::network::NetworkSettings;
use super::output::{Output, Terminals};
use super::paths::{Paths, UserDirectories};
use super::policy::PolicyConfig;
use super::read::read_config;
use super::registry::registry_settings;
use super::signing::SigningSettings;
use super::source::SourceSettings;
use super::tables::Origins;
use super::target::TargetOverrides;
use super::trust::TrustConfig;
use super::variables::VARIABLES;
use crate::model::compat::Matrix;
use crate::model::request::GlobalOptions;

/// Everything a command needs to know of its surroundings.
#[derive(Clone)]
pub struct Settings {
    /// How results and progress are shown.
    pub output: Output,
    /// Directories and files.
    pub paths: Paths,
    /// The container engine.
    pub engine: EngineSettings,
    /// Network, proxies and certificates.
    pub network: NetworkSettings,
    /// Mirrors of the distribution, the vendor and image registries.
    pub mirrors: MirrorConfig,
    /// Sources of compilers and release archives.
    pub source: SourceSettings,
    /// Python package indexes.
    pub index: PackageIndexes,
    /// Image registries.
    pub registry: RegistrySettings,
    /// Secrets of run steps by name.
    pub secrets: BTreeMap<String, NamedSecret>,
    /// The key of the environment that signs evidence.
    pub signing: SigningSettings,
    /// The target machine of the environment.
    pub target: TargetOverrides,
    /// Projects that may use this machine without a question, and keys whose evidence counts.
    pub trust: TrustConfig,
    /// Rules that hold for every call.
    pub policy: PolicyConfig,
    /// The files of a matrix that the configuration names.
    pub matrix_files: MatrixSettings,
    /// The matrix of this call: the built-in one until another one was read.
    pub matrix: Arc<Matrix>,
    /// How nodes of a cluster start images from files.
    pub cluster: ClusterConfig,
    /// The file of each key of the configuration that is set.
    pub origins: Origins,
    /// What was found wrong in the configuration and does no harm, each in a line.
    pub warnings: Vec<String>,
    /// The caller's environment, for variables that are passed on by name.
    pub environment: Environment,
}

impl Settings {
    /// Reads environment and files of this machine.
    pub fn load(args: &GlobalOptions, terminals: Terminals) -> Result<Self, SettingsError> {
        let environment: Environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let user = UserDirectories::of(&environment)?;
        let (config_file, config, warnings) = read_config(args, &environment, &user)?;
        let output = Output::of(args, &environment, terminals);
        let paths = Paths::of(&environment, &user, config_file);
        let mut settings = Self::from_parts(output, paths, environment, user, config)?;
        settings.warnings = warnings;
        let current_dir = std::env::current_dir().ok().and_then(|dir| Utf8PathBuf::from_path_buf(dir).ok());
        settings.paths.current_dir = current_dir.unwrap_or_else(|| Utf8PathBuf::from("."));
        settings.network.add_system_bundle();
        settings.index.add_pip_index(&settings.environment);
        settings.index.add_logins(&settings.environment);
        Ok(settings)
    }

    /// Joins environment and configuration, without reading files.
    pub fn from_parts(
        output: Output,
        paths: Paths,
        environment: Environment,
        user: UserDirectories,
        config: Config,
    ) -> Result<Self, SettingsError> {
        let engine = EngineSettings::of(&environment, config.engine, user.docker);
        let registry = RegistrySettings {
            docker_config: engine.docker_config.clone(),
            certificates: user.certificates,
            ..registry_settings(&environment, &config.mirrors.images, &config.registry)?
        };
        Ok(Self {
            output,
            paths,
            engine,
            network: NetworkSettings::of(&environment, config.network)?,
            mirrors: config.mirrors.with_environment(&environment),
            source: SourceSettings::of(&environment, config.toolkit, config.source)?,
            index: PackageIndexes::of(&environment, config.index, config.indexes),
            registry,
            secrets: secrets(config.secrets, &environment),
            signing: SigningSettings::of(&environment),
            target: TargetOverrides::of(&environment),
            trust: config.trust,
            policy: config.policy,
            matrix_files: MatrixSettings::of(config.matrix)?,
            matrix: crate::model::compat::built_in(),
            cluster: config.cluster,
            origins: config.origins,
            warnings: Vec::new(),
            environment,
        })
    }

    /// The variable or file that a key of the configuration, such as `mirrors.debian`, has its value from; `None`: it is not set.
    pub fn origin(&self, key: &str) -> Option<String> {
        let of_key = VARIABLES.iter().filter(|variable| variable.key == key);
        let mut names = of_key.flat_map(|variable| variable.names);
        let is_set = |name: &&&str| self.environment.get(**name).is_some_and(|value| !value.is_empty());
        let variable = names.find(is_set).map(|name| (*name).to_owned());
        // The one whose name is the index's.
        let of_index = key
            .strip_prefix("indexes.")
            .map(|name| format!("ENVFORGE_INDEX_{}", name.to_ascii_uppercase().replace('-', "_")));
        let variable = variable.or(of_index.filter(|name| is_set(&&&**name)));
        variable.or_else(|| self.origins.get(key).map(ToString::to_string))
    }
}

#[cfg(test)]
impl Settings {
    /// Returns those of a machine without an engine, with directories below `root`.
    pub(crate) fn below(root: &camino::Utf8Path) -> Self {
        use crate::model::request::ProgressMode;

        let variable = |name: &str, value: String| (name.to_owned(), value);
        let environment: Environment = [
            variable("HOME", root.join("home").into()),
            variable("ENVFORGE_CACHE_DIR", root.join("cache").into()),
            variable("ENVFORGE_STATE_DIR", root.join("state").into()),
            variable("DOCKER_HOST", format!("unix://{root}/no.sock")),
        ]
        .into_iter()
        .collect();
        let user = UserDirectories::of(&environment).expect("a home");
        let args = GlobalOptions {
            json: false,
            quiet: true,
            verbose: 0,
            no_progress: true,
            progress: ProgressMode::Auto,
            config: None,
        };
        let output = Output::of(&args, &environment, Terminals::default());
        let paths = Paths::of(&environment, &user, root.join("c.toml"));
        let settings = Self::from_parts(output, paths, environment, user, Config::default());
        let mut settings = settings.expect("settings");
        settings.paths.current_dir = root.to_owned();
        settings
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::model::request::ProgressMode;
    use crate::settings::parse_config;

    fn settings(pairs: &[(&str, &str)], config: &str) -> Settings {
        let mut environment: Environment = pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        environment.entry("HOME".into()).or_insert_with(|| "/home/u".into());
        let user = UserDirectories::of(&environment).unwrap();
        let config = parse_config("c.toml".into(), config).unwrap();
        let args = GlobalOptions {
            json: false,
            quiet: false,
            verbose: 0,
            no_progress: false,
            progress: ProgressMode::Auto,
            config: None,
        };
        let output = Output::of(&args, &environment, Terminals::default());
        let paths = Paths::of(&environment, &user, "c.toml".into());
        Settings::from_parts(output, paths, environment, user, config).unwrap()
    }

    #[test]
    fn environment_overrides_the_file() {
        let file = "[mirrors]\ndebian = 'http://file'\n[index]\ndefault = 'http://file'";
        let index = |settings: &Settings| settings.index.default.as_ref().unwrap().expose_secret().to_owned();
        let from_file = settings(&[], file);
        assert_eq!(from_file.mirrors.debian.as_deref(), Some("http://file"));
        assert_eq!(index(&from_file), "http://file");
        let both =
            settings(&[("ENVFORGE_DEBIAN_MIRROR", "http://env"), ("PIP_INDEX_URL", "http://env")], file);
        assert_eq!(both.mirrors.debian.as_deref(), Some("http://env"));
        assert_eq!(index(&both), "http://env");
        assert_eq!(both.origin("index.default").as_deref(), Some("PIP_INDEX_URL"));
        assert_eq!(both.origin("mirrors.ubuntu"), None);
    }
}

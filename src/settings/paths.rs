//! Directories of the user, and those that envforge works in.

use camino::{Utf8Path, Utf8PathBuf};

use super::environment::Environment;
use super::error::SettingsError;
use super::variables::{self, Variable};

/// The directories of the user, before any setting.
#[derive(Debug, Clone)]
pub struct UserDirectories {
    /// `~/.cache/envforge`.
    pub cache: Utf8PathBuf,
    /// `~/.local/state/envforge`.
    pub state: Utf8PathBuf,
    /// `~/.config/envforge`.
    pub config: Utf8PathBuf,
    /// `~/.docker`.
    pub docker: Utf8PathBuf,
    /// Directories of the certificate authorities of registries: the system's and the user's `certs.d`.
    pub certificates: Vec<Utf8PathBuf>,
}

impl UserDirectories {
    /// Returns the XDG directories of that environment.
    pub fn of(environment: &Environment) -> Result<Self, SettingsError> {
        let home = variables::HOME.of(environment);
        let all_named = [variables::CACHE_DIR, variables::STATE_DIR]
            .iter()
            .all(|v| v.set_or_empty(environment).is_some());
        let home = match home {
            Some(home) => Utf8PathBuf::from(home),
            None if all_named => Utf8PathBuf::from("/nonexistent"),
            None => return Err(SettingsError::NoHome),
        };
        let root = |variable: Variable, default: &str| {
            let named = variable.set_or_empty(environment).filter(|value| Utf8Path::new(value).is_absolute());
            named.map_or_else(|| home.join(default), Utf8PathBuf::from)
        };
        let xdg = |name, default| root(name, default).join("envforge");
        let config = root(variables::XDG_CONFIG_HOME, ".config");
        Ok(Self {
            cache: xdg(variables::XDG_CACHE_HOME, ".cache"),
            state: xdg(variables::XDG_STATE_HOME, ".local/state"),
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

/// Directories and files of envforge.
#[derive(Debug, Clone)]
pub struct Paths {
    /// Downloads.
    pub cache: Utf8PathBuf,
    /// Lock files of specs, reports and records.
    pub state: Utf8PathBuf,
    /// The configuration file, which may not exist.
    pub config_file: Utf8PathBuf,
    /// The caller's working directory.
    pub current_dir: Utf8PathBuf,
}

impl Paths {
    /// Joins the environment and the user's directories; the working directory is `.` until it is known.
    pub(crate) fn of(environment: &Environment, user: &UserDirectories, config_file: Utf8PathBuf) -> Self {
        let named = |variable: Variable, default: &Utf8PathBuf| {
            variable.of(environment).map_or_else(|| default.clone(), Utf8PathBuf::from)
        };
        Self {
            cache: named(variables::CACHE_DIR, &user.cache),
            state: named(variables::STATE_DIR, &user.state),
            config_file,
            current_dir: Utf8PathBuf::from("."),
        }
    }
}

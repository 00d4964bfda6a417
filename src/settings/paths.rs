//! Directories of the user, and those that envforge works in.

use camino::{Utf8Path, Utf8PathBuf};

use super::environment::{Environment, set};
use super::error::SettingsError;

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
    pub(super) fn of(environment: &Environment, user: &UserDirectories, config_file: Utf8PathBuf) -> Self {
        let named = |name, default: &Utf8PathBuf| {
            set(environment, name).map_or_else(|| default.clone(), Utf8PathBuf::from)
        };
        Self {
            cache: named("ENVFORGE_CACHE_DIR", &user.cache),
            state: named("ENVFORGE_STATE_DIR", &user.state),
            config_file,
            current_dir: Utf8PathBuf::from("."),
        }
    }
}

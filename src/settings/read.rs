//! The configuration files of a call.

use camino::{Utf8Path, Utf8PathBuf};

use super::config::Config;
use super::environment::Environment;
use super::error::SettingsError;
use super::join::{ConfigText, joined};
use super::paths::UserDirectories;
use super::site::{ROOT, read_site};
use super::tables::SITE_FILE;
use super::variables;
use crate::model::request::GlobalOptions;

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

//! Finds the login for a registry: environment, then Docker's stored logins and its helpers.
#![expect(clippy::disallowed_methods, reason = "reads Docker's configuration")]

use camino::Utf8PathBuf;
use secrecy::ExposeSecret as _;

use super::credential::{Credential, Login};
use super::docker_config::DockerConfig;
use super::error::RegistryError;
use super::helper::ask_helper;
use super::plain_http::withholds_login;
use super::trust::trusted;
use crate::failure::reason;
use crate::settings::image_registry::RegistrySettings;

/// The login of a registry, if known.
#[derive(Debug, Clone, Default)]
pub(super) struct Lookup {
    /// The login, if one is known.
    pub(super) credential: Option<Credential>,
    /// Failure of a credential helper: reported only if the registry denies access, because most images need no login.
    pub(super) trouble: Option<String>,
}

/// Finds the login of a registry, if it may be sent there.
pub(super) async fn look_up(settings: &RegistrySettings, registry: &str) -> Result<Lookup, RegistryError> {
    let found = find(settings, registry).await?;
    let has_authority = trusted(&settings.certificates, registry)?.is_some();
    if found.credential.is_none() || !withholds_login(settings, registry, has_authority) {
        return Ok(found);
    }
    let trouble = format!(
        "envforge sends it without TLS only if you list `http://{registry}` in `[registry] insecure` (or give it in \
         ENVFORGE_REGISTRY)"
    );
    Ok(Lookup { credential: None, trouble: Some(trouble) })
}

async fn find(settings: &RegistrySettings, registry: &str) -> Result<Lookup, RegistryError> {
    let known = |login| Lookup {
        credential: Some(Credential { registry: registry.to_owned(), login }),
        trouble: None,
    };
    if let Some(login) = settings.login.as_ref().filter(|login| login.registry == registry) {
        let login = Login::Password { user: login.user.clone(), password: login.password.clone() };
        return Ok(known(login));
    }
    if let Some(text) = &settings.auth_config {
        let refused = |cause| RegistryError::DockerConfig { file: "DOCKER_AUTH_CONFIG".into(), cause };
        if let Some(login) = DockerConfig::parse(text.expose_secret()).map_err(refused)?.login(registry) {
            return Ok(known(login));
        }
    }
    let Some(config) = docker_config(settings)? else { return Ok(Lookup::default()) };
    let mut trouble = None;
    if let Some(helper) = config.helper(registry) {
        match ask_helper(helper, registry).await {
            Ok(Some(login)) => return Ok(known(login)),
            Ok(None) => {}
            Err(cause) => {
                tracing::debug!(%cause, "credential helper");
                trouble = Some(cause);
            }
        }
    }
    Ok(match config.login(registry) {
        Some(login) => known(login),
        None => Lookup { credential: None, trouble },
    })
}

fn docker_config(settings: &RegistrySettings) -> Result<Option<DockerConfig>, RegistryError> {
    let Some(folder) = &settings.docker_config else { return Ok(None) };
    let file: Utf8PathBuf = folder.join("config.json");
    let refused = |cause| RegistryError::DockerConfig { file: file.clone(), cause };
    match fs_err::read_to_string(&file) {
        Ok(text) => DockerConfig::parse(&text).map(Some).map_err(refused),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(refused(reason(&error))),
    }
}

//! Docker's stored logins, `config.json` (and `DOCKER_AUTH_CONFIG`, in the same format).

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::credential::Login;
use crate::model::image_ref::DEFAULT_REGISTRY;

/// The key of the default registry's login in Docker's configuration.
pub(super) const DEFAULT_KEY: &str = "https://index.docker.io/v1/";

/// The login fields of the file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DockerConfig {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
    #[serde(default)]
    cred_helpers: BTreeMap<String, String>,
    creds_store: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Entry {
    auth: Option<SecretString>,
    username: Option<String>,
    password: Option<SecretString>,
    identitytoken: Option<SecretString>,
    registrytoken: Option<SecretString>,
}

impl DockerConfig {
    /// Parses the file. The error never contains its text, which may include passwords.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_str(text).map_err(|error| {
            format!("invalid Docker configuration at line {}, column {}", error.line(), error.column())
        })
    }

    /// Returns the name of the helper program for a registry.
    pub(super) fn helper(&self, registry: &str) -> Option<&str> {
        let own = keys(registry).into_iter().find_map(|key| self.cred_helpers.get(&key));
        own.or(self.creds_store.as_ref()).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// Returns the login in the file itself.
    pub(super) fn login(&self, registry: &str) -> Option<Login> {
        let entry = self.auths.get(&keys(registry)[0]).or_else(|| {
            let matching = self.auths.iter().find(|(key, _)| host_of(key) == host_of(&keys(registry)[0]));
            matching.map(|(_, entry)| entry)
        })?;
        let some =
            |token: &Option<SecretString>| token.clone().filter(|token| !token.expose_secret().is_empty());
        if let Some(token) = some(&entry.identitytoken) {
            return Some(Login::IdentityToken(token));
        }
        if let Some(token) = some(&entry.registrytoken) {
            return Some(Login::RegistryToken(token));
        }
        match (&entry.username, some(&entry.password)) {
            (Some(user), Some(password)) => Some(Login::Password { user: user.clone(), password }),
            _ => Login::of_auth_field(some(&entry.auth)?.expose_secret()),
        }
    }
}

/// Returns the possible keys of a registry, the usual one first.
fn keys(registry: &str) -> Vec<String> {
    if registry == DEFAULT_REGISTRY {
        return [DEFAULT_KEY, DEFAULT_REGISTRY, "index.docker.io"].map(str::to_owned).to_vec();
    }
    vec![registry.to_owned(), format!("https://{registry}"), format!("http://{registry}")]
}

/// The host in a key such as `https://host/v1/`.
fn host_of(key: &str) -> &str {
    let rest = key.split_once("://").map_or(key, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or(rest);
    if host == DEFAULT_REGISTRY { "index.docker.io" } else { host }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::*;

    fn auth(text: &str) -> String {
        base64::engine::general_purpose::STANDARD.encode(text)
    }

    #[test]
    fn login_is_found_under_every_spelling_of_its_registry() {
        let text = format!(
            r#"{{"auths":{{"https://index.docker.io/v1/":{{"auth":"{}"}},"box:5000":{{"auth":"{}"}},
               "https://old.test/v1/":{{"username":"ann","password":"p"}},
               "az.test":{{"auth":"{}","identitytoken":"tok"}},"empty.test":{{}}}},"HttpHeaders":{{}}}}"#,
            auth("hub:h"),
            auth("box:b"),
            auth("0000:")
        );
        let config = DockerConfig::parse(&text).expect("a config");
        let user = |registry: &str| match config.login(registry) {
            Some(Login::Password { user, .. }) => user,
            other => format!("{other:?}"),
        };
        assert_eq!(
            (user("docker.io"), user("box:5000"), user("old.test")),
            ("hub".into(), "box".into(), "ann".into())
        );
        let Some(Login::IdentityToken(token)) = config.login("az.test") else { panic!("an identity token") };
        assert_eq!(token.expose_secret(), "tok");
        assert!(config.login("empty.test").is_none() && config.login("box").is_none());
    }

    #[test]
    fn helper_of_a_registry_overrides_global_store() {
        let config =
            DockerConfig::parse(r#"{"credsStore":"desktop","credHelpers":{"ecr.test":"ecr-login"}}"#)
                .expect("a config");
        assert_eq!(
            (config.helper("ecr.test"), config.helper("box:5000")),
            (Some("ecr-login"), Some("desktop"))
        );
        assert_eq!(DockerConfig::parse("").expect("an empty file").helper("x.test"), None);
    }

    #[test]
    fn error_omits_content_of_invalid_file() {
        let error = DockerConfig::parse(r#"{"auths":{"a":{"auth":hunter2"#).expect_err("broken");
        assert!(!error.contains("hunter2") && error.contains("line 1"), "{error}");
        let error = DockerConfig::parse(r#"{"auths":{"a":{"auth":["hunter2"]}}}"#).expect_err("broken");
        assert!(!error.contains("hunter2"), "{error}");
        assert!(
            !format!("{:?}", DockerConfig::parse(r#"{"auths":{"a":{"auth":"hunter2"}}}"#))
                .contains("hunter2")
        );
    }
}

//! Docker's own record of logins, `config.json` (and `DOCKER_AUTH_CONFIG`, which has the same form).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::credential::Login;
use super::hidden::Hidden;
use super::reference::DEFAULT_REGISTRY;

/// The key under which Docker keeps the login of its default registry.
pub(super) const DEFAULT_KEY: &str = "https://index.docker.io/v1/";

/// What of the file concerns logins.
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
    auth: Option<Hidden>,
    username: Option<String>,
    password: Option<Hidden>,
    identitytoken: Option<Hidden>,
    registrytoken: Option<Hidden>,
}

impl DockerConfig {
    /// Reads the file's text. The error never repeats the text: it holds passwords.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_str(text).map_err(|error| {
            format!("no valid JSON of Docker's form at line {}, column {}", error.line(), error.column())
        })
    }

    /// The name of the helper program that keeps the login of a registry.
    pub(super) fn helper(&self, registry: &str) -> Option<&str> {
        let own = keys(registry).into_iter().find_map(|key| self.cred_helpers.get(&key));
        own.or(self.creds_store.as_ref()).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// The login that stands in the file itself.
    pub(super) fn login(&self, registry: &str) -> Option<Login> {
        let entry = self.auths.get(&keys(registry)[0]).or_else(|| {
            let matching = self.auths.iter().find(|(key, _)| host_of(key) == host_of(&keys(registry)[0]));
            matching.map(|(_, entry)| entry)
        })?;
        let some = |token: &Option<Hidden>| token.clone().filter(|token| !token.expose().is_empty());
        if let Some(token) = some(&entry.identitytoken) {
            return Some(Login::IdentityToken(token));
        }
        if let Some(token) = some(&entry.registrytoken) {
            return Some(Login::RegistryToken(token));
        }
        match (&entry.username, some(&entry.password)) {
            (Some(user), Some(password)) => Some(Login::Password { user: user.clone(), password }),
            _ => Login::of_auth_field(some(&entry.auth)?.expose()),
        }
    }
}

/// The names a registry may stand under, the usual one first.
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
    fn logins_are_found_under_every_spelling_of_their_registry() {
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
        assert_eq!(config.login("az.test"), Some(Login::IdentityToken(Hidden::new("tok"))));
        assert_eq!((config.login("empty.test"), config.login("box")), (None, None));
    }

    #[test]
    fn a_registrys_own_helper_wins_over_the_store_of_all() {
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
    fn a_broken_file_is_not_repeated() {
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

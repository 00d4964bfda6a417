//! A registry login in the one request header that carries it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use bollard::auth::DockerCredentials;
use http::{HeaderMap, HeaderValue};
use secrecy::ExposeSecret as _;

use crate::registry::{Credential, Login};

/// The header of a login.
const LOGIN: &str = "x-registry-auth";
/// The daemon's address of its default registry.
const DEFAULT_SERVER: &str = "https://index.docker.io/v1/";

/// Returns the header with a login, or with that of nobody. The daemon ignores a login in another alphabet of base64.
pub(in crate::engine) fn login(credential: Option<&Credential>) -> HeaderMap {
    let login = credential.map_or_else(DockerCredentials::default, credentials);
    let json = serde_json::to_string(&login).expect("a login has texts only");
    let mut value = HeaderValue::from_str(&URL_SAFE.encode(json)).expect("base64 is ASCII");
    value.set_sensitive(true);
    let mut headers = HeaderMap::new();
    headers.insert(LOGIN, value);
    headers
}

/// Converts a credential for the daemon.
fn credentials(credential: &Credential) -> DockerCredentials {
    let server = if credential.registry == "docker.io" { DEFAULT_SERVER } else { &credential.registry };
    let mut login =
        DockerCredentials { serveraddress: Some(server.to_owned()), ..DockerCredentials::default() };
    match &credential.login {
        Login::Password { user, password } => {
            login.username = Some(user.clone());
            login.password = Some(password.expose_secret().to_owned());
        }
        Login::IdentityToken(token) => login.identitytoken = Some(token.expose_secret().to_owned()),
        Login::RegistryToken(token) => login.registrytoken = Some(token.expose_secret().to_owned()),
    }
    login
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::SecretString;

    fn read(headers: &HeaderMap) -> DockerCredentials {
        assert!(headers[LOGIN].is_sensitive());
        let json = URL_SAFE.decode(headers[LOGIN].as_bytes()).expect("what the daemon reads");
        serde_json::from_slice(&json).expect("JSON")
    }

    #[test]
    fn login_reaches_the_daemon_with_any_password() {
        for password in ["plain", "~~~", "a?b>c~", "pässwörd???"] {
            let credential = Credential {
                registry: "box:5000".to_owned(),
                login: Login::Password { user: "ann".to_owned(), password: SecretString::from(password) },
            };
            assert_eq!(read(&login(Some(&credential))).password.as_deref(), Some(password));
        }
        assert_eq!(read(&login(None)).username, None);
    }
}

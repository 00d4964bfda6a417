//! A registry login in the one request header that carries it.

use bollard::BollardRequest;
use bollard::auth::DockerCredentials;
use http::HeaderValue;
use secrecy::ExposeSecret as _;

use crate::registry::{Credential, Login};

/// The header of a login.
const LOGIN: &str = "x-registry-auth";
/// The daemon's address of its default registry.
const DEFAULT_SERVER: &str = "https://index.docker.io/v1/";

/// Converts a credential for the daemon.
pub(in crate::engine) fn login(credential: &Credential) -> DockerCredentials {
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

/// Rewrites the login header as URL-safe base64. The daemon ignores a login in another alphabet; bollard 0.21 writes the
/// plain one, which differs for passwords with `?`, `>`, `~` or letters outside ASCII.
pub(in crate::engine) fn url_safe_login(mut request: BollardRequest) -> BollardRequest {
    if let Some(value) = request.headers().get(LOGIN).and_then(|value| value.to_str().ok()) {
        let text = value.replace('+', "-").replace('/', "_");
        if let Ok(mut value) = HeaderValue::from_str(&text) {
            value.set_sensitive(true);
            request.headers_mut().insert(LOGIN, value);
        }
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::SecretString;

    #[test]
    fn login_reaches_the_daemon_with_any_password() {
        use base64::Engine as _;
        for password in ["plain", "~~~", "a?b>c~", "pässwörd???"] {
            let credential = Credential {
                registry: "box:5000".to_owned(),
                login: Login::Password { user: "ann".to_owned(), password: SecretString::from(password) },
            };
            let json = serde_json::to_string(&login(&credential)).expect("serialises");
            let plain = base64::engine::general_purpose::STANDARD.encode(json);
            let body = bollard::body_full(bytes::Bytes::new());
            let request =
                http::Request::builder().header("X-Registry-Auth", plain).body(body).expect("a request");
            let request = url_safe_login(request);
            let sent = request.headers()[LOGIN].to_str().expect("ASCII");
            let read = base64::engine::general_purpose::URL_SAFE.decode(sent).expect("what the daemon reads");
            let read: DockerCredentials = serde_json::from_slice(&read).expect("JSON");
            assert_eq!(read.password.as_deref(), Some(password));
        }
    }
}

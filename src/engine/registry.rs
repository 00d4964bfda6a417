//! What the daemon does with registries: pull and push, with a login in the one header that carries it.

use bollard::BollardRequest;
use bollard::auth::DockerCredentials;
use bollard::models::PushImageInfo;
use bollard::query_parameters::{CreateImageOptionsBuilder, PushImageOptionsBuilder};
use futures_util::StreamExt as _;
use http::HeaderValue;

use super::connect::Daemon;
use super::images::{Step, split_tag};
use super::stream::{PullProgress, PushProgress};
use super::{EngineError, ImageInfo, PullRequest};
use crate::registry::{Credential, Digest, Login};
use crate::report::Reporter;

/// The header that carries a login.
const LOGIN: &str = "x-registry-auth";
/// How the daemon is told that a login is for its default registry.
const DEFAULT_SERVER: &str = "https://index.docker.io/v1/";

impl Daemon {
    /// Pulls an image; `foreign`: for a processor that is not the engine's own.
    pub(super) async fn pull(
        &self,
        pull: &PullRequest,
        foreign: bool,
        reporter: &dyn Reporter,
    ) -> Result<ImageInfo, EngineError> {
        let reference = pull.reference.as_str();
        let step = Step::begin(reporter, format!("pull:{reference}"), format!("pull {reference}"));
        let mut options = CreateImageOptionsBuilder::new().from_image(reference);
        // Without a tag the daemon would pull every tag of the name.
        if !reference.contains('@') && split_tag(reference).1.is_none() {
            options = options.tag("latest");
        }
        if foreign {
            options = options.platform(pull.machine.platform());
        }
        let credential = pull.credential.as_ref().map(login);
        let messages = self.client.create_image(Some(options.build()), None, credential);
        let mut progress = PullProgress::default();
        let during = format!("the pull of `{reference}`");
        let followed = self.follow(&during, messages, |message| {
            if let Some((done, total)) = progress.update(message) {
                step.progress(done, Some(total));
            }
        });
        let result = match followed.await {
            Ok(()) => self.made_image(reference).await,
            Err(error) => Err(of_registry(error)),
        };
        step.end(result)
    }

    /// Pushes a tag and gives the digest under which the registry has it now.
    pub(super) async fn push(
        &self,
        reference: &str,
        credential: Option<&Credential>,
        reporter: &dyn Reporter,
    ) -> Result<Digest, EngineError> {
        let step = Step::begin(reporter, format!("push:{reference}"), format!("push {reference}"));
        let (name, tag) = split_tag(reference);
        let options = PushImageOptionsBuilder::new().tag(tag.unwrap_or("latest")).build();
        let mut messages = std::pin::pin!(self.client.push_image(name, Some(options), credential.map(login)));
        let during = format!("the push of `{reference}`");
        let (mut progress, mut digest, mut failed) = (PushProgress::default(), None, None);
        while let Some(message) = messages.next().await {
            match message {
                Ok(message) => {
                    digest = pushed_digest(&message).or(digest);
                    if let Some((done, total)) = progress.update(&message) {
                        step.progress(done, Some(total));
                    }
                }
                Err(error) => {
                    failed = Some(of_registry(self.fault(&during, error)));
                    break;
                }
            }
        }
        let unnamed = || EngineError::Lost { during, cause: "the engine named no digest".to_owned() };
        step.end(failed.map_or_else(|| digest.ok_or_else(unnamed), Err))
    }
}

/// `TAG: digest: sha256:… size: N`, the last line of a push.
fn pushed_digest(message: &PushImageInfo) -> Option<Digest> {
    let (_, rest) = message.status.as_deref()?.split_once(": digest: ")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// A refusal in words that come from the registry, told apart from one by the engine itself.
fn of_registry(error: EngineError) -> EngineError {
    match error {
        EngineError::Refused { during, text } => EngineError::Registry { during, text },
        error => error,
    }
}

fn login(credential: &Credential) -> DockerCredentials {
    let server = if credential.registry == "docker.io" { DEFAULT_SERVER } else { &credential.registry };
    let mut login =
        DockerCredentials { serveraddress: Some(server.to_owned()), ..DockerCredentials::default() };
    match &credential.login {
        Login::Password { user, password } => {
            login.username = Some(user.clone());
            login.password = Some(password.expose().to_owned());
        }
        Login::IdentityToken(token) => login.identitytoken = Some(token.expose().to_owned()),
        Login::RegistryToken(token) => login.registrytoken = Some(token.expose().to_owned()),
    }
    login
}

/// The daemon reads the login as URL-safe base64 and, if it is not, goes on without one; bollard 0.21 writes the plain
/// alphabet, which differs as soon as a password holds `?`, `>`, `~` or a letter that is not ASCII.
pub(super) fn url_safe_login(mut request: BollardRequest) -> BollardRequest {
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
    use crate::registry::Hidden;

    #[test]
    fn the_last_line_of_a_push_names_the_digest() {
        let status = |text: &str| PushImageInfo { status: Some(text.to_owned()), ..PushImageInfo::default() };
        let digest = Digest::of(b"x");
        assert_eq!(pushed_digest(&status(&format!("2.8: digest: {digest} size: 1570"))), Some(digest));
        assert_eq!(pushed_digest(&status("The push refers to repository [box/a]")), None);
    }

    #[test]
    fn a_login_reaches_the_daemon_whatever_the_password_holds() {
        use base64::Engine as _;
        for password in ["plain", "~~~", "a?b>c~", "pässwörd???"] {
            let credential = Credential {
                registry: "box:5000".to_owned(),
                login: Login::Password { user: "ann".to_owned(), password: Hidden::new(password) },
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

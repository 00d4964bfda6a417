//! Requests to one repository of one registry, with the login it wants: basic, a token, or none.

use std::net::SocketAddr;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION};
use http::{Method, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::challenge::{Challenge, TokenRequest, challenge};
use super::credential::{Login, bearer};
use super::error::RegistryError;
use super::lookup::{Lookup, look_up};
use super::plain_http::is_plain_http;
use super::retry::RetryPolicy;
use super::trust::trusted;
use crate::fetch::{Fetcher, HttpRequest, HttpResponse};
use crate::model::address::Address;
use crate::model::image_ref::{DEFAULT_REGISTRY, ImageRef};
use crate::settings::image_registry::RegistrySettings;

/// The API host of the default registry.
const DEFAULT_API: &str = "registry-1.docker.io";
/// The most bytes of a manifest or configuration, as registries themselves limit it.
const LIMIT: u64 = 4 * 1024 * 1024;
/// Maximum length of a reported registry message.
const DETAIL: usize = 200;

/// Access rights of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenScope {
    /// Reading.
    Pull,
    /// Reading and writing.
    Push,
}

impl TokenScope {
    fn scope(self, repository: &str) -> String {
        let actions = match self {
            Self::Pull => "pull",
            Self::Push => "pull,push",
        };
        format!("repository:{repository}:{actions}")
    }
}

/// An authenticated session with one repository; caches the token, and asks for another when it has expired.
#[derive(Clone)]
pub(super) struct RepositorySession<'a> {
    settings: &'a RegistrySettings,
    image: &'a ImageRef,
    access: TokenScope,
    patience: RetryPolicy,
    root: Address,
    fetch: Fetcher,
    authorization: Option<SecretString>,
}

#[derive(Deserialize)]
struct Token {
    token: Option<SecretString>,
    access_token: Option<SecretString>,
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    errors: Vec<RefusalEntry>,
}

#[derive(Deserialize)]
struct RefusalEntry {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

impl<'a> RepositorySession<'a> {
    /// Prepares a session without sending a request.
    pub(super) fn new(
        fetch: &Fetcher,
        settings: &'a RegistrySettings,
        image: &'a ImageRef,
        access: TokenScope,
        patience: RetryPolicy,
    ) -> Result<Self, RegistryError> {
        let own = trusted(&settings.certificates, image.registry())?;
        let plain = is_plain_http(settings, image.registry(), own.is_some());
        let scheme = if plain { "http" } else { "https" };
        let host = if image.registry() == DEFAULT_REGISTRY { DEFAULT_API } else { image.registry() };
        let not_one = |_| RegistryError::NotARegistry {
            registry: image.registry().to_owned(),
            what: "its name is not a host name".to_owned(),
        };
        let root = format!("{scheme}://{host}/v2/{}", image.repository()).parse().map_err(not_one)?;
        let fetch = match own {
            Some(pem) => fetch.trusting(&pem).map_err(|error| RegistryError::Certificate {
                file: format!("certs.d/{}", image.registry()).into(),
                cause: error.to_string(),
            })?,
            None => fetch.clone(),
        };
        Ok(Self { settings, image, access, patience, root, fetch, authorization: None })
    }

    /// Downloads a document below the repository. Every status but success is an error.
    pub(super) async fn get(&mut self, path: &str, accept: &[&str]) -> Result<HttpResponse, RegistryError> {
        let mut ask = self.ask(Method::GET, self.root.join(path));
        for kind in accept {
            ask.header(ACCEPT, kind);
        }
        self.send(ask).await
    }

    /// Uploads a document of that kind below the repository.
    pub(super) async fn put(
        &mut self,
        path: &str,
        kind: &str,
        body: Bytes,
    ) -> Result<HttpResponse, RegistryError> {
        let mut ask = self.ask(Method::PUT, self.root.join(path));
        ask.body = Some((kind.to_owned(), body));
        self.send(ask).await
    }

    /// Sends a request, and again with a login if required. Every status but success is an error.
    async fn send(&mut self, ask: HttpRequest) -> Result<HttpResponse, RegistryError> {
        let answer = self.answer(ask).await?;
        if answer.status.is_success() { Ok(answer) } else { Err(self.refused(&answer)) }
    }

    /// Sends a request, and again with a login if required, or with a new one if the token has expired. Returns any other
    /// status.
    pub(super) async fn answer(&mut self, mut ask: HttpRequest) -> Result<HttpResponse, RegistryError> {
        let answer = self.attempt(&mut ask).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        let lookup = self.renew_login(&answer).await?;
        let answer = self.attempt(&mut ask).await?;
        if matches!(answer.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            // The token server accepted the login, and gave a token without these rights.
            let has_token = matches!(
                lookup.credential.as_ref().map(|credential| &credential.login),
                Some(Login::Password { .. } | Login::IdentityToken(_))
            ) && self.authorization.as_ref().is_some_and(is_bearer);
            let may_be_absent = answer.status == StatusCode::FORBIDDEN || has_token;
            return Err(self.unauthorized(&lookup, may_be_absent));
        }
        Ok(answer)
    }

    /// Logs in as a response of 401 asks. An error if that is the login that was refused.
    pub(super) async fn renew_login(&mut self, answer: &HttpResponse) -> Result<Lookup, RegistryError> {
        let lookup = look_up(self.settings, self.image.registry()).await?;
        let refused = self.authorization.take();
        self.log_in(answer, &lookup).await?;
        let texts = [&refused, &self.authorization].map(|one| one.as_ref().map(ExposeSecret::expose_secret));
        if texts[0].is_some() && texts[0] == texts[1] {
            Err(self.unauthorized(&lookup, false))
        } else {
            Ok(lookup)
        }
    }

    /// The same session for uploads, however long one takes.
    pub(super) fn for_uploads(self) -> Result<Self, RegistryError> {
        let registry = || self.image.registry().to_owned();
        let fetch = self.fetch.for_uploads();
        let fetch = fetch.map_err(|source| RegistryError::Unreachable { registry: registry(), source })?;
        Ok(Self { fetch, ..self })
    }

    /// The image that the session is for.
    pub(super) fn image(&self) -> &ImageRef {
        self.image
    }

    /// The HTTP client, which trusts what the registry needs.
    pub(super) fn fetch(&self) -> &Fetcher {
        &self.fetch
    }

    /// The address of a document below the repository.
    pub(super) fn below(&self, path: &str) -> Address {
        self.root.join(path)
    }

    /// The login for an address: none for another server than the registry.
    pub(super) fn login_for(&self, address: &Address) -> Option<&SecretString> {
        self.authorization.as_ref().filter(|_| address.origin() == self.root.origin())
    }

    pub(super) fn ask(&self, method: Method, address: Address) -> HttpRequest {
        let mut ask = HttpRequest::get(address, LIMIT, self.patience.attempt);
        ask.method = method;
        ask.once = self.patience.once;
        ask
    }

    async fn attempt(&self, ask: &mut HttpRequest) -> Result<HttpResponse, RegistryError> {
        ask.headers.remove(AUTHORIZATION);
        if let Some(authorization) = self.login_for(&ask.address) {
            ask.header(AUTHORIZATION, authorization.expose_secret());
        }
        let registry = || self.image.registry().to_owned();
        self.fetch
            .ask(ask)
            .await
            .map_err(|source| RegistryError::Unreachable { registry: registry(), source })
    }

    /// Determines the authorization header of the session.
    async fn log_in(&mut self, answer: &HttpResponse, lookup: &Lookup) -> Result<(), RegistryError> {
        let headers =
            answer.headers.get_all("www-authenticate").iter().filter_map(|value| value.to_str().ok());
        // A server that the registry redirected to is not the registry, and gets no login.
        if answer.origin != self.root.origin() {
            return Err(self.unauthorized(lookup, false));
        }
        let login = lookup.credential.as_ref().map(|credential| &credential.login);
        self.authorization = match (challenge(headers), login) {
            (Some(Challenge::Basic), Some(login)) => login.header(),
            (Some(Challenge::Bearer(_)), Some(Login::RegistryToken(token))) => Some(bearer(token)),
            (Some(Challenge::Bearer(request)), login) => {
                Some(bearer(&self.token(&request, login, (lookup, answer.connected)).await?))
            }
            (Some(Challenge::Basic) | None, _) => None,
        };
        if self.authorization.is_none() { Err(self.unauthorized(lookup, false)) } else { Ok(()) }
    }

    /// Requests a token from the token server that the registry specified.
    async fn token(
        &self,
        request: &TokenRequest,
        login: Option<&Login>,
        (lookup, connected): (&Lookup, Option<SocketAddr>),
    ) -> Result<SecretString, RegistryError> {
        let odd = |what: &str| RegistryError::NotARegistry {
            registry: self.image.registry().to_owned(),
            what: what.to_owned(),
        };
        let realm: Address = request.realm.parse().map_err(|_| odd("invalid address of its token server"))?;
        if login.is_some() && !may_have_login(&realm, &self.root) {
            return Err(odd(if realm.origin().starts_with("http:") {
                "its token server requests a password without TLS"
            } else {
                "it names another host as its token server without TLS"
            }));
        }
        let registry = || self.image.registry().to_owned();
        let unreachable = |source| RegistryError::Unreachable { registry: registry(), source };
        // Who answers on behalf of a registry is asked for a token that the registry sees: it must not be a server of this machine
        // or its network that the registry cannot reach itself.
        let fetch = if realm.origin() == self.root.origin() {
            self.fetch.clone()
        } else if realm.origin().starts_with("https:") {
            self.fetch.within(&realm, self.fetch.reach_of(connected)).map_err(unreachable)?
        } else {
            return Err(odd("it names another host without TLS as its token server"));
        };
        let scope = request.scope.clone().unwrap_or_else(|| self.access.scope(self.image.repository()));
        let mut fields: Vec<_> =
            request.service.as_deref().map(|service| ("service", service)).into_iter().collect();
        let mut ask = match login {
            Some(Login::IdentityToken(token)) => {
                let mut ask = self.ask(Method::POST, realm);
                fields.extend([
                    ("scope", scope.as_str()),
                    ("grant_type", "refresh_token"),
                    ("client_id", "envforge"),
                    ("refresh_token", token.expose_secret()),
                ]);
                ask.body = Some(("application/x-www-form-urlencoded".to_owned(), form(&fields)));
                ask
            }
            login => {
                // Several rights are several fields here, as Docker sends them.
                fields.extend(scope.split_whitespace().map(|scope| ("scope", scope)));
                let mut ask = self.ask(Method::GET, realm.with_query(&fields));
                if let Some(header) = login.and_then(Login::header) {
                    ask.header(AUTHORIZATION, header.expose_secret());
                }
                ask
            }
        };
        ask.header(ACCEPT, "application/json");
        ask.stays = true;
        let answer = fetch.ask(&ask).await.map_err(unreachable)?;
        match answer.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST => {
                let may_be_absent = login.is_some() && answer.status == StatusCode::FORBIDDEN;
                return Err(self.unauthorized(lookup, may_be_absent));
            }
            status if !status.is_success() => return Err(self.refused(&answer)),
            _ => {}
        }
        let token: Option<Token> = serde_json::from_slice(&answer.body).ok();
        let token = token.and_then(|token| token.token.or(token.access_token));
        token
            .filter(|token| !token.expose_secret().is_empty())
            .ok_or_else(|| odd("its token server returned no token"))
    }

    /// The error of a request with the login of the session that is refused again.
    pub(super) async fn denied(&self) -> RegistryError {
        match look_up(self.settings, self.image.registry()).await {
            Ok(lookup) => self.unauthorized(&lookup, false),
            Err(error) => error,
        }
    }

    fn unauthorized(&self, lookup: &Lookup, may_be_absent: bool) -> RegistryError {
        let login = lookup.credential.as_ref().map(|credential| match &credential.login {
            Login::Password { user, .. } => format!("the login of `{user}`"),
            Login::IdentityToken(_) | Login::RegistryToken(_) => "the stored token".to_owned(),
        });
        RegistryError::Unauthorized {
            registry: self.image.registry().to_owned(),
            repository: self.image.repository().to_owned(),
            login,
            trouble: lookup.trouble.clone(),
            may_be_absent,
        }
    }

    /// The error of a response that is not a success.
    pub(super) fn refused(&self, answer: &HttpResponse) -> RegistryError {
        let registry = self.image.registry().to_owned();
        match answer.status {
            StatusCode::NOT_FOUND => RegistryError::NotFound { registry, reference: self.image.to_string() },
            StatusCode::TOO_MANY_REQUESTS => {
                let seconds = answer.header("retry-after").and_then(|text| text.trim().parse().ok());
                RegistryError::Busy { registry, seconds }
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                self.unauthorized(&Lookup::default(), answer.status == StatusCode::FORBIDDEN)
            }
            status => {
                RegistryError::Status { registry, status: status.to_string(), detail: detail(&answer.body) }
            }
        }
    }
}

fn is_bearer(authorization: &SecretString) -> bool {
    authorization.expose_secret().starts_with("Bearer ")
}

/// Whether a token server may have the login of a registry: it is the registry itself, or reached over TLS and named by a
/// registry that is reached over TLS, too. Whoever changes a plain answer could name any host.
fn may_have_login(realm: &Address, registry: &Address) -> bool {
    let is_secure = |address: &Address| address.origin().starts_with("https:");
    realm.origin() == registry.origin() || (is_secure(realm) && is_secure(registry))
}

fn form(fields: &[(&str, &str)]) -> Bytes {
    let mut url = reqwest::Url::parse("http://form.invalid").expect("a constant");
    url.query_pairs_mut().extend_pairs(fields);
    Bytes::from(url.query().unwrap_or_default().to_owned())
}

/// Returns the registry's error message, if any: shortened, without control characters.
fn detail(body: &[u8]) -> String {
    let Ok(refusal) = serde_json::from_slice::<Refusal>(body) else { return String::new() };
    let texts = refusal
        .errors
        .iter()
        .map(|error| if error.message.is_empty() { &error.code } else { &error.message });
    let text = texts.cloned().collect::<Vec<_>>().join("; ");
    text.chars().filter(|char| !char.is_control()).take(DETAIL).collect()
}

#[cfg(test)]
mod tests {
    use super::may_have_login;
    use crate::model::address::Address;

    #[test]
    fn token_server_gets_a_login_over_tls_or_as_the_registry_itself() {
        let may = |realm: &str, registry: &str| {
            let parsed = |text: &str| text.parse::<Address>().expect("an address");
            may_have_login(&parsed(realm), &parsed(registry))
        };
        assert!(may("https://auth.test/token", "https://r.test/v2/a"));
        assert!(may("https://r.test/token", "https://r.test/v2/a"));
        assert!(may("http://box:5000/token", "http://box:5000/v2/a"));
        assert!(!may("http://r.test/token", "https://r.test/v2/a"));
        assert!(!may("http://box:5001/token", "http://box:5000/v2/a"));
        assert!(!may("https://auth.test/token", "http://box:5000/v2/a"));
    }
}

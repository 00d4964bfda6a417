//! One HTTP request whose every response is returned, errors included: same client, same retries as a download.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use backon::BackoffBuilder as _;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use super::client::{Fetcher, pause_before_retry};
use super::error::{FetchError, is_transient};
use super::redirect::{Hop, send};
use crate::model::address::Address;

/// The longest pause that a server may request.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// An HTTP request.
#[derive(Clone)]
pub struct HttpRequest {
    /// The method: only idempotent requests are retried.
    pub method: Method,
    /// The address.
    pub address: Address,
    /// Headers; their values may be secret.
    pub headers: HeaderMap,
    /// The body, with its content type.
    pub body: Option<(String, Bytes)>,
    /// Size limit of the response.
    pub limit: u64,
    /// Timeout of one attempt.
    pub patience: Duration,
    /// Whether to try only once.
    pub once: bool,
    /// Whether a redirect to another server is refused.
    pub stays: bool,
}

impl HttpRequest {
    /// Creates a plain `GET` request.
    pub fn get(address: Address, limit: u64, patience: Duration) -> Self {
        let (headers, body) = (HeaderMap::new(), None);
        Self { method: Method::GET, address, headers, body, limit, patience, once: false, stays: false }
    }

    /// Adds a header. Returns false without adding one that cannot be sent (a line break in a password).
    pub fn header(&mut self, name: HeaderName, value: &str) -> bool {
        let Ok(mut value) = HeaderValue::from_str(value) else { return false };
        value.set_sensitive(true);
        self.headers.append(name, value);
        true
    }
}

/// An HTTP response of any status.
#[derive(Clone)]
pub struct HttpResponse {
    /// Scheme, host and port of the server that answered: another one than asked after a redirect.
    pub origin: String,
    /// The address that was connected to.
    pub connected: Option<SocketAddr>,
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl HttpResponse {
    /// Returns a header's value, if present and readable.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer({}, {} bytes)", self.status, self.body.len())
    }
}

impl Fetcher {
    /// Sends a request, retries temporary failures, and returns the last response. An error means no response.
    pub async fn ask(&self, ask: &HttpRequest) -> Result<HttpResponse, FetchError> {
        let mut pauses = self.retries.build();
        let may_repeat = !ask.once && matches!(ask.method, Method::GET | Method::HEAD | Method::PUT);
        loop {
            let answer = self.attempt_to_ask(ask).await;
            let wanted = match &answer {
                Ok(answer) if is_transient(answer.status.as_str()) => Some(wanted_pause(answer)),
                Err(error) if error.is_worth_retrying() => Some(None),
                _ => None,
            };
            let Some(wanted) = wanted.filter(|_| may_repeat) else { return answer };
            match (wanted, pauses.next()) {
                (Some(wanted), _) if wanted > LONGEST_PAUSE => return answer,
                (_, None) => return answer,
                (wanted, Some(pause)) => {
                    pause_before_retry(&ask.address, wanted.unwrap_or(pause).max(pause)).await;
                }
            }
        }
    }

    async fn attempt_to_ask(&self, ask: &HttpRequest) -> Result<HttpResponse, FetchError> {
        let Ok(answer) = tokio::time::timeout(ask.patience, self.answer(ask)).await else {
            let cause = format!("timed out after {} s", ask.patience.as_secs_f32());
            return Err(FetchError::Transfer { address: ask.address.clone(), cause });
        };
        answer
    }

    async fn answer(&self, ask: &HttpRequest) -> Result<HttpResponse, FetchError> {
        let mut headers = ask.headers.clone();
        if let Some(kind) = ask.body.as_ref().and_then(|(kind, _)| HeaderValue::from_str(kind).ok()) {
            headers.insert(CONTENT_TYPE, kind);
        }
        let body = ask.body.as_ref().map(|(_, body)| body.clone());
        let hop = Hop { method: ask.method.clone(), url: ask.address.url(), headers, body, stays: ask.stays };
        let (response, origin) = send(&self.client, &ask.address, hop).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let connected = response.remote_addr();
        tracing::trace!(address = %ask.address, %status, method = %ask.method, "asked");
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(|error| FetchError::transfer(&ask.address, error))?);
            if body.len() as u64 > ask.limit {
                return Err(FetchError::TooLarge { address: ask.address.clone(), limit: ask.limit });
            }
        }
        Ok(HttpResponse { origin, connected, status, headers, body: body.into() })
    }
}

/// Returns the pause a busy server requests, in seconds.
pub(super) fn wanted_pause(answer: &HttpResponse) -> Option<Duration> {
    answer.header(RETRY_AFTER.as_str())?.trim().parse().ok().map(Duration::from_secs)
}

//! A question whose every answer matters, refusals included: the same client, the same patience as a download.

use std::fmt;
use std::time::Duration;

use backon::BackoffBuilder as _;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use super::client::{Fetcher, pause_before_retry};
use super::error::{FetchError, is_passing};
use crate::address::Address;

/// The longest pause that is waited because a server asks for it.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// A question.
#[derive(Clone)]
pub struct Ask {
    /// What is done: only what may be repeated is asked again after a failure.
    pub method: Method,
    /// Where.
    pub address: Address,
    /// Headers; their values may be secret.
    pub headers: HeaderMap,
    /// What is sent, with its content type.
    pub body: Option<(String, Bytes)>,
    /// The most bytes of an answer.
    pub limit: u64,
    /// How long one attempt may take from its beginning to its end.
    pub patience: Duration,
    /// Ask once only.
    pub once: bool,
}

impl Ask {
    /// A plain `GET`.
    pub fn get(address: Address, limit: u64, patience: Duration) -> Self {
        let (headers, body) = (HeaderMap::new(), None);
        Self { method: Method::GET, address, headers, body, limit, patience, once: false }
    }

    /// Adds a header. One that cannot be sent (a line break in a password) is left out and reported as false.
    pub fn header(&mut self, name: HeaderName, value: &str) -> bool {
        let Ok(mut value) = HeaderValue::from_str(value) else { return false };
        value.set_sensitive(true);
        self.headers.append(name, value);
        true
    }
}

/// What came back, whatever its status.
#[derive(Clone)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// A header's value, if it is there and readable.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer({}, {} bytes)", self.status, self.body.len())
    }
}

impl Fetcher {
    /// Asks, again after a failure that may pass, and gives the last answer. An error means that there was none.
    pub async fn ask(&self, ask: &Ask) -> Result<Answer, FetchError> {
        let mut pauses = self.retries.build();
        let may_repeat = !ask.once && matches!(ask.method, Method::GET | Method::HEAD);
        loop {
            let answer = self.attempt_to_ask(ask).await;
            let wanted = match &answer {
                Ok(answer) if is_passing(answer.status.as_str()) => Some(wanted_pause(answer)),
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

    async fn attempt_to_ask(&self, ask: &Ask) -> Result<Answer, FetchError> {
        let Ok(answer) = tokio::time::timeout(ask.patience, self.answer(ask)).await else {
            let cause = format!("no whole answer within {} s", ask.patience.as_secs_f32());
            return Err(FetchError::Transfer { address: ask.address.clone(), cause });
        };
        answer
    }

    async fn answer(&self, ask: &Ask) -> Result<Answer, FetchError> {
        let mut request =
            self.client.request(ask.method.clone(), ask.address.url()).headers(ask.headers.clone());
        if let Some((kind, body)) = &ask.body {
            request = request.header(http::header::CONTENT_TYPE, kind).body(body.clone());
        }
        let response = request.send().await.map_err(|error| FetchError::transfer(&ask.address, error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        tracing::trace!(address = %ask.address, %status, method = %ask.method, "asked");
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(|error| FetchError::transfer(&ask.address, error))?);
            if body.len() as u64 > ask.limit {
                return Err(FetchError::TooLarge { address: ask.address.clone(), limit: ask.limit });
            }
        }
        Ok(Answer { status, headers, body: body.into() })
    }
}

/// The pause a busy server asks for, where it names seconds.
pub(super) fn wanted_pause(answer: &Answer) -> Option<Duration> {
    answer.header(RETRY_AFTER.as_str())?.trim().parse().ok().map(Duration::from_secs)
}

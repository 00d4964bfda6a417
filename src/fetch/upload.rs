//! One attempt to send a body whose pieces are made while it is sent. It follows no redirect: the pieces exist once.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use tokio::sync::{mpsc, watch};

use super::client::Fetcher;
use super::error::{FetchError, chain};
use super::request::HttpResponse;
use super::settings::FetchSettings;
use crate::model::address::Address;

/// The most that a server answers to an upload.
const LIMIT: u64 = 1 << 20;
/// The client's own timeout counts from the start of a request, however long its body is: here the pieces count.
const NO_TIMEOUT: Duration = Duration::from_hours(24);

/// A piece of a body, or why there is none.
pub type Piece = std::io::Result<Bytes>;

/// A request with a body of pieces.
pub struct Upload {
    /// The method.
    pub method: Method,
    /// Where it goes, and nowhere else.
    pub address: Address,
    /// Headers; their values may be secret.
    pub headers: HeaderMap,
    /// The body. An error among the pieces breaks the request off.
    pub pieces: mpsc::Receiver<Piece>,
    /// The longest time without a piece taken or an answer.
    pub silence: Duration,
}

impl Fetcher {
    /// The same client for [`Fetcher::upload`].
    pub fn for_uploads(&self) -> Result<Self, FetchError> {
        Self::new(&FetchSettings { silence: NO_TIMEOUT, ..(*self.settings).clone() })
    }

    /// Sends a body once and returns the response, whatever its status is. An error means no response.
    pub async fn upload(&self, upload: Upload) -> Result<HttpResponse, FetchError> {
        let Upload { method, address, mut headers, pieces, silence } = upload;
        let (taken, mut moves) = watch::channel(());
        let body = stream::unfold((pieces, taken), |(mut pieces, taken)| async move {
            let piece = pieces.recv().await?;
            taken.send_replace(());
            Some((piece, (pieces, taken)))
        });
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        let request = self.client.request(method, address.url()).headers(headers);
        let request = request.body(reqwest::Body::wrap_stream(body));
        let failed = |error: reqwest::Error| FetchError::Upload {
            address: address.clone(),
            cause: chain(&error.without_url()),
        };
        let answer = async {
            let response = request.send().await.map_err(failed)?;
            let (status, headers) = (response.status(), response.headers().clone());
            let connected = response.remote_addr();
            tracing::trace!(%address, %status, "sent");
            let body = limited(response).await.map_err(failed)?;
            Ok(HttpResponse { origin: address.origin(), connected, status, headers, body })
        };
        let mut answer = std::pin::pin!(answer);
        let silent = || {
            let cause = format!("no progress for {} s", silence.as_secs_f32());
            FetchError::Upload { address: address.clone(), cause }
        };
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                moved = tokio::time::timeout(silence, moves.changed()) => match moved {
                    Ok(Ok(())) => {}
                    // Everything is sent.
                    Ok(Err(_)) => {
                        return tokio::time::timeout(silence, answer).await.unwrap_or_else(|_| Err(silent()));
                    }
                    Err(_) => return Err(silent()),
                },
            }
        }
    }
}

/// The beginning of an answer: what is beyond the limit says nothing more.
async fn limited(mut response: reqwest::Response) -> reqwest::Result<Bytes> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() as u64 > LIMIT {
            break;
        }
    }
    Ok(body.into())
}

//! HTTP over [`Dialer`]: every request opens its own connection, which ends with the answer.
//!
//! bollard speaks through this too, so that TLS and ssh are written once. Connections are not kept: a clean-up on
//! another thread must not wait for a runtime that is about to end.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bollard::errors::Error;
use bollard::{BollardRequest, ClientVersion};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, Stream, StreamExt, TryStreamExt};
use http_body_util::{BodyExt, Either, Full, StreamBody};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::dial::{Dialer, Pipe};

/// bollard's limit for the head of an answer. An import answers only at its end, so this must not be short.
const ANSWER: u64 = 24 * 60 * 60;
/// What stands in requests as the host; the connection is made by the dialer.
const HOST: &str = "http://engine";

/// bollard's own type of a request's body, which it does not name.
type Body = Either<
    Full<Bytes>,
    StreamBody<Pin<Box<dyn Stream<Item = Result<http_body::Frame<Bytes>, io::Error>> + Send>>>,
>;

/// Sends requests to one daemon.
#[derive(Debug, Clone)]
pub(super) struct Http(Client<Dialer, Body>);

impl tower::Service<http::Uri> for Dialer {
    type Response = TokioIo<Pipe>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TokioIo<Pipe>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Uri) -> Self::Future {
        let dialer = self.clone();
        async move { dialer.dial().await.map(TokioIo::new) }.boxed()
    }
}

impl Http {
    pub(super) fn new(dialer: &Dialer) -> Self {
        Self(Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(dialer.clone()))
    }

    /// Posts a body; gives the status and the answer as it comes. Dropping either ends the connection.
    pub(super) async fn post(
        &self,
        path_and_query: &str,
        content_type: &str,
        body: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    ) -> Result<(http::StatusCode, BoxStream<'static, Result<Bytes, Error>>), Error> {
        let request = http::Request::post(format!("{HOST}{path_and_query}"))
            .header(http::header::CONTENT_TYPE, content_type)
            .body(bollard::body_try_stream(body))?;
        let answer = self.0.request(request).await?;
        let status = answer.status();
        Ok((status, answer.into_body().into_data_stream().map_err(Error::from).boxed()))
    }

    /// The same as bollard's client.
    pub(super) fn bollard(&self) -> Result<bollard::Docker, Error> {
        let client = self.0.clone();
        let send = move |request: BollardRequest| {
            let client = client.clone();
            async move { Ok(client.request(request).await?) }
        };
        let version: &ClientVersion = bollard::API_DEFAULT_VERSION;
        bollard::Docker::connect_with_custom_transport(send, Some(HOST), ANSWER, version)
    }
}

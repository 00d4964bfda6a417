//! HTTP over [`Connector`]: every request opens its own connection, which ends with the response.
//!
//! bollard uses it too, so that TLS and ssh are implemented once. Connections are not reused: a clean-up on another thread
//! must not wait for a runtime that is about to end.

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

use super::dial::{Connection, Connector};

/// bollard's time limit of a response header. An import responds only at its end, so this must be long.
const ANSWER: u64 = 24 * 60 * 60;
/// The host in requests; the dialer opens the connection.
const HOST: &str = "http://engine";

/// bollard's unnamed type of a request body.
pub(in crate::engine) type Body = Either<
    Full<Bytes>,
    StreamBody<Pin<Box<dyn Stream<Item = Result<http_body::Frame<Bytes>, io::Error>> + Send>>>,
>;

/// An HTTP client of one daemon.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Http(Client<Connector, Body>);

impl tower::Service<http::Uri> for Connector {
    type Response = TokioIo<Connection>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TokioIo<Connection>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Uri) -> Self::Future {
        let dialer = self.clone();
        async move { dialer.dial().await.map(TokioIo::new) }.boxed()
    }
}

impl Http {
    pub(in crate::engine) fn new(dialer: &Connector) -> Self {
        Self(Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(dialer.clone()))
    }

    /// Posts a body; returns the status and the streamed response. Dropping either ends the connection.
    pub(in crate::engine) async fn post(
        &self,
        path_and_query: &str,
        headers: http::HeaderMap,
        body: Body,
    ) -> Result<(http::StatusCode, BoxStream<'static, Result<Bytes, Error>>), Error> {
        let mut request = http::Request::post(format!("{HOST}{path_and_query}")).body(body)?;
        *request.headers_mut() = headers;
        let answer = self.0.request(request).await?;
        let status = answer.status();
        Ok((status, answer.into_body().into_data_stream().map_err(Error::from).boxed()))
    }

    /// Returns bollard's client on these connections, with that API version.
    pub(in crate::engine) fn bollard(&self, version: &ClientVersion) -> Result<bollard::Docker, Error> {
        let client = self.0.clone();
        let send = move |request: BollardRequest| {
            let client = client.clone();
            async move { Ok(client.request(request).await?) }
        };
        bollard::Docker::connect_with_custom_transport(send, Some(HOST), ANSWER, version)
    }
}

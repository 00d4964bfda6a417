//! The request of a classic build: an archive sent to `/build`, answered in lines.

use std::io;

use bytes::Bytes;
use futures_util::Stream;
use reqwest::Url;

use super::classic_output::{Message, PlainOutput, plain_error};
use crate::engine::error::EngineError;
use crate::engine::transport::daemon::Daemon;
use crate::engine::transport::messages::{Post, archive_headers, parse};

/// The query of the request.
pub(super) type Query = Vec<(&'static str, String)>;

/// Sends a build and reads its response to the end.
pub(super) async fn send_build(
    daemon: &Daemon,
    query: &Query,
    context: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    output: &mut PlainOutput<'_>,
) -> Result<(), EngineError> {
    let during = "a build";
    let url = Url::parse_with_params("http://engine/build", query).expect("the address is a constant");
    let path = format!("/build?{}", url.query().unwrap_or_default());
    let post = Post { during, path, headers: archive_headers(), body: bollard::body_try_stream(context) };
    daemon.post_lines(post, |line| take(line, output)).await?;
    if output.made {
        return Ok(());
    }
    Err(EngineError::Lost { during: during.to_owned(), cause: "the engine returned no image".to_owned() })
}

/// Reads one line of the response; an error inside it is an error, regardless of the HTTP status.
fn take(line: &str, output: &mut PlainOutput<'_>) -> Result<(), EngineError> {
    let message: Message = parse("a build", line)?;
    output.apply(&message);
    if message.error.is_empty() {
        return Ok(());
    }
    Err(EngineError::BuildFailed { text: plain_error(&message.error), output: Vec::new() })
}

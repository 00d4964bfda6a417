//! The request of a classic build: an archive sent to `/build`, answered in lines.

use std::io;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use reqwest::Url;
use serde::Deserialize;

use super::classic_output::{Message, PlainOutput, plain_error};
use crate::engine::error::EngineError;
use crate::engine::limits::LARGEST_MESSAGE;
use crate::engine::lines::Lines;
use crate::engine::transport::classify_error::refused;
use crate::engine::transport::daemon::Daemon;

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
    let answer = daemon.http.post(&path, "application/x-tar", context).await;
    let (status, mut body) = answer.map_err(|error| daemon.fault(during, error))?;
    let mut lines = Lines::up_to(LARGEST_MESSAGE);
    let mut refusal = String::new();
    while let Some(chunk) = body.next().await {
        for line in lines.push(&chunk.map_err(|error| daemon.fault(during, error))?) {
            if status.is_success() {
                take(&line, output)?;
            } else if refusal.len() < LARGEST_MESSAGE {
                refusal += &line;
            }
        }
    }
    let last = lines.finish().unwrap_or_default();
    if !status.is_success() {
        refusal += &last;
        let refusal = serde_json::from_str::<Refusal>(&refusal).map_or(refusal, |refusal| refusal.message);
        return Err(refused(during, &refusal));
    }
    if !last.is_empty() {
        take(&last, output)?;
    }
    if output.made {
        return Ok(());
    }
    Err(EngineError::Lost { during: during.to_owned(), cause: "the engine returned no image".to_owned() })
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
}

/// Reads one line of the response; an error inside it is an error, regardless of the HTTP status.
fn take(line: &str, output: &mut PlainOutput<'_>) -> Result<(), EngineError> {
    let message: Message =
        serde_json::from_str(line).map_err(|error| refused("a build", &format!("`{line}`: {error}")))?;
    output.apply(&message);
    if message.error.is_empty() {
        return Ok(());
    }
    Err(EngineError::BuildFailed { text: plain_error(&message.error), output: Vec::new() })
}

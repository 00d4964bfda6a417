//! Requests that the engine answers in lines of JSON: pull, push, import, load, build. A line is read up to a bound.

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Deserialize;

use super::classify_error::refused;
use super::daemon::Daemon;
use super::http::Body;
use crate::engine::error::EngineError;
use crate::engine::limits::LARGEST_MESSAGE;
use crate::engine::lines::Lines;

/// A request whose answer comes in lines.
pub(in crate::engine) struct Post<'a> {
    /// What is done, for messages: `the pull of …`.
    pub(in crate::engine) during: &'a str,
    /// The path with its query.
    pub(in crate::engine) path: String,
    /// Headers of the request.
    pub(in crate::engine) headers: HeaderMap,
    /// Its body.
    pub(in crate::engine) body: Body,
}

/// A line about a transfer.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::engine) struct Progress {
    /// The layer.
    pub(in crate::engine) id: Option<String>,
    /// What happens to it, or the result.
    pub(in crate::engine) status: Option<String>,
    /// How much of it is done.
    #[serde(rename = "progressDetail")]
    pub(in crate::engine) amount: Option<Amount>,
    error: Option<String>,
    error_detail: Option<Refusal>,
}

/// Bytes done and in all.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::engine) struct Amount {
    /// Done.
    pub(in crate::engine) current: Option<i64>,
    /// In all.
    pub(in crate::engine) total: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Refusal {
    message: String,
}

/// Returns a body without content.
pub(in crate::engine) fn empty() -> Body {
    bollard::body_full(Bytes::new())
}

/// Returns the headers of a request whose body is an archive.
pub(in crate::engine) fn archive_headers() -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/x-tar"))])
}

impl Daemon {
    /// Returns a path of the negotiated version of the API with its query.
    pub(in crate::engine) fn path(&self, path: &str, query: &[(&str, &str)]) -> String {
        let query =
            reqwest::Url::parse_with_params("http://engine", query).expect("the address is a constant");
        let query = query.query().filter(|query| !query.is_empty());
        let query = query.map_or_else(String::new, |query| format!("?{query}"));
        format!("/v{}{path}{query}", self.client.client_version())
    }

    /// Sends a request and hands over each line of its answer; a refusal is an error.
    pub(in crate::engine) async fn post_lines(
        &self,
        post: Post<'_>,
        mut take: impl FnMut(&str) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let during = post.during;
        let answer = self.http.post(&post.path, post.headers, post.body).await;
        let (status, mut body) = answer.map_err(|error| self.fault(during, error))?;
        let mut lines = Lines::up_to(LARGEST_MESSAGE);
        let mut refusal = String::new();
        while let Some(chunk) = body.next().await {
            for line in lines.push(&chunk.map_err(|error| self.fault(during, error))?) {
                if status.is_success() {
                    take(&line)?;
                } else if refusal.len() < LARGEST_MESSAGE {
                    refusal += &line;
                }
            }
        }
        let last = lines.finish().unwrap_or_default();
        if !status.is_success() {
            refusal += &last;
            let refusal =
                serde_json::from_str::<Refusal>(&refusal).map_or(refusal, |refusal| refusal.message);
            return Err(refused(during, &refusal));
        }
        if last.is_empty() { Ok(()) } else { take(&last) }
    }

    /// The same for lines about a transfer; an error in one is an error, regardless of the HTTP status.
    pub(in crate::engine) async fn follow(
        &self,
        post: Post<'_>,
        mut each: impl FnMut(&Progress),
    ) -> Result<(), EngineError> {
        let during = post.during;
        self.post_lines(post, |line| {
            let progress: Progress = parse(during, line)?;
            if let Some(text) =
                progress.error_detail.as_ref().map(|detail| &detail.message).or(progress.error.as_ref())
            {
                return Err(refused(during, text));
            }
            each(&progress);
            Ok(())
        })
        .await
    }

    /// Loads an archive of images.
    pub(in crate::engine) async fn load(&self, body: Body) -> Result<(), EngineError> {
        let path = self.path("/images/load", &[]);
        self.follow(Post { during: "loading an image", path, headers: archive_headers(), body }, |_| {}).await
    }
}

/// Parses a line of an answer.
pub(in crate::engine) fn parse<'a, T: Deserialize<'a>>(
    during: &str,
    line: &'a str,
) -> Result<T, EngineError> {
    serde_json::from_str(line).map_err(|error| {
        if line.len() >= LARGEST_MESSAGE {
            refused(during, &format!("a line of its answer is longer than {} MiB", LARGEST_MESSAGE >> 20))
        } else {
            refused(during, &format!("`{line}`: {error}"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::transport::address::Address;

    #[test]
    fn path_has_the_version_and_an_encoded_query() {
        let daemon = Daemon::open(Address::default()).unwrap().negotiated(Some("1.41")).unwrap();
        let path = daemon.path("/images/create", &[("fromImage", "box:5000/a@sha256:1"), ("tag", "x y")]);
        assert_eq!(path, "/v1.41/images/create?fromImage=box%3A5000%2Fa%40sha256%3A1&tag=x+y");
        assert_eq!(daemon.path("/images/load", &[]), "/v1.41/images/load");
    }

    #[test]
    fn line_that_is_no_json_or_too_long_is_refused() {
        let error = |line: &str| parse::<Progress>("a load", line).expect_err("refused").to_string();
        assert!(error("<html>").starts_with("the engine refused a load: `<html>`: expected value"));
        let long = format!("{{\"status\":\"{}", "x".repeat(LARGEST_MESSAGE));
        assert_eq!(error(&long), "the engine refused a load: a line of its answer is longer than 1 MiB");
    }
}

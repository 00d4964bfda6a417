//! The upload days of a package's files, which only the JSON form of an index page lists (PEP 700).

use std::collections::BTreeMap;
use std::time::Duration;

use http::header::ACCEPT;
use serde::Deserialize;

use crate::fetch::{Fetcher, HttpRequest};
use crate::model::address::Address;

const JSON: &str = "application/vnd.pypi.simple.v1+json";
/// Timeout of the page.
const PATIENCE: Duration = Duration::from_mins(2);

#[derive(Deserialize)]
struct Page {
    files: Vec<File>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    filename: String,
    upload_time: Option<String>,
}

/// Returns the upload day of each file (`2026-03-01`); empty for an index that lists none.
pub(crate) async fn upload_days(fetcher: &Fetcher, page: &Address, limit: u64) -> BTreeMap<String, String> {
    let mut ask = HttpRequest::get(page.clone(), limit, PATIENCE);
    ask.header(ACCEPT, JSON);
    match fetcher.ask(&ask).await {
        Ok(answer) if answer.status.is_success() => days(&answer.body),
        _ => BTreeMap::new(),
    }
}

fn days(body: &[u8]) -> BTreeMap<String, String> {
    let Ok(page) = serde_json::from_slice::<Page>(body) else { return BTreeMap::new() };
    let day = |file: File| {
        let day: jiff::civil::Date = file.upload_time?.get(..10)?.parse().ok()?;
        Some((file.filename, day.to_string()))
    };
    page.files.into_iter().filter_map(day).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn day_of_each_file_is_returned_and_a_wrong_one_is_left_out() {
        let body = br#"{"meta": {"api-version": "1.1"}, "name": "a", "files": [
            {"filename": "a-1.whl", "url": "x", "upload-time": "2026-03-01T23:59:59.5Z"},
            {"filename": "a-2.whl", "url": "x"}, {"filename": "a-3.whl", "upload-time": "last year"},
            {"filename": "a-4.whl", "upload-time": "2026-13-01T00:00:00Z"}]}"#;
        assert_eq!(days(body), [("a-1.whl".to_owned(), "2026-03-01".to_owned())].into());
        assert!(days(b"<html>").is_empty() && days(b"{}").is_empty());
    }
}

//! The upload days of a package's files, which only the JSON form of an index page lists.

use std::collections::BTreeMap;
use std::time::Duration;

use http::header::ACCEPT;

use crate::fetch::{Fetcher, HttpRequest};
use crate::model::address::Address;
use crate::packages::{JSON_PAGE, listed_files};

/// Timeout of the page.
const PATIENCE: Duration = Duration::from_mins(2);

/// Returns the upload day of each file (`2026-03-01`); empty for an index that lists none.
pub(crate) async fn upload_days(fetcher: &Fetcher, page: &Address, limit: u64) -> BTreeMap<String, String> {
    let mut ask = HttpRequest::get(page.clone(), limit, PATIENCE);
    ask.header(ACCEPT, JSON_PAGE);
    match fetcher.ask(&ask).await {
        Ok(answer) if answer.status.is_success() => {
            let files = listed_files(&answer.body).into_iter();
            files.filter_map(|file| Some((file.filename.clone(), file.day()?))).collect()
        }
        _ => BTreeMap::new(),
    }
}

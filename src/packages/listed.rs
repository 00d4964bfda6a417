//! What the indexes list of requested packages, asked before anything is resolved: whether a name is there at all, and the day of each
//! release.
//!
//! Asks the indexes that the resolver asks, in its order, and none after the one that has the name: a name of an internal index reaches
//! no other. An index that does not answer in time, or answers anything but that it has no such page, decides nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use http::header::ACCEPT;

use super::error::PackagesError;
use super::index_order::IndexOrder;
use super::index_page::links;
use super::json_page::{JSON_PAGE, listed_files};
use super::limits::LARGEST_PAGE;
use super::settings::IndexSettings;
use super::wheel_name::{WheelName, normalised};
use crate::fetch::{Fetcher, HttpRequest};
use crate::model::index_address::IndexAddress;
use crate::model::lock::UserAdditions;
use crate::model::misfit::ListedReleases;
use crate::model::stack::Stack;

/// Pages requested in parallel.
const PARALLEL: usize = 8;
/// The time after which what has not answered decides nothing.
const PATIENCE: Duration = Duration::from_secs(2);

/// A requested name that no index has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnlistedName {
    /// The package.
    pub package: String,
    /// The indexes that do not have it, by name, in the order of the search.
    pub indexes: Vec<String>,
}

/// What the indexes list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// Names that no index has.
    pub unlisted: Vec<UnlistedName>,
    /// The releases of the others, as far as their index tells days.
    pub releases: BTreeMap<String, ListedReleases>,
}

/// Requested packages, and where they are looked for.
#[derive(Clone, Copy)]
pub struct RequestedNames<'a> {
    /// The stack.
    pub stack: &'a Stack,
    /// The user's additions.
    pub added: &'a UserAdditions,
    /// The indexes.
    pub settings: &'a IndexSettings,
    /// Downloads.
    pub fetcher: &'a Fetcher,
}

/// What an index says of a name.
enum Answer {
    Here(ListedReleases),
    NotHere,
    Nothing,
}

impl RequestedNames<'_> {
    /// Returns what the indexes list of these packages.
    pub async fn listed(&self, packages: &[String]) -> Result<Listed, PackagesError> {
        let order = IndexOrder::beside(self.stack, self.added, self.settings, |_| false)?;
        let answers: Vec<_> = stream::iter(packages)
            .map(|package| {
                let indexes = order.addresses_of(package);
                async move { (package, self.search(package, &indexes).await) }
            })
            .buffer_unordered(PARALLEL)
            .take_until(tokio::time::sleep(PATIENCE))
            .collect()
            .await;
        let mut listed = Listed::default();
        for (package, answer) in answers {
            match answer {
                Some(Ok(releases)) => drop(listed.releases.insert(package.clone(), releases)),
                Some(Err(indexes)) => {
                    listed.unlisted.push(UnlistedName { package: package.clone(), indexes });
                }
                None => {}
            }
        }
        listed.unlisted.sort_by(|one, other| one.package.cmp(&other.package));
        Ok(listed)
    }

    /// What the first index that has a package lists, or those that do not have it; `None`: not known.
    async fn search(
        &self,
        package: &str,
        indexes: &[(&str, IndexAddress)],
    ) -> Option<Result<ListedReleases, Vec<String>>> {
        let mut without = Vec::new();
        for (name, index) in indexes {
            match self.ask(package, index).await {
                Answer::Here(releases) => return Some(Ok(releases)),
                Answer::NotHere => without.push((*name).to_owned()),
                Answer::Nothing => return None,
            }
        }
        (!without.is_empty()).then_some(Err(without))
    }

    async fn ask(&self, package: &str, index: &IndexAddress) -> Answer {
        let page = index.page_of(package);
        let mut request = HttpRequest::get(page.clone(), LARGEST_PAGE, PATIENCE);
        request.once = true;
        if !index.is_flat() {
            // Else the usual form, which tells whether the name is there.
            request.header(ACCEPT, &format!("{JSON_PAGE}, text/html;q=0.5"));
        }
        let Ok(answer) = self.fetcher.ask(&request).await else { return Answer::Nothing };
        match answer.status {
            StatusCode::NOT_FOUND if !index.is_flat() => Answer::NotHere,
            status if !status.is_success() => Answer::Nothing,
            _ if index.is_flat() => {
                let text = String::from_utf8_lossy(&answer.body);
                let found = links(&text, &page).any(|link| is_file_of(&link.file, package));
                if found { Answer::Here(ListedReleases::default()) } else { Answer::NotHere }
            }
            _ => Answer::Here(releases(&answer.body)),
        }
    }
}

/// Whether a file is a wheel or a source distribution of a package.
fn is_file_of(file: &str, package: &str) -> bool {
    if let Ok(name) = file.parse::<WheelName>() {
        return name.package == package;
    }
    let stem = [".tar.gz", ".zip", ".tar.bz2"].iter().find_map(|end| file.strip_suffix(end));
    stem.and_then(|stem| stem.rsplit_once('-')).is_some_and(|(name, _)| normalised(name) == package)
}

/// The releases of a page with the day of their first file; none for a page that tells no days.
fn releases(body: &[u8]) -> ListedReleases {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for file in listed_files(body).iter().filter(|file| !file.is_yanked()) {
        let (Some(day), Some(version)) = (file.day(), version_of(&file.filename)) else { continue };
        let first = all.entry(version).or_insert_with(|| day.clone());
        if day < *first {
            *first = day;
        }
    }
    ListedReleases(all)
}

/// The version in a file's name.
fn version_of(file: &str) -> Option<String> {
    if let Ok(name) = file.parse::<WheelName>() {
        return Some(name.version);
    }
    let stem = file.strip_suffix(".tar.gz").or_else(|| file.strip_suffix(".zip"))?;
    stem.rsplit_once('-').map(|(_, version)| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_releases_are_those_of_their_first_files() {
        let body = br#"{"files": [
            {"filename": "a-1.0-py3-none-any.whl", "upload-time": "2020-03-02T01:00:00Z"},
            {"filename": "a-1.0.tar.gz", "upload-time": "2020-03-01T01:00:00Z", "yanked": false},
            {"filename": "a-2.0.tar.gz", "upload-time": "2021-03-01T01:00:00Z", "yanked": "broken"},
            {"filename": "a-3.0.tar.gz"}, {"filename": "a.exe", "upload-time": "2022-03-01T01:00:00Z"}]}"#;
        let found = releases(body);
        assert_eq!(found.0, [("1.0".to_owned(), "2020-03-01".to_owned())].into());
        assert_eq!(releases(b"<a href=x>x</a>"), ListedReleases::default());
    }

    #[test]
    fn files_of_a_page_of_links_belong_to_a_package_by_name() {
        for (file, is_one) in [
            ("our_tool-1.0-py3-none-any.whl", true),
            ("our-tool-1.0.tar.gz", true),
            ("our_tools-1.0-py3-none-any.whl", false),
            ("index.html", false),
        ] {
            assert_eq!(is_file_of(file, "our-tool"), is_one, "{file}");
        }
    }
}

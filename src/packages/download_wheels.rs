//! Downloads the wheels of a lock file, found on the indexes by their file names, into the cache.
#![expect(clippy::disallowed_methods, reason = "edge: times its step")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::error::{PackagesError, ToolOutput};
use super::index_page::links;
use super::limits::LARGEST_PAGE;
use super::redact::without_addresses;
use super::settings::IndexSettings;
use crate::fetch::{Download, FetchError, Fetcher, Transfer};
use crate::model::address::Address;
use crate::model::counted::counted;
use crate::model::index_address::IndexAddress;
use crate::model::lock::{IndexKind, LockedWheel};
use crate::model::stack::Stack;
use crate::packages::wheel_addresses::WheelAddresses;
use crate::report::{Event, Reporter};
use crate::store::Store;

const STEP: &str = "wheels";
/// Pages requested in parallel.
const PARALLEL: usize = 8;

/// Current state of a locked wheel on the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamStatus {
    /// Available.
    There(Address),
    /// Available, but yanked by its publisher.
    Yanked(Address),
    /// A file of that name has another content.
    Changed(Address),
    /// No longer available.
    Gone,
}

/// Sources of the wheels of a stack.
#[derive(Clone, Copy)]
pub struct WheelSource<'a> {
    /// The stack, whose framework may have an index of its own.
    pub stack: &'a Stack,
    /// The indexes.
    pub index: &'a IndexSettings,
    /// Downloads.
    pub fetcher: &'a Fetcher,
    /// Addresses that are known without an index.
    pub known: Option<&'a WheelAddresses>,
}

impl WheelSource<'_> {
    /// The indexes that may have a wheel, best first.
    fn indexes(&self, wheel: &LockedWheel) -> Result<Vec<IndexAddress>, PackagesError> {
        let none = || PackagesError::NoIndexNamed { file: wheel.file.clone() };
        let Self { stack, index, .. } = self;
        let mut all: Vec<IndexAddress> = match wheel.index {
            IndexKind::Framework => index.framework_indexes(stack),
            IndexKind::Local => return Err(PackagesError::LocalWheelGone { file: wheel.file.clone() }),
            IndexKind::Default => {
                // The index of a package that has one elsewhere is asked first, and the default index last: it need not know
                // the names of internal packages.
                let named = wheel.index_name.as_ref().and_then(|name| index.further.get(name).cloned());
                let default = index.default.clone().map(IndexAddress::from);
                let (first, last) =
                    if wheel.index_name.is_some() { (named, default) } else { (default, None) };
                first.into_iter().chain(index.further.values().cloned()).chain(last).collect()
            }
        };
        let mut seen = BTreeSet::new();
        all.retain(|index| seen.insert(index.clone()));
        if all.is_empty() { Err(none()) } else { Ok(all) }
    }

    /// Returns the page of a package with its address; `None`: the index does not have the package.
    pub(super) async fn page(
        &self,
        index: &IndexAddress,
        package: &str,
    ) -> Result<Option<(Address, String)>, PackagesError> {
        let page = index.page_of(package);
        match self.fetcher.document(&page, LARGEST_PAGE).await {
            Ok(text) => Ok(Some((page, String::from_utf8_lossy(&text).into_owned()))),
            Err(FetchError::NotFound { .. }) => Ok(None),
            Err(error) => {
                let cause = ToolOutput(without_addresses(&error.to_string()));
                Err(PackagesError::Index { package: Some(package.to_owned()), cause })
            }
        }
    }

    /// Returns the current state of a wheel on the indexes.
    pub async fn upstream(&self, wheel: &LockedWheel) -> Result<UpstreamStatus, PackagesError> {
        if let Some(address) = self.known.and_then(|known| known.get(&wheel.sha256)) {
            return Ok(UpstreamStatus::There(address.clone()));
        }
        let mut said = UpstreamStatus::Gone;
        for index in self.indexes(wheel)? {
            let Some((page, text)) = self.page(&index, &wheel.name).await? else { continue };
            let Some(link) = links(&text, &page).find(|link| link.file == wheel.file) else { continue };
            said = match link.tag.split_once("sha256=") {
                Some((_, rest)) if !rest.starts_with(&wheel.sha256) => UpstreamStatus::Changed(link.address),
                _ if link.is_yanked() => UpstreamStatus::Yanked(link.address),
                _ => return Ok(UpstreamStatus::There(link.address)),
            };
        }
        // Without the index that it came from its state is unknown.
        let is_known = match &wheel.index_name {
            Some(name) => self.index.further.contains_key(name) || self.index.default.is_some(),
            None => wheel.index != IndexKind::Default || self.index.default.is_some(),
        };
        if said == UpstreamStatus::Gone && !is_known {
            return Err(PackagesError::NoIndexNamed { file: wheel.file.clone() });
        }
        Ok(said)
    }

    /// Downloads wheels into the cache, including yanked ones: the lock file lists them.
    pub async fn gather(
        &self,
        wheels: &[&LockedWheel],
        store: &Store,
        reporter: Arc<dyn Reporter>,
    ) -> Result<(), PackagesError> {
        self.gather_each(wheels, store, reporter, &|_| {}).await
    }

    /// The same; `arrived` is called with the SHA-256 of each wheel when it was downloaded.
    pub async fn gather_each(
        &self,
        wheels: &[&LockedWheel],
        store: &Store,
        reporter: Arc<dyn Reporter>,
        arrived: &(dyn Fn(&str) + Sync),
    ) -> Result<(), PackagesError> {
        let mut missing = Vec::new();
        for wheel in wheels {
            if store.find(&wheel.sha256)?.is_none() {
                missing.push(*wheel);
            }
        }
        let started = Instant::now();
        let id = STEP.to_owned();
        let text = format!("download {}", counted(missing.len(), "wheel"));
        reporter.report(Event::StepStarted { id: id.clone(), text });
        let done = self.download(&missing, store, Arc::clone(&reporter), arrived).await;
        let seconds = started.elapsed().as_secs_f64();
        reporter.report(match &done {
            Ok(()) => Event::StepFinished { id, cached: missing.is_empty(), seconds },
            Err(error) => Event::StepFailed { id, text: error.to_string() },
        });
        done
    }

    async fn download(
        &self,
        missing: &[&LockedWheel],
        store: &Store,
        reporter: Arc<dyn Reporter>,
        arrived: &(dyn Fn(&str) + Sync),
    ) -> Result<(), PackagesError> {
        let downloads: Vec<Download> = stream::iter(missing.iter().copied())
            .map(|wheel| async move {
                let addresses = match self.upstream(wheel).await? {
                    UpstreamStatus::There(address)
                    | UpstreamStatus::Yanked(address)
                    | UpstreamStatus::Changed(address) => {
                        vec![address]
                    }
                    UpstreamStatus::Gone => {
                        return Err(PackagesError::WheelGone { file: wheel.file.clone() });
                    }
                };
                let (name, sha256) = (wheel.file.clone(), wheel.sha256.clone());
                Ok::<_, PackagesError>(Download { name, addresses, sha256, size: wheel.size, login: None })
            })
            .buffer_unordered(PARALLEL)
            .try_collect()
            .await?;
        let total = missing.iter().map(|wheel| wheel.size).sum();
        let transfer = Transfer::new(reporter, STEP, total);
        self.fetcher.fetch_each(store, &downloads, &transfer, &|one| arrived(&one.sha256)).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::failure::{Exit, Failure as _};

    use super::*;
    use crate::model::lock::sample;
    use crate::model::sha256::sha256_hex;
    use crate::packages::test_downloads::TestDownloads;
    use crate::report::NullReporter;

    struct Fixture {
        downloads: TestDownloads,
        index: IndexSettings,
        wheel: LockedWheel,
    }

    async fn fixture(page: &str) -> Fixture {
        let downloads = TestDownloads::start().await;
        let mut wheel = sample::lock().wheels[0].clone();
        wheel.sha256 = sha256_hex(b"wheel");
        let page = page.replace("FILE", &wheel.file).replace("HASH", &wheel.sha256);
        downloads.serve("/simple/torch/", page.as_bytes()).await;
        downloads.serve(&format!("/files/{}", wheel.file), b"wheel").await;
        let default = Some(format!("{}/simple", downloads.server.uri()).parse().expect("an address"));
        Fixture { downloads, index: IndexSettings { default, ..IndexSettings::default() }, wheel }
    }

    impl Fixture {
        async fn gather(&self) -> Result<(), PackagesError> {
            self.gather_each(&|_| {}).await
        }

        async fn gather_each(&self, arrived: &(dyn Fn(&str) + Sync)) -> Result<(), PackagesError> {
            let stack = sample::stack();
            let source = WheelSource {
                stack: &stack,
                index: &self.index,
                fetcher: &self.downloads.fetcher,
                known: None,
            };
            source.gather_each(&[&self.wheel], &self.downloads.store, Arc::new(NullReporter), arrived).await
        }
        async fn upstream(&self) -> UpstreamStatus {
            let stack = sample::stack();
            let source = WheelSource {
                stack: &stack,
                index: &self.index,
                fetcher: &self.downloads.fetcher,
                known: None,
            };
            source.upstream(&self.wheel).await.expect("an answer")
        }
    }

    const LINK: &str =
        "<a href=\"../../files/other.whl\">x</a> <a href=\"../../files/FILE#sha256=HASH\">x</a>";

    #[tokio::test]
    async fn wheel_is_found_by_file_name_and_downloaded_once() {
        let f = fixture(LINK).await;
        assert!(matches!(f.upstream().await, UpstreamStatus::There(_)));
        let arrived = std::sync::Mutex::new(Vec::new());
        f.gather_each(&|sha256| arrived.lock().expect("one thread").push(sha256.to_owned()))
            .await
            .expect("gathered");
        assert_eq!(arrived.into_inner().expect("one thread"), [f.wheel.sha256.as_str()]);
        assert!(f.downloads.store.find(&f.wheel.sha256).expect("find").is_some());
        let before = f.downloads.server.received_requests().await.expect("recorded").len();
        f.gather().await.expect("again");
        assert_eq!(f.downloads.server.received_requests().await.expect("recorded").len(), before);
    }

    #[tokio::test]
    async fn wheel_of_a_further_index_is_requested_from_that_index_only() {
        let mut f = fixture(LINK).await;
        let own = format!("{}/own", f.downloads.server.uri()).parse().expect("an address");
        let (others, default) = (f.index.further.clone(), f.index.default.clone());
        f.index.further = [("internal".to_owned(), own)].into();
        f.wheel.index_name = Some("internal".to_owned());
        let page = LINK.replace("FILE", &f.wheel.file).replace("HASH", &f.wheel.sha256);
        f.downloads.serve("/own/torch/", page.as_bytes()).await;
        assert!(matches!(f.upstream().await, UpstreamStatus::There(_)));
        let asked = f.downloads.server.received_requests().await.expect("recorded");
        let asked: Vec<_> = asked.iter().map(|request| request.url.path()).collect();
        assert_eq!(asked, ["/own/torch/"], "the default index does not learn the name");
        f.index.default = None;
        let empty = format!("{}/empty", f.downloads.server.uri()).parse().expect("an address");
        f.index.further = [("internal".to_owned(), empty)].into();
        assert_eq!(f.upstream().await, UpstreamStatus::Gone, "its index is set, and no other is needed");
        f.index.default = default;
        // Without that index the hash decides: any index may have the file.
        f.index.further = others;
        assert!(matches!(f.upstream().await, UpstreamStatus::There(_)));
    }

    #[tokio::test]
    async fn wheel_of_a_release_page_is_found_on_the_page_itself() {
        let mut f = fixture(LINK).await;
        f.wheel.index = IndexKind::Framework;
        let page = format!("flat+{}/v{{version}}/files.html", f.downloads.server.uri());
        f.index.framework = Some(page.parse().expect("an address"));
        // A release page tells no hashes: that of the lock decides.
        let links =
            format!("<a href=\"other-1.0-py3-none-any.whl\">x</a><a href=\"/files/{}\">x</a>", f.wheel.file);
        let path = format!("/v{}/files.html", sample::stack().version);
        f.downloads.serve(&path, links.as_bytes()).await;
        assert!(matches!(f.upstream().await, UpstreamStatus::There(_)));
        let arrived = std::sync::Mutex::new(Vec::new());
        f.gather_each(&|sha256| arrived.lock().expect("one thread").push(sha256.to_owned()))
            .await
            .expect("gathered");
        assert_eq!(arrived.into_inner().expect("one thread"), [f.wheel.sha256.as_str()]);
        assert!(f.downloads.store.find(&f.wheel.sha256).expect("find").is_some());
        let asked = f.downloads.server.received_requests().await.expect("recorded");
        assert!(
            asked.iter().all(|request| !request.url.path().ends_with("/torch/")),
            "no simple page is asked"
        );

        f.wheel.sha256 = sha256_hex(b"another wheel");
        let error = f.gather().await.expect_err("other bytes under that name");
        assert!(matches!(error, PackagesError::Fetch(FetchError::WrongHash { .. })), "{error:?}");
    }

    #[tokio::test]
    async fn distinguishes_deleted_yanked_and_changed_wheels() {
        assert_eq!(fixture("<a href='x.whl'>x</a>").await.upstream().await, UpstreamStatus::Gone);
        let yanked = fixture("<a href=\"../../files/FILE#sha256=HASH\" data-yanked=\"bad\">x</a>").await;
        assert!(matches!(yanked.upstream().await, UpstreamStatus::Yanked(_)));
        yanked.gather().await.expect("the lock file lists it");
        let other = format!("<a href=\"../../files/FILE#sha256={}\">x</a>", "0".repeat(64));
        assert!(matches!(fixture(&other).await.upstream().await, UpstreamStatus::Changed(_)));
    }

    #[tokio::test]
    async fn error_names_missing_or_tampered_wheel() {
        let f = fixture("<a href='x.whl'>x</a>").await;
        let error = f.gather().await.expect_err("gone");
        assert!(error.to_string().contains(&f.wheel.file), "{error}");
        assert_eq!(error.exit(), Exit::Outside);
        let mut f = fixture(LINK).await;
        f.wheel.sha256 = "0".repeat(64);
        let error = f.gather().await.expect_err("another content");
        assert!(matches!(error, PackagesError::Fetch(FetchError::WrongHash { .. })), "{error:?}");
        f.index.default = None;
        let error = f.gather().await.expect_err("no index");
        assert!(error.hints()[0].contains("ENVFORGE_INDEX"), "{error}");
        assert_eq!(error.exit(), Exit::Usage);
    }
}

//! The wheels a lock names, found on the indexes by their file names and made present in the cache.
#![expect(clippy::disallowed_methods, reason = "edge: times its step")]

use std::sync::Arc;
use std::time::Instant;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::error::{PackagesError, Words};
use super::index_page::links;
use super::redact::without_addresses;
use super::settings::IndexSettings;
use crate::address::Address;
use crate::fetch::{Download, FetchError, Fetcher, Transfer};
use crate::lock::{IndexKind, LockedWheel};
use crate::report::{Event, Reporter};
use crate::stack::Stack;
use crate::store::Store;

const STEP: &str = "wheels";
/// More than any page of an index.
const PAGE_LIMIT: u64 = 64 << 20;
/// Pages asked at a time.
const PARALLEL: usize = 8;

/// What an index says of a locked wheel today.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upstream {
    /// It has it.
    There(Address),
    /// It has it, and its publisher has withdrawn it.
    Yanked(Address),
    /// It has a file of that name with another content.
    Changed(Address),
    /// It has it no more.
    Gone,
}

/// Where wheels of a stack may come from.
#[derive(Clone, Copy)]
pub struct WheelSource<'a> {
    /// The stack, whose framework may have an index of its own.
    pub stack: &'a Stack,
    /// The indexes.
    pub index: &'a IndexSettings,
    /// Downloads.
    pub fetcher: &'a Fetcher,
}

impl WheelSource<'_> {
    /// The indexes that may have a wheel, best first.
    fn indexes(&self, wheel: &LockedWheel) -> Result<Vec<Address>, PackagesError> {
        let none = || PackagesError::NoIndexNamed { file: wheel.file.clone() };
        let Self { stack, index, .. } = self;
        let mut all: Vec<Address> = match wheel.index {
            IndexKind::Framework => index.framework_index(&stack.framework, stack.cuda).into_iter().collect(),
            IndexKind::Local => return Err(PackagesError::LocalWheelGone { file: wheel.file.clone() }),
            IndexKind::Default => index.default.iter().chain(index.further.values()).cloned().collect(),
        };
        all.dedup();
        if all.is_empty() { Err(none()) } else { Ok(all) }
    }

    /// What the indexes say of a wheel today.
    pub async fn upstream(&self, wheel: &LockedWheel) -> Result<Upstream, PackagesError> {
        let mut said = Upstream::Gone;
        for index in self.indexes(wheel)? {
            let page = index.join(&format!("{}/", wheel.name));
            let text = match self.fetcher.document(&page, PAGE_LIMIT).await {
                Ok(text) => text,
                Err(FetchError::NotFound { .. }) => continue,
                Err(error) => {
                    let cause = Words(without_addresses(&error.to_string()));
                    return Err(PackagesError::Index { package: Some(wheel.name.clone()), cause });
                }
            };
            let text = String::from_utf8_lossy(&text);
            let Some(link) = links(&text, &page).find(|link| link.file == wheel.file) else { continue };
            said = match link.tag.split_once("sha256=") {
                Some((_, rest)) if !rest.starts_with(&wheel.sha256) => Upstream::Changed(link.address),
                _ if link.is_yanked() => Upstream::Yanked(link.address),
                _ => return Ok(Upstream::There(link.address)),
            };
        }
        // Without a default index it is not known what that would have said.
        if said == Upstream::Gone && wheel.index == IndexKind::Default && self.index.default.is_none() {
            return Err(PackagesError::NoIndexNamed { file: wheel.file.clone() });
        }
        Ok(said)
    }

    /// Makes wheels present in the cache. A yanked one is still had: the lock names it.
    pub async fn gather(
        &self,
        wheels: &[&LockedWheel],
        store: &Store,
        reporter: Arc<dyn Reporter>,
    ) -> Result<(), PackagesError> {
        let mut missing = Vec::new();
        for wheel in wheels {
            if store.find(&wheel.sha256)?.is_none() {
                missing.push(*wheel);
            }
        }
        let started = Instant::now();
        let id = STEP.to_owned();
        let text = format!("download {} wheels", missing.len());
        reporter.report(Event::StepStarted { id: id.clone(), text });
        let done = self.download(&missing, store, Arc::clone(&reporter)).await;
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
    ) -> Result<(), PackagesError> {
        let downloads: Vec<Download> = stream::iter(missing.iter().copied())
            .map(|wheel| async move {
                let addresses = match self.upstream(wheel).await? {
                    Upstream::There(address) | Upstream::Yanked(address) | Upstream::Changed(address) => {
                        vec![address]
                    }
                    Upstream::Gone => return Err(PackagesError::WheelGone { file: wheel.file.clone() }),
                };
                let (name, sha256) = (wheel.file.clone(), wheel.sha256.clone());
                Ok::<_, PackagesError>(Download { name, addresses, sha256, size: wheel.size })
            })
            .buffer_unordered(PARALLEL)
            .try_collect()
            .await?;
        let total = missing.iter().map(|wheel| wheel.size).sum();
        let transfer = Transfer::new(reporter, STEP, total);
        self.fetcher.all_into(store, &downloads, &transfer).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;
    use wiremock::matchers::path;
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;
    use crate::fetch::FetchSettings;
    use crate::lock::sample;
    use crate::report::Silent;
    use crate::sha256::sha256_hex;

    struct Fixture {
        server: MockServer,
        store: Store,
        fetcher: Fetcher,
        index: IndexSettings,
        wheel: LockedWheel,
        _folder: tempfile::TempDir,
    }

    async fn fixture(page: &str) -> Fixture {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let server = MockServer::start().await;
        let mut wheel = sample::lock().wheels[0].clone();
        wheel.sha256 = sha256_hex(b"wheel");
        let page = page.replace("FILE", &wheel.file).replace("HASH", &wheel.sha256);
        let body = ResponseTemplate::new(200).set_body_string(page);
        Mock::given(path("/simple/torch/")).respond_with(body).mount(&server).await;
        let body = ResponseTemplate::new(200).set_body_bytes(b"wheel".as_slice());
        Mock::given(path(format!("/files/{}", wheel.file))).respond_with(body).mount(&server).await;
        let default = Some(format!("{}/simple", server.uri()).parse().expect("an address"));
        Fixture {
            server,
            store: Store::open(&root.join("cache"), &root.join("state")).expect("store"),
            fetcher: Fetcher::new(&FetchSettings { attempts: 1, ..FetchSettings::default() })
                .expect("client"),
            index: IndexSettings { default, ..IndexSettings::default() },
            wheel,
            _folder: folder,
        }
    }

    impl Fixture {
        async fn gather(&self) -> Result<(), PackagesError> {
            let stack = sample::stack();
            let source = WheelSource { stack: &stack, index: &self.index, fetcher: &self.fetcher };
            source.gather(&[&self.wheel], &self.store, Arc::new(Silent)).await
        }
        async fn upstream(&self) -> Upstream {
            let stack = sample::stack();
            let source = WheelSource { stack: &stack, index: &self.index, fetcher: &self.fetcher };
            source.upstream(&self.wheel).await.expect("an answer")
        }
    }

    const LINK: &str =
        "<a href=\"../../files/other.whl\">x</a> <a href=\"../../files/FILE#sha256=HASH\">x</a>";

    #[tokio::test]
    async fn a_wheel_is_found_by_its_file_name_and_comes_once() {
        let f = fixture(LINK).await;
        assert!(matches!(f.upstream().await, Upstream::There(_)));
        f.gather().await.expect("gathered");
        assert!(f.store.find(&f.wheel.sha256).expect("find").is_some());
        let before = f.server.received_requests().await.expect("recorded").len();
        f.gather().await.expect("again");
        assert_eq!(f.server.received_requests().await.expect("recorded").len(), before);
    }

    #[tokio::test]
    async fn what_upstream_deleted_withdrew_or_changed_is_told_apart() {
        assert_eq!(fixture("<a href='x.whl'>x</a>").await.upstream().await, Upstream::Gone);
        let yanked = fixture("<a href=\"../../files/FILE#sha256=HASH\" data-yanked=\"bad\">x</a>").await;
        assert!(matches!(yanked.upstream().await, Upstream::Yanked(_)));
        yanked.gather().await.expect("the lock names it, so it is had");
        let other = format!("<a href=\"../../files/FILE#sha256={}\">x</a>", "0".repeat(64));
        assert!(matches!(fixture(&other).await.upstream().await, Upstream::Changed(_)));
    }

    #[tokio::test]
    async fn a_wheel_that_is_gone_or_tampered_with_is_named() {
        let f = fixture("<a href='x.whl'>x</a>").await;
        let error = f.gather().await.expect_err("gone");
        assert!(error.to_string().contains(&f.wheel.file), "{error}");
        assert_eq!(error.exit_code(), 3);
        let mut f = fixture(LINK).await;
        f.wheel.sha256 = "0".repeat(64);
        let error = f.gather().await.expect_err("another content");
        assert!(matches!(error, PackagesError::Fetch(FetchError::WrongHash { .. })), "{error:?}");
        f.index.default = None;
        let error = f.gather().await.expect_err("no index");
        assert!(error.hints()[0].contains("ENVFORGE_INDEX"), "{error}");
        assert_eq!(error.exit_code(), 2);
    }
}

//! What a lock names, made present in the cache.
#![expect(clippy::disallowed_methods, reason = "edge: times its step")]

use std::sync::Arc;
use std::time::Instant;

use camino::Utf8PathBuf;

use super::error::PackagesError;
use super::uv::{UvSource, uv_binary};
use crate::address::Address;
use crate::fetch::{Download, FetchError, Fetcher, Transfer};
use crate::lock::{Lock, LockedDeb};
use crate::report::{Event, Reporter};
use crate::store::Store;

const STEP: &str = "distribution-packages";

/// Makes every distribution package above the base present in the cache: from there, else from the mirrors in order.
pub async fn gather_debs(
    lock: &Lock,
    store: &Store,
    fetcher: &Fetcher,
    mirrors: &[Address],
    reporter: Arc<dyn Reporter>,
) -> Result<(), PackagesError> {
    let started = Instant::now();
    let mut missing = Vec::new();
    for deb in lock.debs() {
        if store.find(&deb.sha256)?.is_none() {
            missing.push(deb);
        }
    }
    let id = STEP.to_owned();
    let text = format!("download {} distribution packages", missing.len());
    if let Some(first) = missing.first()
        && mirrors.is_empty()
    {
        return Err(PackagesError::NoMirror { name: first.name.clone(), version: first.version.clone() });
    }
    reporter.report(Event::StepStarted { id: id.clone(), text });
    let total = missing.iter().map(|deb| deb.size).sum();
    let transfer = Transfer::new(Arc::clone(&reporter), STEP, Some(total));
    let downloads: Vec<_> = missing.iter().map(|deb| download(deb, mirrors)).collect();
    let done = fetcher.all_into(store, &downloads, &transfer).await.map_err(|error| gone(error, &missing));
    reporter.report(match &done {
        Ok(_) => {
            let seconds = started.elapsed().as_secs_f64();
            Event::StepFinished { id, cached: missing.is_empty(), seconds }
        }
        Err(error) => Event::StepFailed { id, text: error.to_string() },
    });
    done.map(drop)
}

/// The program uv a lock names, as a file of the cache.
pub async fn gather_uv(
    lock: &Lock,
    source: &UvSource<'_>,
    store: &Store,
    fetcher: &Fetcher,
    reporter: Arc<dyn Reporter>,
) -> Result<Utf8PathBuf, PackagesError> {
    let tool = lock.tools.iter().find(|tool| tool.name == "uv").ok_or(PackagesError::NoUvLocked)?;
    uv_binary(tool, source, store, fetcher, reporter).await
}

fn download(deb: &LockedDeb, mirrors: &[Address]) -> Download {
    Download {
        name: deb.name.clone(),
        addresses: mirrors.iter().map(|mirror| mirror.join(&deb.path)).collect(),
        sha256: deb.sha256.clone(),
        size: Some(deb.size),
    }
}

fn gone(error: FetchError, missing: &[&LockedDeb]) -> PackagesError {
    match &error {
        FetchError::NotFound { name, .. } => match missing.iter().find(|deb| deb.name == *name) {
            Some(deb) => PackagesError::DebGone { name: deb.name.clone(), version: deb.version.clone() },
            None => error.into(),
        },
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use wiremock::matchers::path;
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;
    use crate::fetch::FetchSettings;
    use crate::lock::sample;
    use crate::packages::settings::PackageSettings;
    use crate::packages::test_engine::OneRun;
    use crate::report::Silent;
    use crate::sha256::sha256_hex;

    struct Fixture {
        server: MockServer,
        store: Store,
        fetcher: Fetcher,
        lock: Lock,
        _folder: tempfile::TempDir,
    }

    async fn fixture() -> Fixture {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let settings = FetchSettings { attempts: 1, ..FetchSettings::default() };
        let mut lock = sample::lock();
        lock.system[0].sha256 = sha256_hex(b"deb");
        lock.system[0].size = 3;
        Fixture {
            server: MockServer::start().await,
            store: Store::open(&root.join("cache"), &root.join("state")).expect("store"),
            fetcher: Fetcher::new(&settings).expect("client"),
            lock,
            _folder: folder,
        }
    }

    impl Fixture {
        async fn gather(&self, roots: &[&str]) -> Result<(), PackagesError> {
            let address = |root: &&str| format!("{}{root}", self.server.uri()).parse().expect("address");
            let mirrors: Vec<Address> = roots.iter().map(address).collect();
            gather_debs(&self.lock, &self.store, &self.fetcher, &mirrors, Arc::new(Silent)).await
        }
        async fn serve(&self, root: &str, body: &[u8]) {
            let at = path(format!("{root}/{}", self.lock.system[0].path));
            Mock::given(at)
                .respond_with(ResponseTemplate::new(200).set_body_bytes(body))
                .mount(&self.server)
                .await;
        }
    }

    #[tokio::test]
    async fn a_package_comes_from_the_mirror_that_has_it_and_then_from_the_cache() {
        let f = fixture().await;
        f.serve("/security", b"deb").await;
        f.gather(&["/debian", "/security"]).await.expect("second mirror");
        assert!(f.store.find(&sha256_hex(b"deb")).expect("find").is_some());
        f.gather(&[]).await.expect("no mirror is needed for what the cache has");
    }

    #[tokio::test]
    async fn a_package_no_mirror_has_any_more_is_named_with_what_to_do() {
        let f = fixture().await;
        let error = f.gather(&["/debian"]).await.expect_err("gone");
        assert_eq!(
            error.to_string(),
            "`python3 3.11.2-1+b1` is neither in the cache nor on a mirror any more"
        );
        assert_eq!(error.exit_code(), 3);
        assert!(error.hints()[0].contains("lock --upgrade"));
    }

    #[tokio::test]
    async fn a_tampered_package_and_a_missing_mirror_are_told() {
        let f = fixture().await;
        f.serve("/debian", b"bed").await;
        let error = f.gather(&["/debian"]).await.expect_err("tampered");
        assert!(matches!(error, PackagesError::Fetch(FetchError::WrongHash { .. })), "{error:?}");
        let error = f.gather(&[]).await.expect_err("no mirror");
        assert!(matches!(error, PackagesError::NoMirror { .. }), "{error:?}");
        assert!(error.hints()[0].contains("ENVFORGE_DEBIAN_MIRROR"));
    }

    #[tokio::test]
    async fn a_lock_without_uv_is_said_so() {
        let mut f = fixture().await;
        f.lock.tools.clear();
        let (engine, settings) = (OneRun::default(), PackageSettings::default());
        let source = UvSource { engine: &engine, base_reference: "base", settings: &settings };
        let error =
            gather_uv(&f.lock, &source, &f.store, &f.fetcher, Arc::new(Silent)).await.expect_err("none");
        assert_eq!(error.exit_code(), 2);
    }
}

//! Downloads the packages of a lock file into the cache.
#![expect(clippy::disallowed_methods, reason = "edge: times its step")]

use std::sync::Arc;
use std::time::Instant;

use camino::Utf8PathBuf;

use super::error::PackagesError;
use super::uv::uv_binary;
use super::uv_source::UvSource;
use crate::fetch::{Download, FetchError, Fetcher, Transfer};
use crate::model::address::Address;
use crate::model::lock::{Lock, LockedDeb};
use crate::report::{Event, Reporter};
use crate::store::Store;

const STEP: &str = "distribution-packages";

/// Downloads the missing distribution packages above the base from the mirrors, in order.
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
    let done = fetcher.fetch_all(store, &downloads, &transfer).await.map_err(|error| gone(error, &missing));
    reporter.report(match &done {
        Ok(_) => {
            let seconds = started.elapsed().as_secs_f64();
            Event::StepFinished { id, cached: missing.is_empty(), seconds }
        }
        Err(error) => Event::StepFailed { id, text: error.to_string() },
    });
    done.map(drop)
}

/// Returns the path of the locked uv program in the cache.
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
        login: None,
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
    use super::*;
    use crate::failure::{Exit, Failure as _};
    use crate::model::lock::sample;
    use crate::model::sha256::sha256_hex;
    use crate::packages::resolver_image::Resolver;
    use crate::packages::settings::PackageSettings;
    use crate::packages::test_downloads::TestDownloads;
    use crate::packages::test_engine::FakeEngine;
    use crate::report::NullReporter;

    struct Fixture {
        downloads: TestDownloads,
        lock: Lock,
    }

    async fn fixture() -> Fixture {
        let mut lock = sample::lock();
        lock.system[0].sha256 = sha256_hex(b"deb");
        lock.system[0].size = 3;
        Fixture { downloads: TestDownloads::start().await, lock }
    }

    impl Fixture {
        async fn gather(&self, roots: &[&str]) -> Result<(), PackagesError> {
            let TestDownloads { server, store, fetcher, .. } = &self.downloads;
            let address = |root: &&str| format!("{}{root}", server.uri()).parse().expect("address");
            let mirrors: Vec<Address> = roots.iter().map(address).collect();
            gather_debs(&self.lock, store, fetcher, &mirrors, Arc::new(NullReporter)).await
        }
        async fn serve(&self, root: &str, body: &[u8]) {
            self.downloads.serve(&format!("{root}/{}", self.lock.system[0].path), body).await;
        }
    }

    #[tokio::test]
    async fn package_is_downloaded_once_from_a_mirror_that_has_it() {
        let f = fixture().await;
        f.serve("/security", b"deb").await;
        f.gather(&["/debian", "/security"]).await.expect("second mirror");
        assert!(f.downloads.store.find(&sha256_hex(b"deb")).expect("find").is_some());
        f.gather(&[]).await.expect("no mirror is needed for what the cache has");
    }

    #[tokio::test]
    async fn package_missing_on_all_mirrors_is_reported() {
        let f = fixture().await;
        let error = f.gather(&["/debian"]).await.expect_err("gone");
        assert_eq!(error.to_string(), "`python3 3.11.2-1+b1` not found in the cache or on any mirror");
        assert_eq!(error.exit(), Exit::Outside);
        assert!(error.hints()[0].contains("lock --upgrade"));
    }

    #[tokio::test]
    async fn tampered_package_and_missing_mirror_are_reported() {
        let f = fixture().await;
        f.serve("/debian", b"bed").await;
        let error = f.gather(&["/debian"]).await.expect_err("tampered");
        assert!(matches!(error, PackagesError::Fetch(FetchError::WrongHash { .. })), "{error:?}");
        let error = f.gather(&[]).await.expect_err("no mirror");
        assert!(matches!(error, PackagesError::NoMirror { .. }), "{error:?}");
        assert!(error.hints()[0].contains("ENVFORGE_DEBIAN_MIRROR"));
    }

    #[tokio::test]
    async fn missing_uv_entry_is_reported() {
        let mut f = fixture().await;
        f.lock.tools.clear();
        let (engine, settings) = (FakeEngine::default(), PackageSettings::default());
        let source = UvSource { engine: &engine, image: &Resolver::sample(), settings: &settings };
        let TestDownloads { store, fetcher, .. } = &f.downloads;
        let error = gather_uv(&f.lock, &source, store, fetcher, Arc::new(NullReporter)).await;
        let error = error.expect_err("none");
        assert_eq!(error.exit(), Exit::Usage);
    }
}

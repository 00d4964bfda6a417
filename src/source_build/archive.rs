//! The release archive or source distribution, in the cache and checked by its SHA-256; a download that was cut is continued.
#![expect(clippy::disallowed_methods, reason = "edge: times its step")]

use std::sync::Arc;

use camino::Utf8PathBuf;

use super::error::SourceError;
use crate::fetch::{Download, Fetcher, Transfer, open_verified};
use crate::model::address::Address;
use crate::model::compat::tables::SourceBuild;
use crate::packages::{ResolverContext, SourceDist};
use crate::report::{Event, Reporter};
use crate::store::Store;

const STEP: &str = "source-archive";

/// Makes the archive present in the cache: from there, else from the addresses in order.
pub async fn release_archive(
    row: &SourceBuild,
    addresses: &[Address],
    store: &Store,
    fetcher: &Fetcher,
    reporter: Arc<dyn Reporter>,
) -> Result<Utf8PathBuf, SourceError> {
    let name = row.archive.clone();
    let sha256 = row.sha256.clone().ok_or_else(|| SourceError::NoHash { archive: name.clone() })?;
    if open_verified(store, &sha256)?.is_some() {
        return Ok(store.blob_path(&sha256)?);
    }
    if addresses.is_empty() {
        return Err(SourceError::NoAddress { archive: name });
    }
    downloaded(
        Download { name, addresses: addresses.to_vec(), sha256, size: None, login: None },
        store,
        fetcher,
        reporter,
    )
    .await
}

/// Makes a source distribution present in the cache.
pub async fn source_archive(
    tools: &ResolverContext<'_>,
    source: &SourceDist,
) -> Result<Utf8PathBuf, SourceError> {
    let SourceDist { locked, address } = source;
    if open_verified(tools.store, &locked.sha256)?.is_some() {
        return Ok(tools.store.blob_path(&locked.sha256)?);
    }
    let (name, sha256) = (locked.file.clone(), locked.sha256.clone());
    let download =
        Download { name, addresses: vec![address.clone()], sha256, size: locked.size, login: None };
    downloaded(download, tools.store, tools.fetcher, Arc::clone(&tools.reporter)).await
}

async fn downloaded(
    download: Download,
    store: &Store,
    fetcher: &Fetcher,
    reporter: Arc<dyn Reporter>,
) -> Result<Utf8PathBuf, SourceError> {
    let id = STEP.to_owned();
    reporter.report(Event::StepStarted { id: id.clone(), text: format!("download {}", download.name) });
    let transfer = Transfer::new(Arc::clone(&reporter), STEP, download.size);
    let started = std::time::Instant::now();
    match fetcher.into_store(store, &download, &transfer).await {
        Ok(path) => {
            let seconds = started.elapsed().as_secs_f64();
            reporter.report(Event::StepFinished { id, cached: false, seconds });
            Ok(path)
        }
        Err(cause) => {
            reporter.report(Event::StepFailed { id, text: cause.to_string() });
            Err(SourceError::Archive { cause })
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::failure::{Exit, Failure as _};
    use wiremock::matchers::{header, path};
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;
    use crate::fetch::FetchSettings;
    use crate::model::compat;
    use crate::model::sha256::sha256_hex;
    use crate::report::NullReporter;

    struct Fixture {
        server: MockServer,
        store: Store,
        row: SourceBuild,
        _folder: tempfile::TempDir,
    }

    async fn fixture() -> Fixture {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let mut row = compat::embedded().source_builds[0].clone();
        row.sha256 = Some(sha256_hex(b"whole archive"));
        Fixture {
            server: MockServer::start().await,
            store: Store::open(&root.join("cache"), &root.join("state")).expect("store"),
            row,
            _folder: folder,
        }
    }

    impl Fixture {
        async fn archive(&self) -> Result<Utf8PathBuf, SourceError> {
            let settings = FetchSettings { attempts: 1, ..FetchSettings::default() };
            let fetcher = Fetcher::new(&settings).expect("client");
            let address = format!("{}/{}", self.server.uri(), self.row.archive).parse().expect("an address");
            release_archive(&self.row, &[address], &self.store, &fetcher, Arc::new(NullReporter)).await
        }
        fn at(&self) -> impl wiremock::Match + use<> {
            path(format!("/{}", self.row.archive))
        }
    }

    #[tokio::test]
    async fn missing_archive_is_reported_with_a_hint() {
        let f = fixture().await;
        let error = f.archive().await.expect_err("404");
        assert!(error.to_string().contains("pytorch-v2.8.0.tar.gz"), "{error}");
        assert!(error.hints()[0].contains("ENVFORGE_SOURCE_MIRROR"), "{:?}", error.hints());
        assert_eq!(error.exit(), Exit::Outside);
    }

    #[tokio::test]
    async fn archive_with_wrong_hash_is_rejected_and_removed() {
        let f = fixture().await;
        let body = ResponseTemplate::new(200).set_body_bytes(b"another".as_slice());
        Mock::given(f.at()).respond_with(body).mount(&f.server).await;
        let error = f.archive().await.expect_err("refused");
        assert!(
            matches!(error, SourceError::Archive { cause: crate::fetch::FetchError::WrongHash { .. } }),
            "{error:?}"
        );
        assert_eq!(f.store.find(&sha256_hex(b"another")).expect("find"), None);
    }

    #[tokio::test]
    async fn archive_download_resumes_and_cached_archive_is_reused() {
        let f = fixture().await;
        let sha256 = f.row.sha256.clone().expect("set");
        fs_err::write(f.store.partial_path(&sha256).expect("a path"), b"whole ").expect("written");
        let rest = ResponseTemplate::new(206)
            .insert_header("content-range", "bytes 6-12/13")
            .set_body_bytes(b"archive".as_slice());
        Mock::given(f.at())
            .and(header("range", "bytes=6-"))
            .respond_with(rest)
            .expect(1)
            .mount(&f.server)
            .await;
        let path = f.archive().await.expect("continued");
        assert_eq!(fs_err::read(path).expect("read"), b"whole archive");
        f.archive().await.expect("from the cache");
    }

    #[tokio::test]
    async fn damaged_archive_of_the_cache_is_downloaded_again() {
        let f = fixture().await;
        let body = ResponseTemplate::new(200).set_body_bytes(b"whole archive".as_slice());
        Mock::given(f.at()).respond_with(body).expect(1).mount(&f.server).await;
        let place = f.store.put(&sha256_hex(b"whole archive"), b"whole archive").expect("stored");
        fs_err::write(&place, b"other").expect("ours");
        assert_eq!(fs_err::read(f.archive().await.expect("again")).expect("read"), b"whole archive");
    }

    #[tokio::test]
    async fn an_archive_without_a_known_hash_is_not_built() {
        let mut f = fixture().await;
        f.row.sha256 = None;
        assert_eq!(f.archive().await.expect_err("refused").exit(), Exit::No);
    }
}

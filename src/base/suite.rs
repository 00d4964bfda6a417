//! The current content of a suite's signed indexes: downloaded, verified and parsed.
//!
//! Owns which indexes make up a suite: the release itself, its updates where the mirror has them, and security where a
//! security mirror is known. Chooses no packages.

use std::io::Read as _;

use jiff::Timestamp;

use super::error::BaseError;
use super::mirrors::Mirrors;
use super::packages::PackageIndex;
use super::release::{IndexFile, Release};
use super::signature::Keyring;
use crate::fetch::{Download, FetchError, Fetcher, Transfer};
use crate::model::address::Address;
use crate::model::versions::Machine;
use crate::store::Store;

/// An `InRelease` is some hundred kilobytes.
const LARGEST_RELEASE: u64 = 16 * 1024 * 1024;

/// Reader of a suite.
pub(crate) struct SuiteReader<'a> {
    pub(crate) fetch: &'a Fetcher,
    pub(crate) store: &'a Store,
    pub(crate) keyring: &'a Keyring,
    pub(crate) mirrors: &'a Mirrors,
    pub(crate) machine: Machine,
    pub(crate) now: Timestamp,
    pub(crate) accept_expired: bool,
    pub(crate) transfer: &'a Transfer,
}

impl SuiteReader<'_> {
    /// All packages of a suite, newest of each.
    pub(crate) async fn index(&self, suite: &str) -> Result<PackageIndex, BaseError> {
        let mut index = PackageIndex::default();
        self.add(&mut index, &self.mirrors.main, suite).await?;
        match self.add(&mut index, &self.mirrors.main, &format!("{suite}-updates")).await {
            // Small mirrors carry the release only. Updates are proposed fixes, not security.
            Err(BaseError::Fetch(FetchError::NotFound { address, .. })) => {
                tracing::debug!(%address, "the mirror has no updates");
            }
            other => other?,
        }
        if let Some(security) = &self.mirrors.security {
            self.add(&mut index, security, &format!("{suite}-security")).await?;
        }
        Ok(index)
    }

    async fn add(&self, index: &mut PackageIndex, mirror: &Address, suite: &str) -> Result<(), BaseError> {
        let folder = mirror.join(&format!("dists/{suite}"));
        let address = folder.join("InRelease");
        let document = self.fetch.document(&address, LARGEST_RELEASE).await?;
        let text = self
            .keyring
            .verified(&document)
            .map_err(|source| BaseError::Signature { address: address.clone(), source })?;
        let refused = |source| BaseError::Release { address: address.clone(), source };
        let release = Release::parse(&text).map_err(refused)?;
        release.check(suite, self.now, self.accept_expired).map_err(refused)?;
        let path = format!("main/binary-{}/Packages.xz", self.machine.debian());
        let promised = release.file(&path).map_err(refused)?;
        tracing::debug!(%address, date = %release.date, "index verified");
        index.add(&self.packages(&folder, &promised, release.by_hash).await?);
        Ok(())
    }

    async fn packages(
        &self,
        folder: &Address,
        promised: &IndexFile,
        by_hash: bool,
    ) -> Result<String, BaseError> {
        let named = folder.join(&promised.path);
        let parent = promised.path.rsplit_once('/').map_or("", |(parent, _)| parent);
        // By its hash it is available even during an update of the mirror.
        let hashed = folder.join(&format!("{parent}/by-hash/SHA256/{}", promised.sha256));
        let download = Download {
            name: promised.path.clone(),
            addresses: if by_hash { vec![hashed, named.clone()] } else { vec![named.clone()] },
            sha256: promised.sha256.clone(),
            size: Some(promised.size),
        };
        let path = self.fetch.into_store(self.store, &download, self.transfer).await?;
        let unreadable = |cause: std::io::Error| FetchError::Unreadable {
            address: named.clone(),
            cause: cause.to_string(),
        };
        let file = fs_err::OpenOptions::new().read(true).open(path).map_err(unreadable)?;
        let mut text = String::new();
        liblzma::read::XzDecoder::new_multi_decoder(file).read_to_string(&mut text).map_err(unreadable)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use camino::Utf8PathBuf;
    use wiremock::matchers::path;
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;
    use crate::base::release::ReleaseError;
    use crate::base::signature::{SignatureError, test_keyring};
    use crate::fetch::FetchSettings;
    use crate::report::NullReporter;

    /// Reads the suite from a mirror that serves this `InRelease` and these packages.
    async fn read(in_release: &[u8], packages: &[u8], now: &str) -> Result<PackageIndex, BaseError> {
        let server = MockServer::start().await;
        for (file, body) in [("InRelease", in_release), ("main/binary-amd64/Packages.xz", packages)] {
            Mock::given(path(format!("/dists/bookworm/{file}")))
                .respond_with(ResponseTemplate::new(200).set_body_bytes(body))
                .mount(&server)
                .await;
        }
        let folder = tempfile::tempdir().expect("folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let reader = SuiteReader {
            fetch: &Fetcher::new(&FetchSettings { attempts: 1, ..FetchSettings::default() }).expect("client"),
            store: &Store::open(&root.join("cache"), &root.join("state")).expect("store"),
            keyring: &test_keyring(),
            mirrors: &Mirrors { main: server.uri().parse().expect("address"), security: None },
            machine: Machine::X86_64,
            now: now.parse().expect("time"),
            accept_expired: false,
            transfer: &Transfer::new(Arc::new(NullReporter), "test", None),
        };
        reader.index("bookworm").await
    }

    const GOOD: &[u8] = include_bytes!("fixtures/good.InRelease");
    const OTHER: &[u8] = include_bytes!("fixtures/other.InRelease");
    const NOW: &str = "2026-11-21T00:00:00Z";

    #[tokio::test]
    async fn rejects_packages_that_differ_from_signed_ones() {
        let error = read(GOOD, b"y", NOW).await.expect_err("refused");
        assert!(matches!(error, BaseError::Fetch(FetchError::WrongHash { .. })), "{error:?}");
    }

    #[tokio::test]
    async fn signed_packages_are_parsed_regardless_of_compression() {
        // The fixture promises the one letter `x`, which is the right file but no xz.
        let error = read(GOOD, b"x", NOW).await.expect_err("no xz");
        assert!(matches!(error, BaseError::Fetch(FetchError::Unreadable { .. })), "{error:?}");
    }

    #[tokio::test]
    async fn rejects_expired_index_and_index_of_another_key() {
        let error = read(OTHER, b"x", NOW).await.expect_err("other key");
        assert!(error.to_string().contains("/dists/bookworm/InRelease"), "{error}");
        assert!(
            matches!(&error, BaseError::Signature { source: SignatureError::UnknownKey { .. }, .. }),
            "{error:?}"
        );
        let error = read(GOOD, b"x", "2026-12-01T00:00:00Z").await.expect_err("expired");
        assert!(
            matches!(&error, BaseError::Release { source: ReleaseError::Expired { .. }, .. }),
            "{error:?}"
        );
    }

    #[tokio::test]
    async fn unsigned_index_is_rejected() {
        let error = read(b"Codename: bookworm\n", b"x", NOW).await.expect_err("unsigned");
        assert!(matches!(error, BaseError::Signature { .. }), "{error:?}");
    }
}

//! The current content of a suite's signed indexes: downloaded, verified and parsed.
//!
//! Owns which indexes make up a suite: the release itself, its updates where the mirror has them, and security where a
//! security mirror is known. Chooses no packages.

use std::io::BufReader;

use jiff::Timestamp;

use super::compressed::xz;
use super::error::BaseError;
use super::limits::{LARGEST_PACKAGES, LARGEST_RELEASE};
use super::mirrors::Mirrors;
use super::packages::PackageIndex;
use super::release::{IndexFile, Release};
use super::seen_index::SeenIndex;
use super::signature::Keyring;
use crate::fetch::{Download, FetchError, Fetcher, Transfer};
use crate::model::address::Address;
use crate::model::bounded::read_text_bounded;
use crate::model::versions::Machine;
use crate::store::Store;

/// Reader of a suite.
pub(crate) struct SuiteReader<'a> {
    pub(crate) fetch: &'a Fetcher,
    pub(crate) store: &'a Store,
    pub(crate) keyring: &'a Keyring,
    pub(crate) mirrors: &'a Mirrors,
    pub(crate) machine: Machine,
    pub(crate) now: Timestamp,
    pub(crate) accept_expired: bool,
    pub(crate) accept_older: bool,
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
            .verified(&document, self.now)
            .map_err(|source| BaseError::Signature { address: address.clone(), source })?;
        let refused = |source| BaseError::Release { address: address.clone(), source };
        let release = Release::parse(&text).map_err(refused)?;
        release.check(suite, self.now, self.accept_expired).map_err(refused)?;
        let path = format!("main/binary-{}/Packages.xz", self.machine.debian());
        let promised = release.file(&path).map_err(refused)?;
        tracing::debug!(%address, date = %release.date, "index verified");
        SeenIndex::of(mirror, suite, release.date).check::<BaseError>(self.store, self.accept_older)?;
        // The release lists the file as it is unpacked, too.
        let unpacked = release.file(path.trim_end_matches(".xz")).map_or(LARGEST_PACKAGES, |file| file.size);
        let text = self.packages(&folder, &promised, release.by_hash, unpacked).await?;
        index.add(&text);
        Ok(())
    }

    async fn packages(
        &self,
        folder: &Address,
        promised: &IndexFile,
        by_hash: bool,
        unpacked: u64,
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
            login: None,
        };
        let path = self.fetch.into_store(self.store, &download, self.transfer).await?;
        let unreadable = |cause: std::io::Error| FetchError::Unreadable {
            address: named.clone(),
            cause: cause.to_string(),
        };
        let file = fs_err::OpenOptions::new().read(true).open(path).map_err(unreadable)?;
        let text = xz(BufReader::new(file)).and_then(|text| read_text_bounded(text, unpacked));
        Ok(text.map_err(unreadable)?)
    }
}

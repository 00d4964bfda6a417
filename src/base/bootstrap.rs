//! Builds a base from the distribution's own packages: list, download, unpack, install, canonical archive, private tag.
//!
//! Owns the order of the steps. The same list gives the same archive, so a list is built once.
#![expect(clippy::disallowed_methods, reason = "edge: writes and reads archives")]

use std::io::{BufWriter, Write as _};
use std::sync::Arc;

use camino::Utf8PathBuf;

use super::bootstrap_cache::{CachedBase, SECOND_STAGE, list_key};
use super::closure::base_closure;
use super::distribution::Distribution;
use super::error::BaseError;
use super::first_stage::{DEB_FOLDER, Finished, FirstStage};
use super::image::private_tag;
use super::mirrors::{Mirrors, discover};
use super::request::{Base, BaseArchive, BaseRequest};
use super::suite::SuiteReader;
use crate::archive::canonical_tar::{HardLinks, canonicalize};
use crate::engine::{Engine, EngineError, Network, RunRequest, TemporaryTag};
use crate::fetch::{Download, FetchError, Fetcher, Transfer, open_verified};
use crate::model::counted::counted;
use crate::model::lock::{BaseProvider, LockedDeb};
use crate::model::sha256::HashingWriter;
use crate::report::{Event, Reporter, in_step};
use crate::store::{Store, StoreError};

/// Step ids.
const RESOLVE: &str = "base:resolve";
const DOWNLOAD: &str = "base:download";
const INSTALL: &str = "base:install";
/// Lines of output an error shows.
const TAIL: usize = 20;

/// Dependencies of a bootstrap.
pub(super) struct Bootstrap<'a> {
    pub(super) engine: &'a dyn Engine,
    pub(super) store: &'a Store,
    pub(super) fetch: &'a Fetcher,
    pub(super) reporter: Arc<dyn Reporter>,
    pub(super) request: &'a BaseRequest<'a>,
}

/// The tar of unpacked packages.
struct UnpackedPackages {
    file: tempfile::NamedTempFile,
    /// Its SHA-256, hex.
    sha256: String,
    links: HardLinks,
}

/// Whether a suite can be bootstrapped from packages.
pub(super) fn is_bootstrappable(suite: &str) -> bool {
    Distribution::of(suite).is_some()
}

impl Bootstrap<'_> {
    /// Returns the base, built or from the cache.
    pub(super) async fn base(&self) -> Result<Base, BaseError> {
        let packages = self.packages().await?;
        let key = list_key(&self.request.suite, self.request.machine, &packages);
        let _lock = self.store.lock(&format!("base-{}", &key[..16])).await?;
        let known = CachedBase::read(self.store, &key)?.filter(|record| record.archive(self.store).is_some());
        if let Some(record) = known {
            match self.with_image(&key, record, packages.clone()).await {
                // The cache has another archive: the base is built again.
                Err(BaseError::Engine(EngineError::OtherContent { path, .. })) => {
                    tracing::warn!(%path, "replacing a damaged file of the cache");
                }
                done => return done,
            }
        }
        let record = self.build(&key, &packages).await?;
        self.with_image(&key, record, packages).await
    }

    fn distribution(&self) -> Result<Distribution, BaseError> {
        let unknown = || BaseError::NotBootstrappable { name: self.request.name.clone() };
        Distribution::of(&self.request.suite).ok_or_else(unknown)
    }

    /// Returns its packages: the locked ones, else those of a short while ago, else the current ones of the suite.
    pub(super) async fn packages(&self) -> Result<Vec<LockedDeb>, BaseError> {
        let distribution = self.distribution()?;
        match (self.request.locked, self.request.recent) {
            (Some(locked), _) if !locked.packages.is_empty() => Ok(locked.packages.clone()),
            // A mirror may have newer ones in their place by now: only a base that is there is used again.
            (None, Some(recent)) if self.has_archive(recent)? => Ok(recent.to_vec()),
            _ => self.resolve(distribution).await,
        }
    }

    /// Whether the cache has the base of a list.
    fn has_archive(&self, packages: &[LockedDeb]) -> Result<bool, BaseError> {
        let key = list_key(&self.request.suite, self.request.machine, packages);
        let known = CachedBase::read(self.store, &key)?;
        Ok(known.is_some_and(|record| record.archive(self.store).is_some()))
    }

    /// Selects the current packages of the suite.
    async fn resolve(&self, distribution: Distribution) -> Result<Vec<LockedDeb>, BaseError> {
        let mirrors = discover(&self.request.mirrors, distribution)?;
        let suite = &self.request.suite;
        if let Some(why) = &self.request.experimental {
            let text = format!("building `{}` from packages is experimental: {why}", self.request.name);
            self.reporter.report(Event::Warning { text });
        }
        let text = format!("read the signed package index of {}", self.request.name);
        self.step(RESOLVE, text, async {
            if mirrors.security.is_none() {
                let text = format!(
                    "security mirror not found: {} has no security updates after its last point release",
                    self.request.name
                );
                self.reporter.report(Event::Warning { text });
            }
            let transfer = Transfer::new(Arc::clone(&self.reporter), RESOLVE, None);
            let reader = SuiteReader {
                fetch: self.fetch,
                store: self.store,
                keyring: &distribution
                    .keyring()
                    .map_err(|source| BaseError::Signature { address: mirrors.main.clone(), source })?,
                mirrors: &mirrors,
                machine: self.request.machine,
                now: self.request.now,
                accept_expired: self.request.accept_expired,
                accept_older: self.request.accept_older,
                transfer: &transfer,
            };
            let index = reader.index(suite).await?;
            base_closure(&index).map_err(|missing| BaseError::Missing {
                suite: suite.clone(),
                wanted: missing.wanted,
                needed_by: missing.needed_by,
            })
        })
        .await
    }

    /// Builds the archive and writes the record.
    async fn build(&self, key: &str, packages: &[LockedDeb]) -> Result<CachedBase, BaseError> {
        let text = format!("download {} of {}", counted(packages.len(), "package"), self.request.name);
        self.step(DOWNLOAD, text, self.download(packages)).await?;
        let text = format!("install {} as {}", counted(packages.len(), "package"), self.request.name);
        match self.step(INSTALL, text.clone(), self.install(key, packages)).await {
            // A damaged one was removed from the cache.
            Err(BaseError::PackageLost { .. }) => {
                self.step(DOWNLOAD, "download damaged packages again".to_owned(), self.download(packages))
                    .await?;
                self.step(INSTALL, text, self.install(key, packages)).await
            }
            done => done,
        }
    }

    /// Downloads the missing packages into the cache.
    async fn download(&self, packages: &[LockedDeb]) -> Result<(), BaseError> {
        // With everything in the cache no mirror is needed at all.
        let absent = |deb: &&LockedDeb| !matches!(self.store.find(&deb.sha256), Ok(Some(_)));
        let absent: Vec<&LockedDeb> = packages.iter().filter(absent).collect();
        if absent.is_empty() {
            return Ok(());
        }
        let mirrors = discover(&self.request.mirrors, self.distribution()?)?;
        let downloads: Vec<Download> = absent.iter().map(|deb| download_of(deb, &mirrors)).collect();
        let total = absent.iter().map(|deb| deb.size).sum();
        let transfer = Transfer::new(Arc::clone(&self.reporter), DOWNLOAD, Some(total));
        let lost = |error: FetchError| match error {
            FetchError::NotFound { name, .. } if self.request.locked.is_some() => {
                let version = absent.iter().find(|deb| deb.name == name).map(|deb| deb.version.clone());
                BaseError::PackageLost { name, version: version.unwrap_or_default() }
            }
            error => error.into(),
        };
        self.fetch.fetch_all(self.store, &downloads, &transfer).await.map_err(lost)?;
        Ok(())
    }

    /// Installs the packages in a temporary container and makes the canonical archive of it.
    async fn install(&self, key: &str, packages: &[LockedDeb]) -> Result<CachedBase, BaseError> {
        let UnpackedPackages { file: stage, sha256, links } = self.write_first_stage(packages)?;
        let exported = self.store.temp_file()?;
        let exported_path = utf8(exported.path());
        // Unique: another user of this engine may install the same list at the same time.
        // The image dpkg runs in.
        let stage_tag = TemporaryTag::new(self.engine);
        let tag = stage_tag.name();
        let stage_path = utf8(stage.path());
        let installed = async {
            self.engine.import(stage_path, &sha256, tag, Arc::clone(&self.reporter)).await?;
            let request = RunRequest {
                image: tag.to_owned(),
                command: ["/bin/sh", "-c", SECOND_STAGE, "second-stage", DEB_FOLDER]
                    .map(str::to_owned)
                    .into(),
                user: Some("0:0".to_owned()),
                network: Network::None,
                report_as: Some(INSTALL.to_owned()),
                ..RunRequest::default()
            };
            self.engine.run_and_export(request, exported_path.clone(), Arc::clone(&self.reporter)).await
        }
        .await;
        stage_tag.remove().await?;
        let outcome = installed?;
        if outcome.code != 0 {
            let text = String::from_utf8_lossy(&outcome.stdout).into_owned()
                + &String::from_utf8_lossy(&outcome.stderr);
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let output = lines[lines.len().saturating_sub(TAIL)..].to_vec();
            return Err(BaseError::Install { code: outcome.code, output });
        }
        drop(stage);
        self.archive(key, &exported_path, &links)
    }

    /// Writes the tar of the unpacked packages.
    fn write_first_stage(&self, packages: &[LockedDeb]) -> Result<UnpackedPackages, BaseError> {
        let file = self.store.temp_file()?;
        let broken = |cause| StoreError::File { purpose: "cannot write the unpacked packages", cause };
        let out = HashingWriter::new(BufWriter::with_capacity(1 << 20, file.as_file()));
        let mut stage = FirstStage::start(out, self.request.machine).map_err(broken)?;
        for deb in packages {
            let mut file = open_verified(self.store, &deb.sha256)?.ok_or_else(|| BaseError::PackageLost {
                name: deb.name.clone(),
                version: deb.version.clone(),
            })?;
            stage
                .add(&deb.name, &mut file)
                .map_err(|source| BaseError::Package { name: deb.name.clone(), source })?;
        }
        let Finished { mut out, links, has_sources } = stage.finish().map_err(broken)?;
        out.flush().map_err(broken)?;
        let sha256 = out.finish();
        if !has_sources {
            tracing::warn!("the base has no apt sources: apt of this suite has no example file");
        }
        Ok(UnpackedPackages { file, sha256, links })
    }

    fn archive(&self, key: &str, exported: &Utf8PathBuf, links: &HardLinks) -> Result<CachedBase, BaseError> {
        let broken = |cause| StoreError::File { purpose: "cannot write the archive of the base", cause };
        let source = std::fs::File::open(exported).map_err(broken)?;
        let target = self.store.temp_file()?;
        let out = BufWriter::with_capacity(1 << 20, target.as_file());
        let done = canonicalize(source, out, links)?;
        let mut record = CachedBase::new(&self.request.suite, &done.content, &done.sha256);
        record.keep_archive(self.store, target)?;
        record.write(self.store, key)?;
        Ok(record)
    }

    /// Returns the base under its private tag; imports the archive if the engine does not have it.
    async fn with_image(
        &self,
        key: &str,
        mut record: CachedBase,
        packages: Vec<LockedDeb>,
    ) -> Result<Base, BaseError> {
        let archive = record.archive(self.store).unwrap_or_else(|| record.archive_path(self.store));
        let tag = private_tag(&record.content);
        let present = self.engine.image(&tag).await?.filter(|image| record.is_image(image));
        let image = if let Some(image) = present {
            image
        } else {
            let reporter = Arc::clone(&self.reporter);
            let image = self.engine.import(archive.clone(), &record.sha256, &tag, reporter).await?;
            if image.layers != [format!("sha256:{}", record.sha256)] {
                // The engine answered before it had read everything, and the file changed meanwhile.
                self.engine.remove_image(&tag).await?;
                let (wanted, found) = (record.sha256.clone(), image.layers.join(" "));
                return Err(EngineError::OtherContent { path: archive, wanted, found }.into());
            }
            record.add_image(&image.id);
            record.write(self.store, key)?;
            image
        };
        Ok(Base {
            provider: BaseProvider::Bootstrap,
            name: self.request.name.clone(),
            suite: self.request.suite.clone(),
            reference: tag,
            image_id: image.id,
            digest: None,
            published: None,
            content: Some(record.content),
            image: None,
            packages,
            archive: Some(BaseArchive { path: archive, sha256: record.sha256 }),
            glibc: None,
            cuda: false,
            mirrors: Vec::new(),
        })
    }

    async fn step<T>(
        &self,
        id: &str,
        text: String,
        work: impl Future<Output = Result<T, BaseError>>,
    ) -> Result<T, BaseError> {
        in_step(&*self.reporter, id, text, work).await
    }
}

/// Returns the addresses of a package: the path of a security update shows its archive.
fn download_of(deb: &LockedDeb, mirrors: &Mirrors) -> Download {
    let mut addresses = vec![mirrors.main.join(&deb.path)];
    if let Some(security) = &mirrors.security {
        let first = usize::from(!deb.path.starts_with("pool/updates/"));
        addresses.insert(first, security.join(&deb.path));
    }
    let (name, sha256) = (deb.name.clone(), deb.sha256.clone());
    Download { name, addresses, sha256, size: Some(deb.size), login: None }
}

/// Converts a path below the store, which is UTF-8.
fn utf8(path: &std::path::Path) -> Utf8PathBuf {
    Utf8PathBuf::from(path.to_string_lossy().into_owned())
}

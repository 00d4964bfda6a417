//! Selects a base provider and prepares the base image.

use std::sync::Arc;

use super::bootstrap::{Bootstrap, is_bootstrappable};
use super::error::BaseError;
use super::image::image_base;
use super::request::{Base, BaseRequest};
use super::tools::BaseTools;
use crate::model::lock::{BaseProvider, LockedDeb};
use crate::model::request::BaseChoice;
use crate::registry::RetryPolicy;
use crate::report::Event;

/// Prepares the base of a request in the engine; uses existing bases again.
pub async fn prepare(means: &BaseTools<'_>, request: &BaseRequest<'_>) -> Result<Base, BaseError> {
    if let Some(locked) = request.locked
        && locked.name != request.name
    {
        return Err(BaseError::OtherBase { wanted: request.name.clone(), found: locked.name.clone() });
    }
    let BaseTools { engine, store, fetch, reporter, .. } = means;
    let bootstrap = Bootstrap { engine: *engine, store, fetch, reporter: Arc::clone(reporter), request };
    match choice(request) {
        BaseChoice::Bootstrap => bootstrap.base().await,
        BaseChoice::Auto if is_bootstrappable(&request.suite) => {
            match image_base(means, request, RetryPolicy::SHORT).await {
                Err(error @ (BaseError::NotPullable { .. } | BaseError::Registry(_))) => {
                    let text = format!(
                        "cannot pull `{}` ({}): bootstrapping the base from packages",
                        request.name,
                        error.reason()
                    );
                    reporter.report(Event::Note { text });
                    bootstrap.base().await
                }
                other => other,
            }
        }
        BaseChoice::Image | BaseChoice::Auto => image_base(means, request, RetryPolicy::NEEDED).await,
    }
}

/// Returns the packages of a base for a foreign processor: the locked ones, else the current ones of the suite. Installs
/// nothing.
pub async fn package_list(
    means: &BaseTools<'_>,
    request: &BaseRequest<'_>,
) -> Result<Vec<LockedDeb>, BaseError> {
    let BaseTools { engine, store, fetch, reporter, .. } = means;
    let reporter = Arc::clone(reporter);
    Bootstrap { engine: *engine, store, fetch, reporter, request }.packages().await
}

/// Returns the provider; the lock file decides first.
fn choice(request: &BaseRequest<'_>) -> BaseChoice {
    match request.locked.map(|locked| locked.provider) {
        Some(BaseProvider::Image) => BaseChoice::Image,
        Some(BaseProvider::Bootstrap) => BaseChoice::Bootstrap,
        None => request.provider,
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests damage files of the cache")]
mod tests {
    use crate::failure::{Exit, Failure as _};
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use async_trait::async_trait;
    use camino::Utf8PathBuf;

    use super::*;
    use crate::base::deb::tests::ar;
    use crate::base::mirrors::MirrorSources;
    use crate::engine::{
        Builder, Engine, EngineError, EngineInfo, ImageBuildRequest, ImageInfo, Images, LayeredImage,
        PullRequest, RunOutcome, RunRequest, Runner,
    };
    use crate::fetch::{FetchSettings, Fetcher};
    use crate::model::image_digest::Digest;
    use crate::model::lock::LockedBase;
    use crate::model::sha256::sha256_hex;
    use crate::model::versions::Machine;
    use crate::registry::{Credential, Registry};
    use crate::report::{NullReporter, Recorder, Reporter};
    use crate::settings::image_registry::RegistrySettings;
    use crate::store::Store;

    /// An engine of maps: images by reference, a registry, and the code every container ends with.
    struct Fake {
        info: EngineInfo,
        images: Mutex<BTreeMap<String, ImageInfo>>,
        registry: BTreeMap<String, ImageInfo>,
        code: i64,
    }

    /// The code of a container that does not end.
    const NEVER: i64 = -1;

    fn fake() -> Fake {
        Fake { info: EngineInfo::sample(), images: Mutex::default(), registry: BTreeMap::new(), code: 0 }
    }

    fn image(id: &str, digests: &[&str]) -> ImageInfo {
        ImageInfo {
            id: id.to_owned(),
            tags: Vec::new(),
            digests: digests.iter().map(|text| (*text).to_owned()).collect(),
            size: 1,
            labels: BTreeMap::new(),
            env: Vec::new(),
            user: String::new(),
            layers: Vec::new(),
            history: Vec::new(),
            triggers: Vec::new(),
            sizes: Vec::new(),
            architecture: "amd64".to_owned(),
        }
    }

    impl Fake {
        fn has(&self, reference: &str) -> bool {
            self.images.lock().expect("one thread").contains_key(reference)
        }
        fn put(&self, reference: &str, image: ImageInfo) {
            self.images.lock().expect("one thread").insert(reference.to_owned(), image);
        }
    }

    impl Engine for Fake {
        fn info(&self) -> &EngineInfo {
            &self.info
        }
    }

    #[async_trait]
    impl Images for Fake {
        async fn image(&self, reference: &str) -> Result<Option<ImageInfo>, EngineError> {
            Ok(self.images.lock().expect("one thread").get(reference).cloned())
        }
        async fn images(&self, _: &str) -> Result<Vec<ImageInfo>, EngineError> {
            unreachable!("no base is listed")
        }
        async fn tag(&self, image: &str, tag: &str) -> Result<(), EngineError> {
            let images = self.images.lock().expect("one thread");
            let found = images.values().find(|found| found.id == image).cloned().expect("the image is there");
            drop(images);
            self.put(tag, found);
            Ok(())
        }
        async fn remove_image(&self, reference: &str) -> Result<(), EngineError> {
            self.discard_image(reference);
            Ok(())
        }
        fn discard_image(&self, reference: &str) {
            self.images.lock().expect("one thread").remove(reference);
        }
        async fn pull(&self, pull: PullRequest, _: Arc<dyn Reporter>) -> Result<ImageInfo, EngineError> {
            let refused =
                || EngineError::Registry { during: "a pull".to_owned(), text: "no such host".to_owned() };
            let found = self.registry.get(&pull.reference).cloned().ok_or_else(refused)?;
            self.put(&pull.reference, found.clone());
            Ok(found)
        }
        async fn push(
            &self,
            _: &str,
            _: Option<&Credential>,
            _: Arc<dyn Reporter>,
        ) -> Result<Digest, EngineError> {
            unreachable!("a base is not pushed")
        }
        async fn import(
            &self,
            archive: Utf8PathBuf,
            sha256: &str,
            tag: &str,
            _: Arc<dyn Reporter>,
        ) -> Result<ImageInfo, EngineError> {
            let found = sha256_hex(&fs_err::read(&archive)?);
            if found != sha256 {
                return Err(EngineError::OtherContent { path: archive, wanted: sha256.to_owned(), found });
            }
            let mut imported = image(&format!("sha256:{}", sha256_hex(archive.as_str().as_bytes())), &[]);
            imported.layers = vec![format!("sha256:{sha256}")];
            self.put(tag, imported.clone());
            Ok(imported)
        }
        async fn save(&self, _: &str, _: Utf8PathBuf) -> Result<(), EngineError> {
            unreachable!("no image is saved")
        }
        async fn load_layers(&self, _: LayeredImage, _: Arc<dyn Reporter>) -> Result<ImageInfo, EngineError> {
            unreachable!("no image is assembled")
        }
        async fn read_files(
            &self,
            _: &str,
            _: &[&str],
            _: u64,
        ) -> Result<std::collections::BTreeMap<String, Vec<u8>>, EngineError> {
            unreachable!("no base reads files of an image")
        }
    }

    #[async_trait]
    impl Builder for Fake {
        async fn build(&self, _: ImageBuildRequest, _: Arc<dyn Reporter>) -> Result<ImageInfo, EngineError> {
            unreachable!("a base is not built by the engine")
        }
    }

    #[async_trait]
    impl Runner for Fake {
        async fn run(&self, _: RunRequest, _: Arc<dyn Reporter>) -> Result<RunOutcome, EngineError> {
            unreachable!("a base is exported")
        }
        /// "Installs" one file.
        async fn run_and_export(
            &self,
            request: RunRequest,
            archive: Utf8PathBuf,
            _: Arc<dyn Reporter>,
        ) -> Result<RunOutcome, EngineError> {
            assert!(self.has(&request.image), "the first stage is there");
            if self.code == NEVER {
                std::future::pending::<()>().await;
            }
            let mut builder = tar::Builder::new(fs_err::OpenOptions::new().write(true).open(archive)?);
            let mut header = tar::Header::new_gnu();
            header.set_size(2);
            header.set_mode(0o644);
            header.set_uid(0);
            header.set_gid(0);
            builder.append_data(&mut header, "etc/installed", b"ok".as_slice())?;
            builder.into_inner()?;
            let stderr = b"dpkg: error processing libc6".to_vec();
            Ok(RunOutcome { code: self.code, stderr, ..RunOutcome::default() })
        }
    }

    struct Fixture {
        store: Store,
        fetch: Fetcher,
        registry: Registry,
        _folder: tempfile::TempDir,
    }

    fn fixture() -> Fixture {
        let folder = tempfile::tempdir().expect("folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("store");
        // No registry is reached through a proxy that is not there.
        let nowhere = Some("http://127.0.0.1:1".parse().expect("an address"));
        let settings = FetchSettings { attempts: 1, https_proxy: nowhere, ..FetchSettings::default() };
        let fetch = Fetcher::new(&settings).expect("client");
        let registry = Registry::new(fetch.clone(), RegistrySettings::default());
        Fixture { store, fetch, registry, _folder: folder }
    }

    impl Fixture {
        async fn prepare(&self, engine: &Fake, request: &BaseRequest<'_>) -> Result<Base, BaseError> {
            self.prepare_telling(engine, request, Arc::new(NullReporter)).await
        }
        async fn prepare_telling(
            &self,
            engine: &Fake,
            request: &BaseRequest<'_>,
            reporter: Arc<dyn Reporter>,
        ) -> Result<Base, BaseError> {
            let (store, fetch, registry) = (&self.store, &self.fetch, &self.registry);
            prepare(&BaseTools { engine, registry, store, fetch, reporter }, request).await
        }
        /// A registry that has one image of that name, and the name's digest.
        async fn with_registry(mut self, name: &str, mirrored: bool) -> (Self, wiremock::MockServer, String) {
            let server = wiremock::MockServer::start().await;
            let body = format!(
                r#"{{"schemaVersion":2,"manifests":[{{"digest":"{}","platform":{{"os":"linux","architecture":"amd64"}}}}]}}"#,
                Digest::of(b"amd64")
            );
            let digest = Digest::of(body.as_bytes()).to_string();
            for wanted in ["12", &digest] {
                wiremock::Mock::given(wiremock::matchers::path(format!("/v2/{name}/manifests/{wanted}")))
                    .respond_with(wiremock::ResponseTemplate::new(200).set_body_string(&body))
                    .mount(&server)
                    .await;
            }
            if mirrored {
                let mut settings = RegistrySettings::default();
                settings.mirrors.add("docker.io", &server.uri()).expect("a mirror");
                self.registry = Registry::new(self.fetch.clone(), settings);
            }
            (self, server, digest)
        }
        /// A list of one package, which is in the cache.
        fn locked(&self) -> LockedBase {
            let deb = ar(&[("debian-binary", b"2.0\n"), ("data.tar", &[0; 1024])]);
            let sha256 = sha256_hex(&deb);
            self.store.put(&sha256, &deb).expect("put");
            LockedBase { packages: vec![package(&sha256)], ..locked(BaseProvider::Bootstrap) }
        }
    }

    fn package(sha256: &str) -> LockedDeb {
        LockedDeb {
            name: "libc6".to_owned(),
            version: "2.36-9".to_owned(),
            architecture: "amd64".to_owned(),
            sha256: sha256.to_owned(),
            size: 1,
            path: "pool/main/g/glibc/libc6.deb".to_owned(),
        }
    }

    fn locked(provider: BaseProvider) -> LockedBase {
        LockedBase {
            provider,
            name: "debian:12".to_owned(),
            suite: "bookworm".to_owned(),
            digest: None,
            content: None,
            image: None,
            cuda: false,
            packages: Vec::new(),
        }
    }

    fn request(locked: Option<&LockedBase>) -> BaseRequest<'_> {
        BaseRequest {
            name: "debian:12".to_owned(),
            suite: "bookworm".to_owned(),
            experimental: None,
            provider: BaseChoice::Auto,
            machine: Machine::X86_64,
            mirrors: MirrorSources::default(),
            locked,
            recent: None,
            upgrade: false,
            accept_expired: false,
            accept_older: false,
            now: jiff::Timestamp::UNIX_EPOCH,
        }
    }

    #[tokio::test]
    async fn local_image_is_pinned_by_its_registry_digest() {
        let (engine, f) = (fake(), fixture());
        let digest = Digest::of(b"debian").to_string();
        let pulled = image("sha256:id", &["other@sha256:no", &format!("debian@{digest}")]);
        engine.put("debian:12", pulled.clone());
        let base = f.prepare(&engine, &request(None)).await.expect("base");
        assert_eq!((base.reference, base.provider), (format!("debian@{digest}"), BaseProvider::Image));
        assert_eq!(base.digest, Some(digest));
    }

    #[tokio::test]
    async fn image_is_pulled_by_registry_digest() {
        let (f, server, digest) = fixture().with_registry("debian", false).await;
        let name = format!("{}/debian", server.address());
        let request = |locked| BaseRequest { name: format!("{name}:12"), ..request(locked) };
        let pinned = format!("{name}@{digest}");
        let mut engine = fake();
        engine.registry.insert(pinned.clone(), image("sha256:id", &[]));
        let base = f.prepare(&engine, &request(None)).await.expect("base");
        assert_eq!((base.reference.as_str(), base.published.as_ref()), (pinned.as_str(), Some(&pinned)));
        assert_eq!(base.digest.as_ref(), Some(&digest));
        // The registry is gone; the locked image is in the engine.
        drop(server);
        let lock = base.locked();
        assert_eq!(f.prepare(&engine, &request(Some(&lock))).await.expect("locked"), base);
    }

    #[tokio::test]
    async fn mirrored_image_gets_own_name_or_private_tag() {
        let (f, server, digest) = fixture().with_registry("library/debian", true).await;
        let mut engine = fake();
        let mirrored = format!("{}/library/debian@{digest}", server.address());
        engine.registry.insert(mirrored, image("sha256:id", &[]));
        let base = f.prepare(&engine, &request(None)).await.expect("base");
        assert_eq!(base.reference, format!("envforge-base:{}", &digest["sha256:".len()..][..16]));
        assert_eq!(base.published, Some(format!("debian@{digest}")));
        let lock = base.locked();
        assert_eq!((lock.name.as_str(), lock.digest.as_ref()), ("debian:12", Some(&digest)));
        drop(server);
        assert_eq!(f.prepare(&engine, &request(Some(&lock))).await.expect("locked"), base);
    }

    /// The tag that a vendor folder's archive brought says the digest; the layers say what it is.
    #[tokio::test]
    async fn image_with_other_layers_under_the_private_tag_is_refused() {
        let (f, server, digest) = fixture().with_registry("library/debian", true).await;
        let mut engine = fake();
        let mirrored = format!("{}/library/debian@{digest}", server.address());
        engine.registry.insert(mirrored.clone(), image("sha256:id", &[]));
        let base = f.prepare(&engine, &request(None)).await.expect("base");
        let lock = base.locked();
        drop(server);
        let env = vec!["LD_PRELOAD=/planted.so".to_owned()];
        let planted = [
            ImageInfo { layers: vec!["sha256:planted".to_owned()], ..image("sha256:id", &[]) },
            ImageInfo { env, ..image("sha256:id", &[]) },
        ];
        for planted in planted {
            engine.put(&base.reference, planted.clone());
            engine.put(&mirrored, planted);
            let error = f.prepare(&engine, &request(Some(&lock))).await.expect_err("another image");
            assert!(matches!(error, BaseError::OtherImage { .. }), "{error}");
            assert!(error.hints()[0].contains(&base.reference), "{:?}", error.hints());
        }
        // A lock that does not say what the image is, as a stranger writes it, gives the tag no worth.
        let lock = LockedBase { image: None, ..lock };
        engine.images.lock().expect("one thread").remove(&mirrored);
        let fetched = f.prepare(&engine, &request(Some(&lock))).await.expect("the registry has it");
        assert_eq!(fetched.image, base.image, "the image under the tag is not the one that was used");
        engine.put(
            &base.reference,
            ImageInfo { layers: vec!["sha256:planted".to_owned()], ..image("sha256:id", &[]) },
        );
        engine.images.lock().expect("one thread").remove(&mirrored);
        engine.registry.clear();
        let error = f.prepare(&engine, &request(Some(&lock))).await.expect_err("nothing to compare with");
        assert!(matches!(error, BaseError::NoFingerprint { .. }), "{error}");
    }

    #[tokio::test]
    async fn local_image_of_another_processor_is_rejected() {
        let (engine, f) = (fake(), fixture());
        engine.put("ubuntu:22.04", ImageInfo { architecture: "arm64".to_owned(), ..image("sha256:id", &[]) });
        let wanted = BaseRequest {
            name: "ubuntu:22.04".to_owned(),
            suite: "jammy".to_owned(),
            provider: BaseChoice::Image,
            ..request(None)
        };
        let error = f.prepare(&engine, &wanted).await.expect_err("another processor");
        assert!(matches!(error, BaseError::Registry(_)), "{error}");
    }

    #[tokio::test]
    async fn local_image_without_digest_gets_private_tag_of_its_id() {
        let (engine, f) = (fake(), fixture());
        let id = format!("sha256:{}", "ab".repeat(32));
        engine.put("debian:12", image(&id, &[]));
        engine.put(&id, image(&id, &[]));
        let base = f.prepare(&engine, &request(None)).await.expect("base");
        assert_eq!(base.reference, "envforge-base:abababababababab");
        assert_eq!(base.digest.as_ref(), Some(&id));
        let lock = base.locked();
        assert_eq!(f.prepare(&engine, &request(Some(&lock))).await.expect("again"), base);
        base.check_unchanged(&engine).await.expect("unchanged");
        engine.put(&base.reference, image("sha256:else", &[]));
        let error = base.check_unchanged(&engine).await.expect_err("moved");
        assert!(matches!(error, BaseError::TagMoved { .. }), "{error}");
    }

    #[tokio::test]
    async fn base_is_bootstrapped_with_a_note_if_pull_fails() {
        let (f, notes) = (fixture(), Arc::new(Recorder::default()));
        let reporter: Arc<dyn Reporter> = Arc::clone(&notes) as Arc<dyn Reporter>;
        let error = f.prepare_telling(&fake(), &request(None), reporter).await.expect_err("no mirror");
        assert_eq!(error.exit(), Exit::Outside);
        assert!(error.hints()[0].contains("ENVFORGE_DEBIAN_MIRROR"), "{:?}", error.hints());
        let notes: Vec<_> = notes
            .take()
            .into_iter()
            .filter_map(|event| if let Event::Note { text } = event { Some(text) } else { None })
            .collect();
        assert_eq!(notes.len(), 1);
        let wanted = "cannot pull `debian:12` (cannot reach registry `docker.io`: ";
        assert!(notes[0].starts_with(wanted) && notes[0].lines().count() == 1, "{notes:?}");
    }

    #[tokio::test]
    async fn unsupported_base_is_rejected() {
        let f = fixture();
        let ubuntu = |provider| BaseRequest {
            name: "ubuntu:20.04".to_owned(),
            suite: "focal".to_owned(),
            provider,
            ..request(None)
        };
        let auto = f.prepare(&fake(), &ubuntu(BaseChoice::Auto)).await.expect_err("none");
        assert!(matches!(auto, BaseError::Registry(_)), "{auto}");
        let bootstrap = f.prepare(&fake(), &ubuntu(BaseChoice::Bootstrap)).await.expect_err("none");
        assert!(matches!(bootstrap, BaseError::NotBootstrappable { .. }), "{bootstrap}");
    }

    #[tokio::test]
    async fn locked_list_is_built_once_without_mirror() {
        let (engine, f) = (fake(), fixture());
        let lock = f.locked();
        let base = f.prepare(&engine, &request(Some(&lock))).await.expect("base");
        assert_eq!(base.packages, lock.packages);
        assert!(base.archive.as_ref().is_some_and(|archive| archive.path.is_file()));
        assert_eq!(engine.images.lock().expect("one thread").len(), 1, "only the base is left");
        // A container that fails shows that nothing runs again.
        let engine = Fake { code: 9, ..engine };
        assert_eq!(f.prepare(&engine, &request(Some(&lock))).await.expect("again"), base);
    }

    #[tokio::test]
    async fn recent_list_is_used_without_an_index_while_its_archive_is_there() {
        let (engine, f) = (fake(), fixture());
        let lock = f.locked();
        let base = f.prepare(&engine, &request(Some(&lock))).await.expect("base");
        let provider = BaseChoice::Bootstrap;
        let fresh = BaseRequest { provider, ..request(None) };
        f.prepare(&engine, &fresh).await.expect_err("no mirror has the index");
        let recent = BaseRequest { recent: Some(lock.packages.as_slice()), ..fresh };
        assert_eq!(f.prepare(&engine, &recent).await.expect("no index is read"), base);
        fs_err::remove_file(base.archive.expect("it was built").path).expect("ours");
        f.prepare(&engine, &recent).await.expect_err("its packages may be gone from the mirror");
    }

    #[test]
    fn recent_list_is_shared_among_requests_with_the_same_mirrors_and_every_check() {
        let of = |main: &str, security: Option<&str>| MirrorSources {
            main: Some(main.to_owned()),
            security: security.map(str::to_owned),
            ..MirrorSources::default()
        };
        let (main, security) = ("http://a.test/debian", "http://a.test/debian-security");
        let whole = BaseRequest { mirrors: of(main, Some(security)), ..request(None) };
        let hash = whole.mirror_hash().expect("every index is checked");
        for mirrors in
            [of("http://b.test/debian", Some(security)), of(main, Some("http://b.test/debian-security"))]
        {
            let other = BaseRequest { mirrors, ..whole.clone() }.mirror_hash();
            assert!(other.is_some_and(|other| other != hash), "another mirror has other packages");
        }
        for (less, why) in [
            (BaseRequest { accept_older: true, ..whole.clone() }, "an older index"),
            (BaseRequest { accept_expired: true, ..whole.clone() }, "an expired index"),
            (BaseRequest { mirrors: of(main, None), ..whole.clone() }, "no security updates"),
            (BaseRequest { mirrors: MirrorSources::default(), ..whole.clone() }, "no mirror"),
        ] {
            assert_eq!(less.mirror_hash(), None, "{why}");
        }
    }

    #[tokio::test]
    async fn damaged_archive_of_the_cache_is_not_imported_but_made_again() {
        let (engine, f) = (fake(), fixture());
        let lock = f.locked();
        let base = f.prepare(&engine, &request(Some(&lock))).await.expect("base");
        let archive = base.archive.clone().expect("it was built").path;
        let whole = fs_err::read(&archive).expect("ours");
        // Of the same size: only its hash tells.
        let mut hostile = whole.clone();
        hostile[600] ^= 1;
        fs_err::write(&archive, hostile).expect("ours");
        engine.images.lock().expect("one thread").clear();
        assert_eq!(f.prepare(&engine, &request(Some(&lock))).await.expect("again"), base);
        assert!(fs_err::read(&archive).expect("ours") == whole);
    }

    #[tokio::test]
    async fn damaged_package_of_the_cache_is_downloaded_again() {
        let (engine, f, server) = (fake(), fixture(), wiremock::MockServer::start().await);
        let lock = f.locked();
        let place = f.store.blob_path(&lock.packages[0].sha256).expect("a path");
        let whole = fs_err::read(&place).expect("ours");
        fs_err::write(&place, b"hostile").expect("ours");
        wiremock::Mock::given(wiremock::matchers::method("GET"))
            .respond_with(wiremock::ResponseTemplate::new(200).set_body_bytes(whole.clone()))
            .expect(1)
            .mount(&server)
            .await;
        let mirrors = MirrorSources { main: Some(server.uri()), ..MirrorSources::default() };
        f.prepare(&engine, &BaseRequest { mirrors, ..request(Some(&lock)) }).await.expect("downloaded");
        assert!(fs_err::read(&place).expect("ours") == whole);
    }

    #[tokio::test]
    async fn moved_tag_is_restored() {
        let (engine, f) = (fake(), fixture());
        let lock = f.locked();
        let base = f.prepare(&engine, &request(Some(&lock))).await.expect("base");
        engine.put(&base.reference, image("sha256:foreign", &[]));
        assert_eq!(f.prepare(&engine, &request(Some(&lock))).await.expect("again"), base);
    }

    #[tokio::test]
    async fn failed_installation_reports_dpkg_output_and_cleans_up() {
        let (engine, f) = (Fake { code: 1, ..fake() }, fixture());
        let lock = f.locked();
        let error = f.prepare(&engine, &request(Some(&lock))).await.expect_err("failed");
        assert!(error.to_string().contains("error processing libc6"), "{error}");
        assert_eq!(engine.images.lock().expect("one thread").len(), 0);
        assert_eq!(fs_err::read_dir(f.store.cache_dir().join("temp")).expect("folder").count(), 0);
        f.prepare(&fake(), &request(Some(&lock))).await.expect("the next run works");
    }

    #[tokio::test]
    async fn interrupted_installation_cleans_up() {
        let (engine, f) = (Fake { code: NEVER, ..fake() }, fixture());
        let lock = f.locked();
        let soon = std::time::Duration::from_millis(200);
        assert!(tokio::time::timeout(soon, f.prepare(&engine, &request(Some(&lock)))).await.is_err());
        assert_eq!(engine.images.lock().expect("one thread").len(), 0);
        assert_eq!(fs_err::read_dir(f.store.cache_dir().join("temp")).expect("folder").count(), 0);
        f.prepare(&fake(), &request(Some(&lock))).await.expect("the next run works");
    }

    #[tokio::test]
    async fn error_names_locked_package_missing_on_mirror() {
        let (f, server) = (fixture(), wiremock::MockServer::start().await);
        let lock =
            LockedBase { packages: vec![package(&"ab".repeat(32))], ..locked(BaseProvider::Bootstrap) };
        let mirrors = MirrorSources { main: Some(server.uri()), ..MirrorSources::default() };
        let error =
            f.prepare(&fake(), &BaseRequest { mirrors, ..request(Some(&lock)) }).await.expect_err("lost");
        assert!(error.to_string().contains("`libc6` 2.36-9"), "{error}");
        assert!(error.hints()[0].contains("lock --upgrade"));
    }

    #[tokio::test]
    async fn lock_of_another_base_is_rejected() {
        let lock = LockedBase { name: "debian:13".to_owned(), ..locked(BaseProvider::Bootstrap) };
        let error = fixture().prepare(&fake(), &request(Some(&lock))).await.expect_err("other");
        assert_eq!(error.exit(), Exit::No);
    }
}

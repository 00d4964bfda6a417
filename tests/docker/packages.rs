//! Packages resolved by apt and uv for a bootstrapped base, from the real mirror and index.

use envforge::failure::{Exit, Failure as _};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use camino::Utf8PathBuf;
use envforge::base::{AptSources, BaseRequest, BaseTools, Distribution, MirrorSources, discover, prepare};
use envforge::engine::{Docker, EngineSettings};
use envforge::fetch::{FetchSettings, Fetcher};
use envforge::model::compat::tables::{Channel, Status};
use envforge::model::lock::{
    IndexKind, Lock, LockMetadata, LockedBase, LockedTool, SCHEMA, UserAdditions, WheelLayer,
};
use envforge::model::request::BaseChoice;
use envforge::model::stack::{Flavour, Requires, Stack};
use envforge::model::target::Target;
use envforge::model::versions::Machine;
use envforge::packages::{
    Archive, IndexSettings, PackageRequest, PackageSettings, PackagesError, Proxies, ResolvedPackages,
    Resolver, ResolverContext, UvSource, catalogue, gather_debs, resolve_packages, uv_binary,
};
use envforge::registry::Registry;
use envforge::report::NullReporter;
use envforge::settings::image_registry::RegistrySettings;
use envforge::store::Store;

use crate::engine::bridge_address;
use crate::framework::TORCH_2_7_CU118;
use crate::index::Index;
use crate::scene::{Scene, give_downloads, give_records, keep_records, shared_cache};

pub(crate) struct Fixture {
    _alone: std::fs::File,
    pub(crate) engine: Docker,
    fetcher: Fetcher,
    store: Store,
    pub(crate) settings: PackageSettings,
    base: LockedBase,
    pub(crate) base_reference: String,
    resolver: Resolver,
    folder: tempfile::TempDir,
}

fn mirrors() -> MirrorSources {
    MirrorSources {
        main: std::env::var("ENVFORGE_DEBIAN_MIRROR").ok(),
        security: std::env::var("ENVFORGE_DEBIAN_SECURITY_MIRROR").ok(),
        apt: AptSources::default().texts().expect("apt sources").to_vec(),
        ..MirrorSources::default()
    }
}

impl Fixture {
    /// With what the other tests have downloaded and made.
    async fn new() -> Self {
        Self::on("debian:12", "bookworm").await
    }

    /// With the base of the other tests, and a cache of its own that has nothing.
    async fn with_empty_cache() -> Self {
        let mut fixture = Self::new().await;
        let root = Utf8PathBuf::from_path_buf(fixture.folder.path().to_owned()).expect("UTF-8");
        fixture.store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        fixture
    }

    /// The same with uv: its download is another test's.
    async fn with_uv_only() -> Self {
        let fixture = Self::with_empty_cache().await;
        let uv = catalogue().uv(Machine::X86_64).expect("known").sha256;
        give_downloads(&fixture.folder.path().join("cache"), |name| name == uv);
        fixture
    }

    /// With that base; packages are resolved in Debian 12.
    pub(crate) async fn on(base: &str, suite: &str) -> Self {
        let alone = Scene::wait_for_the_engine();
        let docker_host = std::env::var("DOCKER_HOST").ok();
        let settings = EngineSettings { docker_host, ..EngineSettings::default() };
        let engine = Docker::connect(&settings).await.expect("an engine");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = folder.path().join("state");
        std::fs::create_dir(&state).expect("a folder of ours");
        give_records(&state);
        let utf8 = |path: &Path| Utf8PathBuf::from_path_buf(path.to_owned()).expect("UTF-8");
        let store = Store::open(&utf8(shared_cache()), &utf8(&state)).expect("a store");
        let fetcher = Fetcher::new(&FetchSettings::default()).expect("a client");
        let request = BaseRequest {
            name: "debian:12".to_owned(),
            suite: "bookworm".to_owned(),
            experimental: None,
            provider: BaseChoice::Bootstrap,
            machine: Machine::X86_64,
            mirrors: mirrors(),
            locked: None,
            recent: None,
            upgrade: false,
            accept_expired: false,
            accept_older: false,
            now: jiff::Timestamp::now(),
        };
        let registry = Registry::new(fetcher.clone(), RegistrySettings::default());
        let reporter = Arc::new(NullReporter);
        let means =
            BaseTools { engine: &engine, registry: &registry, store: &store, fetch: &fetcher, reporter };
        let own = prepare(&means, &request).await.expect("a base");
        let request = BaseRequest { name: base.to_owned(), suite: suite.to_owned(), ..request };
        let base = prepare(&means, &request).await.expect("a base");
        keep_records(&state);
        let found = discover(&mirrors(), Distribution::Debian).expect("a mirror");
        let bundle = std::fs::read("/etc/ssl/certs/ca-certificates.crt").ok().map(Bytes::from);
        let index = ["ENVFORGE_INDEX", "UV_DEFAULT_INDEX", "PIP_INDEX_URL"];
        let index = index.iter().find_map(|name| std::env::var(name).ok());
        let settings = PackageSettings {
            index: IndexSettings {
                default: index.map(|text| text.parse().expect("an address")),
                ca_bundle: bundle,
                ..IndexSettings::default()
            },
            archives: Archive::of_release(suite, &found.main, found.security.as_ref(), None),
            ..PackageSettings::default()
        };
        let (base_reference, base) = (base.reference.clone(), base.locked());
        let resolver = Resolver {
            image: own.reference,
            archives: Archive::of_release("bookworm", &found.main, found.security.as_ref(), None),
            lists: "envforge-tests-lists".to_owned(),
            index_cache: "envforge-tests-index".to_owned(),
        };
        Self { _alone: alone, engine, fetcher, store, settings, base, base_reference, resolver, folder }
    }

    pub(crate) async fn resolve(
        &self,
        stack: &Stack,
        requested: &[String],
        previous: Option<&Lock>,
    ) -> Result<ResolvedPackages, PackagesError> {
        let added = UserAdditions { python: requested.to_vec(), ..UserAdditions::default() };
        self.resolve_with(stack, &added, previous).await
    }

    pub(crate) async fn resolve_with(
        &self,
        stack: &Stack,
        added: &UserAdditions,
        previous: Option<&Lock>,
    ) -> Result<ResolvedPackages, PackagesError> {
        let tools = ResolverContext {
            engine: &self.engine,
            image: &self.resolver,
            store: &self.store,
            fetcher: &self.fetcher,
            settings: &self.settings,
            reporter: Arc::new(NullReporter),
        };
        let base_reference = &self.base_reference;
        let request = PackageRequest {
            base_reference,
            base: &self.base,
            stack,
            matrix: envforge::model::compat::embedded(),
            added,
            previous,
            preferred: None,
            fresh: &[],
            renew: false,
            local: &[],
            built: &[],
        };
        resolve_packages(&tools, &request).await
    }

    async fn uv(&self, tool: &LockedTool) -> Result<Utf8PathBuf, PackagesError> {
        let source = UvSource { engine: &self.engine, image: &self.resolver, settings: &self.settings };
        uv_binary(tool, &source, &self.store, &self.fetcher, Arc::new(NullReporter)).await
    }

    fn lock(&self, stack: &Stack, resolved: &ResolvedPackages) -> Lock {
        Lock {
            schema: SCHEMA,
            spec: stack.name.clone(),
            added: UserAdditions::default(),
            stack: stack.clone(),
            base: self.base.clone(),
            tools: resolved.tools.clone(),
            system: resolved.system.clone(),
            unpacked: resolved.unpacked.clone(),
            apt: resolved.apt.clone(),
            sources: Vec::new(),
            wheels: resolved.wheels.clone(),
            environment: BTreeMap::new(),
            records: LockMetadata::default(),
        }
    }
}

fn stack(version: &str, cuda: &str, channel: Channel, companions: [(&str, &str); 2]) -> Stack {
    Stack {
        name: format!("pytorch-cuda:{version}-{cuda}-py3.11"),
        product: "pytorch-cuda".to_owned(),
        framework: "pytorch".to_owned(),
        package: "torch".to_owned(),
        version: version.parse().expect("a version"),
        cuda: cuda.parse().expect("a variant"),
        toolkit: "12.8.1".parse().expect("a toolkit"),
        cudnn: None,
        nccl: None,
        triton: None,
        companions: companions.map(|(name, version)| (name.to_owned(), version.to_owned())).into(),
        python: "3.11".parse().expect("a Python"),
        glibc: "2.28".parse().expect("a glibc"),
        flavour: Flavour::Runtime,
        machine: Machine::X86_64,
        channel,
        status: Status::Stable,
        experimental: false,
        local: false,
        licence: None,
        base: "debian:12".to_owned(),
        suite: "bookworm".to_owned(),
        requires: Requires { driver: None, driver_native: None, gpu: Vec::new(), ptx: Vec::new() },
        forward_compat: None,
        install: Vec::new(),
        shared: Vec::new(),
        parts: BTreeMap::new(),
        nvcc: None,
        ptxas: None,
        source_build: None,
        numpy: None,
        target: Target::any(Machine::X86_64),
        matrix: "test".to_owned(),
        reasons: Vec::new(),
    }
}

pub(crate) fn torch_2_8() -> Stack {
    Stack {
        cudnn: Some("9.10.2.21".parse().expect("cuDNN")),
        nccl: Some("2.27.3".parse().expect("NCCL")),
        triton: Some("3.4.0".to_owned()),
        ..stack("2.8.0", "cu128", Channel::Default, [("torchvision", "0.23.0"), ("torchaudio", "2.8.0")])
    }
}

fn version(resolved: &ResolvedPackages, name: &str) -> String {
    resolved
        .wheels
        .iter()
        .find(|wheel| wheel.name == name)
        .unwrap_or_else(|| panic!("{name}"))
        .version
        .clone()
}

#[tokio::test]
#[ignore = "needs docker"]
async fn lock_pins_everything_above_the_base_and_keeps_pins() {
    let f = Fixture::with_uv_only().await;
    let stack = torch_2_8();
    let started = Instant::now();
    let resolved = f.resolve(&stack, &[], None).await.expect("resolved");
    let seconds = started.elapsed().as_secs_f64();
    tracing::info!(seconds, debs = resolved.system.len(), wheels = resolved.wheels.len(), "resolved");

    assert!(resolved.system.iter().any(|deb| deb.name == "python3.11"));
    assert!(resolved.wheels.iter().any(|w| w.name == "nvidia-cudnn-cu12" && w.layer == WheelLayer::Cuda));
    let lock = f.lock(&stack, &resolved);
    let text = lock.to_toml();
    assert!(!text.contains("://"), "no address is in a lock");
    assert_eq!(Lock::from_toml("envforge.lock", &text).expect("reads"), lock);

    // One package of the lock is older than the newest: an update with an addition keeps it, --upgrade does not.
    let mut old = lock.clone();
    let pandas = old.wheels.iter_mut().find(|wheel| wheel.name == "pandas").expect("pandas");
    pandas.version = "2.2.3".to_owned();
    let updated = f.resolve(&stack, &["rich".to_owned()], Some(&old)).await.expect("updated");
    assert_eq!(version(&updated, "pandas"), "2.2.3");
    let rich = updated.wheels.iter().find(|wheel| wheel.name == "rich").expect("rich");
    assert_eq!(rich.layer, WheelLayer::User);
    assert_eq!(updated.system, old.system);
    assert_ne!(version(&resolved, "pandas"), "2.2.3");

    let few = Lock { system: lock.system[..3].to_vec(), ..lock };
    let found = discover(&mirrors(), Distribution::Debian).expect("mirrors of this machine");
    let from: Vec<_> = [found.main].into_iter().chain(found.security).collect();
    gather_debs(&few, &f.store, &f.fetcher, &from, Arc::new(NullReporter)).await.expect("downloaded");
    for deb in &few.system {
        assert!(f.store.find(&deb.sha256).expect("cache").is_some(), "{}", deb.name);
    }
    gather_debs(&few, &f.store, &f.fetcher, &[], Arc::new(NullReporter)).await.expect("from the cache");
}

#[tokio::test]
#[ignore = "needs docker"]
async fn framework_index_provides_the_variant() {
    let mut f = Fixture::new().await;
    let index = Index::on(bridge_address(), TORCH_2_7_CU118.wheels("cp311", "packages"));
    let framework = format!("{}/{{cuda}}", index.url_with("user", "hunter2"));
    f.settings.index.framework = Some(framework.parse().expect("an address"));
    let stack =
        stack("2.7.1", "cu118", Channel::Framework, [("torchvision", "0.22.1"), ("torchaudio", "2.7.1")]);
    let resolved = f.resolve(&stack, &[], None).await.expect("resolved");
    assert_eq!(version(&resolved, "torch"), "2.7.1+cu118");
    for name in ["torch", "torchvision", "nvidia-cufft-cu11"] {
        let wheel = resolved.wheels.iter().find(|wheel| wheel.name == name).expect(name);
        assert_eq!(wheel.index, IndexKind::Framework, "{name}");
    }
    assert!(!f.lock(&stack, &resolved).to_toml().contains("hunter2"));

    index.fail("/cu118/torch/", crate::index::Fault::Status(404));
    let error = f.resolve(&stack, &[], None).await.expect_err("no such release");
    assert!(matches!(error, PackagesError::NoSolution { .. }), "{error:?}");
    index.heal();
    drop(index);
    let error = f.resolve(&stack, &[], None).await.expect_err("nobody listens");
    assert!(matches!(error, PackagesError::Index { .. }), "{error:?}");
    assert_eq!(error.exit(), Exit::Outside);
    assert!(error.hints()[0].contains("ENVFORGE_FRAMEWORK_INDEX"));
    let all = format!("{error} {error:?}");
    assert!(!all.contains("hunter2") && !all.contains(&bridge_address().to_string()), "{all}");
}

#[tokio::test]
#[ignore = "nightly: needs docker and makes a base from nothing, two minutes"]
async fn uv_comes_from_the_default_index_of_pip_when_none_is_set() {
    let mut f = Fixture::with_empty_cache().await;
    f.settings.index.default = None;
    let tool = catalogue().uv(Machine::X86_64).expect("known");

    let other = LockedTool { sha256: "0".repeat(64), ..tool.clone() };
    let error = f.uv(&other).await.expect_err("another wheel");
    assert!(matches!(error, PackagesError::UvHash { .. }), "{error:?}");
    let absent = LockedTool { version: "0.0.0.1".to_owned(), ..tool.clone() };
    let error = f.uv(&absent).await.expect_err("no such version");
    assert!(matches!(error, PackagesError::NoUvWheel { .. }), "{error:?}");

    let mirror = f.settings.archives[0].root.origin();
    let host = mirror.rsplit("//").next().and_then(|rest| rest.split(':').next()).expect("a host").to_owned();
    let dead = [("HTTPS_PROXY".to_owned(), "http://127.0.0.1:9".to_owned()), ("NO_PROXY".to_owned(), host)];
    f.settings.index.proxies = Proxies(dead.into());
    let error = f.uv(&tool).await.expect_err("the index is behind a dead proxy");
    assert!(matches!(error, PackagesError::Index { .. }), "{error:?}");
    assert!(error.hints().iter().any(|hint| hint.contains("PIP_INDEX_URL")), "{:?}", error.hints());
    f.settings.index.proxies = Proxies::default();

    let program = f.uv(&tool).await.expect("uv");
    assert!(std::fs::read(&program).expect("a file of the cache").starts_with(b"\x7fELF"));
    assert!(f.store.find(&tool.sha256).expect("cache").is_some());
    f.settings.network = envforge::engine::Network::None;
    assert_eq!(f.uv(&tool).await.expect("from the cache"), program);
}

#[tokio::test]
#[ignore = "needs docker"]
async fn error_distinguishes_a_dead_mirror_from_a_missing_network() {
    let mut f = Fixture::new().await;
    let dead = "http://127.0.0.1:9/debian".parse().expect("an address");
    let good =
        std::mem::replace(&mut f.settings.archives, Archive::of_release("bookworm", &dead, None, None));
    let error = f.resolve(&torch_2_8(), &[], None).await.expect_err("down");
    assert!(matches!(error, PackagesError::Mirror { no_network: false, .. }), "{error:?}");
    f.settings.archives = good;
    f.settings.network = envforge::engine::Network::None;
    let error = f.resolve(&torch_2_8(), &[], None).await.expect_err("no network");
    assert!(matches!(error, PackagesError::Mirror { no_network: true, .. }), "{error:?}");
    assert_eq!(error.exit(), Exit::Outside);
    assert!(error.hints()[0].contains("ENVFORGE_NETWORK=host"));
}

/// The fixture's repository on an address that containers reach.
async fn vendor_repository() -> wiremock::MockServer {
    let listener = std::net::TcpListener::bind((bridge_address(), 0)).expect("a port");
    let server = wiremock::MockServer::builder().listener(listener).start().await;
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/vendor/debian12/x86_64");
    for entry in std::fs::read_dir(folder).expect("the fixture") {
        let entry = entry.expect("a file");
        // The file names of a flat repository begin with `./`; clients keep that part of the path.
        let name = entry.file_name().to_string_lossy().replace('.', r"\.").replace('+', r"\+");
        let path = format!("^/repos/debian12/x86_64/(\\./)?{name}$");
        let body = std::fs::read(entry.path()).expect("a file");
        wiremock::Mock::given(wiremock::matchers::path_regex(path))
            .respond_with(wiremock::ResponseTemplate::new(200).set_body_bytes(body))
            .mount(&server)
            .await;
    }
    server
}

#[tokio::test]
#[ignore = "needs docker"]
async fn vendor_repository_provides_nvcc() {
    let mut f = Fixture::with_uv_only().await;
    let server = vendor_repository().await;
    let spec = "cuda:12.8-devel".parse().expect("a spec");
    let options = envforge::model::resolve::ResolveOptions::default();
    let target = Target::any(Machine::X86_64);
    let stack =
        envforge::model::resolve::resolve(&spec, &target, envforge::model::compat::embedded(), &options);
    let stack = stack.expect("the vendor has nvcc 12.8 for debian:12");

    f.settings.vendor.root = Some(format!("{}/repos", server.uri()).parse().expect("an address"));
    let error = f.resolve(&stack, &[], None).await.expect_err("signed by the test, not by the vendor");
    assert!(matches!(error, PackagesError::VendorKey { .. }), "{error:?}");

    f.settings.vendor.fingerprint = Some("7440A2500DA815DC50E8D78280DFC67927037B68".to_owned());
    let resolved = f.resolve(&stack, &[], None).await.expect("resolved");
    let names: Vec<_> = resolved.unpacked.iter().map(|deb| deb.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "cuda-crt-12-8",
            "cuda-cudart-dev-12-8",
            "cuda-driver-dev-12-8",
            "cuda-nvcc-12-8",
            "cuda-nvvm-12-8",
            "nsight-compute-2025.1.1",
            "nsight-systems-2024.6.2"
        ]
    );
    assert!(resolved.system.iter().any(|deb| deb.name == "g++-12"));
    assert!(
        resolved.system.iter().all(|deb| deb.name != "build-essential"),
        "nothing it depends on is installed"
    );
    assert_eq!(version(&resolved, "nvidia-cuda-cccl-cu12"), "12.8.90");
    let lock = f.lock(&stack, &resolved);
    assert!(!lock.to_toml().contains("://"), "no address is in a lock");
    let root = envforge::packages::vendor_root(
        stack.nvcc.as_ref().and_then(|nvcc| nvcc.repository.as_ref()).expect("the vendor's"),
        &f.settings.vendor,
    );
    let few = Lock { system: Vec::new(), ..lock };
    gather_debs(&few, &f.store, &f.fetcher, &[root], Arc::new(NullReporter)).await.expect("downloaded");
    for deb in &few.unpacked {
        assert!(f.store.find(&deb.sha256).expect("cache").is_some(), "{}", deb.name);
    }

    server.reset().await;
    let error = f.resolve(&stack, &[], None).await.expect_err("the repository is gone");
    assert!(matches!(error, PackagesError::Vendor { .. }), "{error:?}");
    assert_eq!(error.exit(), Exit::Outside);
}

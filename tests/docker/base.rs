//! Bases built from the distribution's packages by a real engine, from a real mirror.

use std::io::BufRead as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use camino::Utf8PathBuf;
use envforge::archive::content_digest::content_digest_of_tar;
use envforge::base::{AptSources, Base, BaseRequest, BaseTools, MirrorSources, prepare};
use envforge::engine::{Docker, EngineSettings, Network, RunRequest, Runner as _};
use envforge::fetch::{FetchSettings, Fetcher};
use envforge::model::lock::LockedBase;
use envforge::model::request::BaseChoice;
use envforge::model::versions::Machine;
use envforge::registry::Registry;
use envforge::report::{Event, NullReporter, Reporter};
use envforge::settings::image_registry::RegistrySettings;
use envforge::store::Store;

use crate::engine::docker;
use crate::scene::{give_records, keep_records, shared_cache};

/// The texts of the steps that were begun.
#[derive(Default)]
struct Steps(Mutex<Vec<String>>);

impl Reporter for Steps {
    fn report(&self, event: Event) {
        if let Event::StepStarted { text, .. } = event {
            self.0.lock().expect("nobody panics with it").push(text);
        }
    }
}

struct Fixture {
    engine: Docker,
    fetch: Fetcher,
    root: Utf8PathBuf,
    _folder: tempfile::TempDir,
    _alone: std::fs::File,
}

impl Fixture {
    async fn new() -> Self {
        let alone = crate::scene::Scene::wait_for_the_engine();
        let settings =
            EngineSettings { docker_host: std::env::var("DOCKER_HOST").ok(), ..EngineSettings::default() };
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self {
            engine: Docker::connect(&settings).await.expect("an engine"),
            fetch: Fetcher::new(&FetchSettings::default()).expect("a client"),
            root: Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8"),
            _folder: folder,
            _alone: alone,
        }
    }

    /// Downloads are shared, what was built is not.
    fn store(&self, state: &str) -> Store {
        Store::open(&self.root.join("cache"), &self.root.join(state)).expect("a store")
    }

    async fn base(&self, store: &Store, request: &BaseRequest<'_>) -> Base {
        self.base_by_steps(store, request).await.0
    }

    /// A base, and the steps that were needed for it.
    async fn base_by_steps(&self, store: &Store, request: &BaseRequest<'_>) -> (Base, Vec<String>) {
        let started = Instant::now();
        let registry = Registry::new(self.fetch.clone(), RegistrySettings::default());
        let steps = Arc::new(Steps::default());
        let (engine, fetch, reporter) = (&self.engine, &self.fetch, steps.clone());
        let means = BaseTools { engine, registry: &registry, store, fetch, reporter };
        let base = prepare(&means, request).await.expect("a base");
        let seconds = started.elapsed().as_secs_f64();
        let size =
            base.archive.as_ref().map(|archive| std::fs::metadata(&archive.path).expect("archive").len());
        tracing::info!(seconds, size, reference = base.reference, "base");
        let steps = std::mem::take(&mut *steps.0.lock().expect("nobody panics with it"));
        (base, steps)
    }

    async fn run(&self, base: &Base, command: &str) -> String {
        let request = RunRequest {
            image: base.reference.clone(),
            command: ["/bin/sh", "-c", command].map(str::to_owned).into(),
            network: Network::None,
            ..RunRequest::default()
        };
        let outcome = self.engine.run(request, Arc::new(NullReporter)).await.expect("a container");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(outcome.code, 0, "{command}: {}{}", text(&outcome.stdout), text(&outcome.stderr));
        text(&outcome.stdout).trim_end().to_owned()
    }
}

fn request<'a>(name: &str, suite: &str, locked: Option<&'a LockedBase>) -> BaseRequest<'a> {
    let mirrors = MirrorSources {
        main: std::env::var("ENVFORGE_DEBIAN_MIRROR").ok(),
        security: std::env::var("ENVFORGE_DEBIAN_SECURITY_MIRROR").ok(),
        apt: AptSources::default().texts().expect("apt sources").to_vec(),
        ..MirrorSources::default()
    };
    BaseRequest {
        name: name.to_owned(),
        suite: suite.to_owned(),
        experimental: None,
        provider: BaseChoice::Bootstrap,
        machine: Machine::X86_64,
        mirrors,
        locked,
        recent: None,
        upgrade: false,
        accept_expired: false,
        accept_older: false,
        now: jiff::Timestamp::now(),
    }
}

/// A base with what is asserted of it, made once.
async fn built_once(f: &Fixture, name: &str, suite: &str) -> Base {
    let store = f.store("state-one");
    let (first, steps) = f.base_by_steps(&store, &request(name, suite, None)).await;
    assert!(!steps.is_empty(), "a base is made by steps");
    assert_eq!(
        first.reference,
        format!("envforge-base:{}", &first.content.as_deref().expect("content")[..16])
    );
    let bytes = std::fs::File::open(&first.archive.as_ref().expect("archive").path).expect("archive");
    assert_eq!(content_digest_of_tar(std::io::BufReader::new(bytes)).ok(), first.content);
    first.check_unchanged(&f.engine).await.expect("the tag is ours");

    let locked = first.locked();
    let lone = BaseRequest { mirrors: MirrorSources::default(), ..request(name, suite, Some(&locked)) };
    let (again, steps) = f.base_by_steps(&store, &lone).await;
    assert_eq!(again, first);
    assert_eq!(steps, [""; 0], "what is there is not built again");
    let left = std::fs::read_dir(store.cache_dir().join("temp")).expect("folder").count();
    assert_eq!(left, 0, "temporary files are removed");
    // The base has its tag; its first stage had a private one of this process, which is gone.
    let tags = docker(&["images", "--format", "{{.Repository}}:{{.Tag}}"]);
    let private = format!("envforge-scratch:{}-", std::process::id());
    assert!(tags.lines().any(|tag| tag == first.reference), "{tags}");
    assert!(!tags.lines().any(|tag| tag.starts_with(&private)), "{tags}");

    // A whole, quiet, merged system with the distribution's own sources.
    assert_eq!(f.run(&first, "dpkg --audit; dpkg -l | grep -c ^ii").await, first.packages.len().to_string());
    assert_eq!(
        f.run(&first, "readlink /bin /lib /sbin; . /etc/os-release; echo $VERSION_CODENAME")
            .await
            .lines()
            .last(),
        Some(suite)
    );
    assert!(
        f.run(&first, "cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true")
            .await
            .contains(suite)
    );
    assert_eq!(
        f.run(&first, "apt-get --simulate install apt >/dev/null && stat -c %a:%u:%g /tmp /etc/shadow").await,
        "1777:0:0\n640:0:42"
    );
    assert_eq!(f.run(&first, "find / -xdev -name '*-old' -o -xdev -name '*.dpkg-*' -type f | grep -v '^/proc' | grep -v '^/usr' || true").await, "");
    first
}

async fn built_twice(name: &str, suite: &str) {
    let f = Fixture::new().await;
    let first = built_once(&f, name, suite).await;
    // The same list, where nothing was built before, and no mirror is known: downloads come from the cache.
    let locked = first.locked();
    let lone = BaseRequest { mirrors: MirrorSources::default(), ..request(name, suite, Some(&locked)) };
    let second = f.base(&f.store("state-two"), &lone).await;
    assert_eq!(second.content, first.content);
    assert_eq!(second.image_id, first.image_id, "the engine has that base already");
}

#[tokio::test]
#[ignore = "nightly: needs docker and makes a base from nothing, a minute; that of Debian 13 stays"]
async fn debian_11_is_whole_and_kept() {
    built_once(&Fixture::new().await, "debian:11", "bullseye").await;
}

#[tokio::test]
#[ignore = "needs docker"]
async fn debian_13_is_whole_and_kept() {
    built_once(&Fixture::new().await, "debian:13", "trixie").await;
}

#[tokio::test]
#[ignore = "nightly: needs docker and makes six bases from nothing; `folders` compares two of debian:12"]
async fn every_debian_built_twice_is_the_same() {
    for (name, suite) in [("debian:11", "bullseye"), ("debian:12", "bookworm"), ("debian:13", "trixie")] {
        built_twice(name, suite).await;
    }
}

/// A server of a folder on loopback.
struct Mirror {
    server: std::process::Child,
    address: String,
}

impl Mirror {
    fn of(folder: &Utf8PathBuf) -> Self {
        let mut server = Command::new("python3")
            .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", folder.as_str()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python3");
        let mut line = String::new();
        let said = server.stdout.take().expect("it is piped");
        std::io::BufReader::new(said).read_line(&mut line).expect("its first line");
        let port = line.split("port ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a port");
        Self { server, address: format!("http://127.0.0.1:{port}/") }
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

/// Ubuntu's archive cannot be reached here: one with Debian's packages stands for it. Its signed index is read in `suite_tests`.
#[tokio::test]
#[ignore = "needs docker"]
async fn ubuntu_is_built_from_an_archive_of_the_test() {
    let f = Fixture::new().await;
    // The one of the other tests, with its packages.
    let state = f.root.join("state-one");
    std::fs::create_dir(&state).expect("ours");
    give_records(state.as_std_path());
    let shared = Utf8PathBuf::from_path_buf(shared_cache().to_owned()).expect("UTF-8");
    let store = Store::open(&shared, &state).expect("a store");
    let debian = f.base(&store, &request("debian:12", "bookworm", None)).await;
    keep_records(state.as_std_path());
    let archive = f.root.join("archive");
    for deb in &debian.packages {
        let (hash, place) = (&deb.sha256, archive.join(&deb.path));
        std::fs::create_dir_all(place.parent().expect("a folder")).expect("ours");
        std::fs::hard_link(shared.join("sha256").join(&hash[..2]).join(hash), place).expect("ours");
    }
    let mirror = Mirror::of(&archive);
    let mirrors = MirrorSources { ubuntu: Some(mirror.address.clone()), ..MirrorSources::default() };
    let mut locked = debian.locked();
    "ubuntu:22.04".clone_into(&mut locked.name);
    let wanted = BaseRequest { mirrors, ..request("ubuntu:22.04", "jammy", Some(&locked)) };
    // Another cache: each package comes from the archive.
    let store = Store::open(&f.root.join("other-cache"), &f.root.join("state-two")).expect("a store");
    let ubuntu = f.base(&store, &wanted).await;
    assert_eq!((ubuntu.suite.as_str(), &ubuntu.packages), ("jammy", &debian.packages));
    assert_eq!(ubuntu.content, debian.content, "the same packages, the same files");
    assert_eq!(
        f.run(&ubuntu, "dpkg --audit; dpkg -l | grep -c ^ii").await,
        ubuntu.packages.len().to_string()
    );

    // A package that the archive changed is refused by its hash.
    let changed = &debian.packages[0];
    let place = archive.join(&changed.path);
    std::fs::remove_file(&place).expect("ours");
    std::fs::write(&place, vec![0; usize::try_from(changed.size).expect("small")]).expect("ours");
    let store = Store::open(&f.root.join("third-cache"), &f.root.join("state-three")).expect("a store");
    let registry = Registry::new(f.fetch.clone(), RegistrySettings::default());
    let (engine, fetch, reporter) = (&f.engine, &f.fetch, Arc::new(NullReporter));
    let means = BaseTools { engine, registry: &registry, store: &store, fetch, reporter };
    let error = format!("{:?}", prepare(&means, &wanted).await.expect_err("refused"));
    assert!(error.contains(&changed.name), "{error}");
}

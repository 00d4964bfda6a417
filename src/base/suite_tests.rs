//! Reading a suite from a mirror: good answers, wrong ones, and the cases of `tests/hostile/releases`.
#![expect(clippy::disallowed_methods, reason = "reads the cases")]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use camino::Utf8PathBuf;
use serde::Deserialize;
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::closure::base_closure;
use super::distribution::Distribution;
use super::error::BaseError;
use super::mirrors::Mirrors;
use super::packages::PackageIndex;
use super::release::ReleaseError;
use super::seen_index::SeenIndex;
use super::signature::{Keyring, keyring_of, test_keyring};
use super::signature_error::SignatureError;
use super::suite::SuiteReader;
use crate::failure::Failure as _;
use crate::fetch::{FetchError, FetchSettings, Fetcher, Transfer};
use crate::model::address::Address;
use crate::model::versions::Machine;
use crate::report::NullReporter;
use crate::store::Store;

const GOOD: &[u8] = include_bytes!("fixtures/good.InRelease");
const OTHER: &[u8] = include_bytes!("fixtures/other.InRelease");
const NOW: &str = "2026-11-21T00:00:00Z";

/// A mirror, and what this machine remembers of it.
struct Scene {
    server: MockServer,
    store: Store,
    _folder: tempfile::TempDir,
}

impl Scene {
    /// A mirror that serves this `InRelease` and these packages.
    async fn new(in_release: &[u8], packages: &[u8]) -> Self {
        let scene = Self::empty().await;
        scene.serve("bookworm", in_release, packages).await;
        scene
    }

    /// A mirror without a suite.
    async fn empty() -> Self {
        let server = MockServer::start().await;
        let folder = tempfile::tempdir().expect("folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("store");
        Self { server, store, _folder: folder }
    }

    /// Serves a suite.
    async fn serve(&self, suite: &str, in_release: &[u8], packages: &[u8]) {
        for (file, body) in [("InRelease", in_release), ("main/binary-amd64/Packages.xz", packages)] {
            Mock::given(path(format!("/dists/{suite}/{file}")))
                .respond_with(ResponseTemplate::new(200).set_body_bytes(body))
                .mount(&self.server)
                .await;
        }
    }

    /// Serves the files of a suite of Ubuntu as those of `suite`.
    async fn serve_fixture(&self, suite: &str, served: &str) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/base/fixtures/ubuntu");
        let file = |name: &str| std::fs::read(folder.join(format!("{served}.{name}"))).expect("a fixture");
        self.serve(suite, &file("InRelease"), &file("Packages.xz")).await;
    }

    fn mirror(&self) -> Address {
        self.server.uri().parse().expect("address")
    }

    async fn read(
        &self,
        keyring: &Keyring,
        now: &str,
        accept_older: bool,
    ) -> Result<PackageIndex, BaseError> {
        let mirrors = Mirrors { main: self.mirror(), security: None };
        self.read_from(&mirrors, ("bookworm", now), keyring, accept_older).await
    }

    /// Reads a suite with its updates and security updates.
    async fn read_suite(&self, suite: &str, keyring: &Keyring) -> Result<PackageIndex, BaseError> {
        let mirrors = Mirrors { main: self.mirror(), security: Some(self.mirror()) };
        self.read_from(&mirrors, (suite, "2026-11-24T00:00:00Z"), keyring, false).await
    }

    async fn read_from(
        &self,
        mirrors: &Mirrors,
        (suite, now): (&str, &str),
        keyring: &Keyring,
        accept_older: bool,
    ) -> Result<PackageIndex, BaseError> {
        let reader = SuiteReader {
            fetch: &Fetcher::new(&FetchSettings { attempts: 1, ..FetchSettings::default() }).expect("client"),
            store: &self.store,
            keyring,
            mirrors,
            machine: Machine::X86_64,
            now: now.parse().expect("time"),
            accept_expired: false,
            accept_older,
            transfer: &Transfer::new(Arc::new(NullReporter), "test", None),
        };
        reader.index(suite).await
    }
}

async fn read(in_release: &[u8], packages: &[u8], now: &str) -> Result<PackageIndex, BaseError> {
    Scene::new(in_release, packages).await.read(&test_keyring(), now, false).await
}

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
    assert!(matches!(&error, BaseError::Release { source: ReleaseError::Expired { .. }, .. }), "{error:?}");
}

#[tokio::test]
async fn unsigned_index_is_rejected() {
    let error = read(b"Codename: bookworm\n", b"x", NOW).await.expect_err("unsigned");
    assert!(matches!(error, BaseError::Signature { .. }), "{error:?}");
}

/// A mirror of Ubuntu 22.04, made for the tests: each suite with an index of its own, signed with a key of the tests.
async fn ubuntu() -> Scene {
    let scene = Scene::empty().await;
    let suites = ["jammy", "jammy-updates", "jammy-security"];
    for suite in suites {
        scene.serve_fixture(suite, suite).await;
    }
    scene
}

fn ubuntu_keyring() -> Keyring {
    keyring_of(include_bytes!("fixtures/ubuntu/key.gpg"))
}

#[tokio::test]
async fn suites_of_ubuntu_are_read_by_their_suite_and_the_newest_package_wins() {
    let scene = ubuntu().await;
    let index = scene.read_suite("jammy", &ubuntu_keyring()).await.expect("read");
    let packages = base_closure(&index).expect("complete");
    let found: Vec<_> = packages.iter().map(|deb| (deb.name.as_str(), deb.version.as_str())).collect();
    let expected = [
        ("apt", "2.4.5"),
        ("base-files", "12ubuntu4"),
        ("libc6", "2.35-0ubuntu3.8"),
        ("ubuntu-keyring", "2021.03.26"),
    ];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn index_of_another_suite_of_ubuntu_is_refused() {
    let scene = Scene::empty().await;
    for (suite, served) in [("jammy", "jammy"), ("jammy-updates", "jammy-security")] {
        scene.serve_fixture(suite, served).await;
    }
    let error = scene.read_suite("jammy", &ubuntu_keyring()).await.expect_err("replayed");
    let BaseError::Release { source: ReleaseError::OtherSuite { wanted, found }, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!((wanted.as_str(), found.as_str()), ("jammy-updates", "jammy-security"));
}

/// The key of the tests' archive is in no keyring of the program, and no setting adds one.
#[tokio::test]
async fn archive_of_the_tests_is_refused_with_the_keys_of_the_program() {
    let scene = ubuntu().await;
    for distribution in [Distribution::Ubuntu, Distribution::Debian] {
        let keyring = distribution.keyring().expect("keys");
        let error = scene.read_suite("jammy", &keyring).await.expect_err("unknown key");
        let unknown =
            matches!(&error, BaseError::Signature { source: SignatureError::UnknownKey { .. }, .. });
        assert!(unknown, "{error:?}");
    }
}

/// What must happen in a case of `tests/hostile/releases`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Expect {
    /// The exit code; 0: the packages are read.
    exit: u8,
    /// Texts of the message.
    #[serde(default)]
    says: Vec<String>,
    /// The time now.
    now: String,
    /// The date of the newest index that this mirror served before.
    seen: Option<String>,
    /// The date of the newest index that another mirror served before.
    seen_elsewhere: Option<String>,
    /// Whether `--accept-older` was given.
    #[serde(default)]
    accept_older: bool,
    /// Whether it was given the time before.
    #[serde(default)]
    accepted_before: bool,
}

/// Every way in which a case went wrong.
async fn problems(folder: &Path) -> Vec<String> {
    let file = |name: &str| std::fs::read(folder.join(name));
    let text = String::from_utf8(file("expect.toml").expect("expect.toml")).expect("UTF-8");
    assert!(text.starts_with("# Property 1"), "expect.toml begins with `# Property N: …`");
    let expect: Expect = toml::from_str(&text).expect("expect.toml");
    let shared = |name: &str| std::fs::read(folder.parent().expect("a kind").join(name));
    let key = file("key.gpg").or_else(|_| shared("key.gpg")).expect("a key");
    let packages = shared("Packages.xz").expect("packages");
    let scene = Scene::new(&file("InRelease").expect("InRelease"), &packages).await;
    let seen = |mirror: &Address, date: &String| {
        let index = SeenIndex::of(mirror, "bookworm", date.parse().expect("a time"));
        index.check::<BaseError>(&scene.store, false).expect("recorded");
    };
    expect.seen.iter().for_each(|date| seen(&scene.mirror(), date));
    let elsewhere = "http://elsewhere.test/debian".parse().expect("an address");
    expect.seen_elsewhere.iter().for_each(|date| seen(&elsewhere, date));
    let keyring = keyring_of(&key);
    if expect.accepted_before {
        scene.read(&keyring, &expect.now, true).await.expect("accepted");
    }
    let mut found = Vec::new();
    let (exit, message) = match scene.read(&keyring, &expect.now, expect.accept_older).await {
        Ok(index) => (0, if index.package("demo").is_some() { "" } else { "no packages" }.to_owned()),
        Err(error) => {
            let causes = std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
            let text = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
            (error.exit() as u8, format!("{text}; {}", error.hints().join("; ")))
        }
    };
    if exit != expect.exit || exit == 0 && !message.is_empty() {
        found.push(format!("exit code {exit}, expected {}: {message}", expect.exit));
    }
    let missing = expect.says.iter().filter(|text| !message.contains(*text));
    found.extend(missing.map(|text| format!("`{text}` is missing in `{message}`")));
    found
}

#[tokio::test]
async fn hostile_releases_are_refused() {
    let kind = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/releases");
    let entries = std::fs::read_dir(&kind).expect("the cases").map(|entry| entry.expect("an entry").path());
    let mut cases: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    cases.sort();
    assert!(cases.len() > 15 && cases.iter().any(|case| case.ends_with("harmless")), "{cases:?}");
    let mut wrong = String::new();
    for case in cases {
        let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for problem in problems(&case).await {
            let _ = writeln!(wrong, "releases/{name}: {problem}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

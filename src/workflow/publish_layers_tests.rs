//! A registry of a team, and its machines.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::failure::Exit;
use crate::fetch::{FetchSettings, Fetcher};
use crate::model::lock::LayerRecord;
use crate::model::sha256::sha256_hex;
use crate::registry::Registry;
use crate::registry::test_registry::{TestRegistry, Wrong};
use crate::report::{Event, Reporter};
use crate::settings::image_registry::RegistrySettings;
use crate::store::Store;
use crate::workflow::assemble::{Purpose, SharedStep};
use crate::workflow::layer_sources::LayerSources;

pub(super) const KEY: &str = "abababababababababababababababababababababababababababababababab";

#[derive(Default)]
pub(super) struct Warnings(Mutex<Vec<String>>);

impl Reporter for Warnings {
    fn report(&self, event: Event) {
        if let Event::Warning { text } = event {
            self.0.lock().expect("no test panics with it").push(text);
        }
    }
}

/// A machine of the team.
pub(super) struct TeamMachine {
    host: String,
    pub(super) store: Store,
    warnings: Arc<Warnings>,
    _folder: tempfile::TempDir,
}

pub(super) fn machine(host: &str) -> TeamMachine {
    let folder = tempfile::tempdir().expect("a folder");
    let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
    let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
    TeamMachine { host: host.to_owned(), store, warnings: Arc::default(), _folder: folder }
}

impl TeamMachine {
    pub(super) fn layer(&self, text: &str) -> KeptLayer {
        let tar = text.repeat(100_000).into_bytes();
        let sha256 = sha256_hex(&tar);
        self.store.put(&sha256, &tar).expect("stored");
        KeptLayer { sha256, size: tar.len() as u64 }
    }

    /// The layers of an image whose lock records these.
    pub(super) fn finished(&self, recorded: &[&KeptLayer], write: bool) -> FinishedLayers {
        self.finished_of(recorded, self.sources(write), Purpose::Build)
    }

    /// The team's registry.
    pub(super) fn sources(&self, write: bool) -> LayerSources {
        let repository = format!("{}/team/layers", self.host).parse().expect("a reference");
        LayerSources::new(Some(LayerRepository { repository, write }))
    }

    /// Cache, registry and reporter.
    pub(super) fn parts(&self) -> (Store, Registry, Arc<dyn Reporter>) {
        let settings =
            FetchSettings { attempts: 2, first_pause: Duration::from_millis(1), ..FetchSettings::default() };
        let registry = Registry::new(Fetcher::new(&settings).expect("a client"), RegistrySettings::default());
        (self.store.clone(), registry, Arc::clone(&self.warnings) as Arc<dyn Reporter>)
    }

    /// The same from other sources, or for something else.
    pub(super) fn finished_of(
        &self,
        recorded: &[&KeptLayer],
        sources: LayerSources,
        purpose: Purpose,
    ) -> FinishedLayers {
        let record = |layer: &&KeptLayer| LayerRecord {
            component: "system".to_owned(),
            diff_id: layer.diff_id(),
            size: Some(layer.size),
            digest: None,
            compressed_size: None,
        };
        let recorded: Vec<LayerRecord> = recorded.iter().map(record).collect();
        FinishedLayers::of_parts(self.parts(), sources, &recorded, purpose)
    }

    /// Publishes layers under the key.
    pub(super) async fn publish(&self, layers: &[KeptLayer]) -> Result<(), CommandError> {
        let finished = self.finished(&[], true);
        finished.made(KEY, "system", layers).expect("nothing to compare it with");
        publish_layers(&finished, Machine::X86_64).await
    }

    /// The files below the cache, with content.
    pub(super) fn files(&self) -> Vec<String> {
        let (mut folders, mut files) = (vec![self.store.cache_dir().to_owned()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir_utf8().expect("a folder").flatten() {
                let found = entry.metadata().expect("it is there");
                if found.is_dir() {
                    folders.push(entry.path().to_owned());
                } else if found.len() > 0 {
                    files.push(entry.path().to_string());
                }
            }
        }
        files
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        self.warnings.0.lock().expect("no test panics with it").clone()
    }
}

/// A registry with two layers of the first machine, and those.
pub(super) async fn published() -> (TestRegistry, TeamMachine, Vec<KeptLayer>) {
    let server = TestRegistry::start().await;
    let first = machine(&server.host);
    let layers = vec![first.layer("system"), first.layer("environment")];
    first.publish(&layers).await.expect("published");
    assert_eq!(first.warnings(), Vec::<String>::new());
    (server, first, layers)
}

#[tokio::test]
async fn second_machine_takes_what_the_lock_records_and_sends_nothing() {
    let (server, _, layers) = published().await;
    let second = machine(&server.host);
    let finished = second.finished(&[&layers[0], &layers[1]], true);
    let sent = server.count("PATCH");
    let found = finished.find(SharedStep::System, KEY, "system").await.expect("found");
    assert_eq!(found.as_ref(), Some(&layers));
    for layer in &layers {
        assert!(second.store.read(&layer.sha256).expect("readable").is_some());
    }
    let files = second.files();
    let of = |folder: &str| files.iter().filter(|file| file.contains(folder)).count();
    assert_eq!(
        (of("/sha256/"), of("/layers/taken/"), files.len()),
        (2, 1, 3),
        "none is compressed: {files:?}"
    );
    publish_layers(&finished, Machine::X86_64).await.expect("nothing to do");
    assert_eq!(server.count("PATCH"), sent);
    assert_eq!(
        finished.find(SharedStep::Apt, &"cd".repeat(32), "apt").await.expect("silent"),
        None,
        "a layer it lacks"
    );
    assert_eq!(second.warnings(), Vec::<String>::new());
}

#[tokio::test]
async fn layers_that_no_lock_records_are_made_here_and_compared() {
    let (server, first, layers) = published().await;
    let second = machine(&server.host);
    let finished = second.finished(&[], false);
    assert_eq!(finished.find(SharedStep::System, KEY, "system").await.expect("asked"), None);
    finished.made(KEY, "system", &layers).expect("the same");
    let finished = second.finished(&[], false);
    assert_eq!(finished.find(SharedStep::System, KEY, "system").await.expect("asked"), None);
    let other = second.layer("other");
    let error = finished.made(KEY, "system", &[other]).expect_err("another one");
    assert!(error.to_string().contains("than this machine made of the same inputs"), "{error}");
    let other = first.layer("other");
    let error =
        second.finished(&[&other], false).find(SharedStep::System, KEY, "system").await.expect_err("refused");
    assert!(error.to_string().contains("than the lock file records"), "{error}");
    assert_eq!(error.exit(), Exit::Outside);
}

#[tokio::test]
async fn wrong_layer_is_an_error_and_nothing_of_it_is_kept() {
    let (server, first, layers) = published().await;
    let manifest = server.state().manifests[&format!("layers-{KEY}")].clone();
    let document: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
    let blob = document["layers"][0]["digest"].as_str().expect("a digest").to_owned();
    let good = server.state().blobs[&blob].clone();
    // Other bytes under the digest of the blob.
    let mut bad = good.clone();
    *bad.last_mut().expect("not empty") ^= 1;
    server.state().blobs.insert(blob.clone(), bad);
    let second = machine(&server.host);
    let finished = second.finished(&[&layers[0], &layers[1]], false);
    let error = finished.find(SharedStep::System, KEY, "system").await.expect_err("refused");
    assert!(error.to_string().contains("serves a wrong layer (system)"), "{error}");
    assert_eq!(second.files(), Vec::<String>::new());
    // More bytes than it lists.
    let endless = good.repeat(1 + (2 << 20) / good.len());
    server.state().blobs.insert(blob.clone(), endless);
    let error = finished.find(SharedStep::System, KEY, "system").await.expect_err("refused");
    assert!(error.to_string().contains("found more than"), "{error}");
    assert_eq!(second.files(), Vec::<String>::new());
    server.state().blobs.insert(blob.clone(), good);
    // A blob of its digest with another tar in it: the manifest and the configuration lie.
    let other = first.layer("another");
    let key = "cd".repeat(32);
    let publisher = first.finished(&[], true);
    publisher.made(&key, "system", &[other, layers[1].clone()]).expect("ours");
    publish_layers(&publisher, Machine::X86_64).await.expect("published");
    {
        let mut state = server.state();
        let lying: serde_json::Value =
            serde_json::from_slice(&state.manifests[&format!("layers-{key}")]).expect("JSON");
        let mut forged = document.clone();
        forged["layers"] = lying["layers"].clone();
        state.manifests.insert(format!("layers-{KEY}"), forged.to_string().into_bytes());
    }
    let error = finished.find(SharedStep::System, KEY, "system").await.expect_err("refused");
    assert!(error.to_string().contains("serves a wrong layer (system)"), "{error}");
    assert!(error.hints().iter().any(|hint| hint.contains("[registry] layers")), "{:?}", error.hints());
    assert_eq!(second.files(), Vec::<String>::new());
    assert_eq!(second.warnings(), Vec::<String>::new());
}

#[tokio::test]
async fn registry_that_fails_costs_one_warning_and_is_not_asked_again() {
    for (status, write) in [
        ("401 Unauthorized", false),
        ("401 Unauthorized", true),
        ("403 Forbidden", false),
        ("500 Internal Server Error", true),
        ("429 Too Many Requests", true),
    ] {
        let (server, _, layers) = published().await;
        let second = machine(&server.host);
        let finished = second.finished(&[&layers[0], &layers[1]], write);
        server.answers("GET", usize::MAX, status);
        let asked = server.count("GET");
        for key in [KEY, &"cd".repeat(32)] {
            assert_eq!(
                finished.find(SharedStep::System, key, "system").await.expect("a warning"),
                None,
                "{status}"
            );
        }
        assert_eq!(second.warnings().len(), 1, "{status}: {:?}", second.warnings());
        assert!(server.count("GET") <= asked + 2, "{status}");
        let hint = format!("; log in with `docker login {}`", server.host);
        assert_eq!(
            second.warnings()[0].contains(&hint),
            status.starts_with("40"),
            "{status}: {:?}",
            second.warnings()
        );
        finished.made(KEY, "system", &layers).expect("ours");
        publish_layers(&finished, Machine::X86_64).await.expect("not asked");
        assert_eq!(second.warnings().len(), 1, "{status}");
    }
    let second = machine("127.0.0.1:9");
    let finished = second.finished(&[], true);
    for key in [KEY, &"cd".repeat(32)] {
        assert_eq!(finished.find(SharedStep::System, key, "system").await.expect("a warning"), None);
    }
    let warnings = second.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("127.0.0.1:9"), "{warnings:?}");
    assert!(warnings[0].ends_with("layers are made here instead of taken from there"), "{warnings:?}");
}

#[tokio::test]
async fn repository_that_only_refuses_reading_is_still_written() {
    for may_write in [true, false] {
        let server = TestRegistry::start().await;
        let first = machine(&server.host);
        server.answers("GET /v2/team/layers/manifests/", usize::MAX, "403 Forbidden");
        if !may_write {
            server.answers("POST", usize::MAX, "403 Forbidden");
        }
        let finished = first.finished(&[], true);
        assert_eq!(
            finished.find(SharedStep::System, KEY, "system").await.expect("it may not exist yet"),
            None
        );
        assert_eq!(first.warnings(), Vec::<String>::new());
        finished.made(KEY, "system", &[first.layer("system")]).expect("ours");
        publish_layers(&finished, Machine::X86_64).await.expect("published, or a warning");
        assert_eq!(server.state().manifests.contains_key(&format!("layers-{KEY}")), may_write);
        let warnings = first.warnings();
        assert_eq!(warnings.len(), 1 + usize::from(!may_write), "{warnings:?}");
        assert!(warnings[0].contains("without comparing them"), "{warnings:?}");
        let has_hint = |text: &String| text.contains("cannot put layers") && text.contains("docker login");
        assert!(warnings[1..].iter().all(has_hint), "{warnings:?}");
    }
}

#[tokio::test]
async fn cut_download_is_repeated_and_one_that_stays_cut_costs_a_warning() {
    for (times, is_found) in [(1, true), (usize::MAX, false)] {
        let (server, _, layers) = published().await;
        let manifest = server.state().manifests[&format!("layers-{KEY}")].clone();
        let document: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
        let blob = document["layers"][1]["digest"].as_str().expect("a digest");
        server.wrong(&format!("GET /v2/team/layers/blobs/{blob}"), times, Wrong::NoAnswer);
        let second = machine(&server.host);
        let finished = second.finished(&[&layers[0], &layers[1]], false);
        let found = finished.find(SharedStep::System, KEY, "system").await.expect("found, or a warning");
        assert_eq!(found, is_found.then_some(layers));
        assert_eq!(second.warnings().len(), usize::from(!is_found), "{:?}", second.warnings());
    }
}

#[tokio::test]
async fn layer_that_goes_while_it_is_fetched_is_made_here_and_reported() {
    for status in ["404 Not Found", "500 Internal Server Error", "403 Forbidden"] {
        let (server, _, layers) = published().await;
        let second = machine(&server.host);
        let finished = second.finished(&[&layers[0], &layers[1]], false);
        server.answers("HEAD", usize::MAX, status);
        assert_eq!(
            finished.find(SharedStep::System, KEY, "system").await.expect("made here"),
            None,
            "{status}"
        );
        assert_eq!(finished.find(SharedStep::System, KEY, "system").await.expect("made here"), None);
        let warnings = second.warnings();
        assert_eq!(warnings.len(), 1, "{status}: {warnings:?}");
        assert_eq!(warnings[0].contains("lacks a layer that it lists"), status.starts_with("404"));
    }
}

#[tokio::test]
async fn refused_writing_is_a_warning_and_other_layers_of_a_key_are_an_error() {
    let (server, first, layers) = published().await;
    server.answers("POST", usize::MAX, "403 Forbidden");
    let key = "cd".repeat(32);
    let finished = first.finished(&[], true);
    finished.made(&key, "system", &layers[..1]).expect("ours");
    finished.made(&"ef".repeat(32), "apt", &[first.layer("apt")]).expect("ours");
    publish_layers(&finished, Machine::X86_64).await.expect("a warning");
    let warnings = first.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("cannot put layers into"), "{warnings:?}");
    let error = first.publish(&layers[..1]).await.expect_err("the registry has two layers");
    assert!(error.to_string().contains("than this machine made of the same inputs"), "{error}");
    let state = server.state();
    assert_eq!(state.manifests.len(), 2, "one under its digest and its tag");
}

#[tokio::test]
async fn nothing_is_sent_unless_writing_is_allowed() {
    let server = TestRegistry::start().await;
    let first = machine(&server.host);
    let finished = first.finished(&[], false);
    assert_eq!(finished.find(SharedStep::System, KEY, "system").await.expect("asked"), None);
    finished.made(KEY, "system", &[first.layer("system")]).expect("ours");
    publish_layers(&finished, Machine::X86_64).await.expect("nothing to do");
    let state = server.state();
    assert!(state.requests.iter().all(|(method, _, _)| method == "GET"), "{:?}", state.requests);
    assert!(state.requests.iter().all(|(_, path, _)| path.contains(KEY)), "{:?}", state.requests);
}

#[tokio::test]
async fn token_is_used_for_the_blobs() {
    let (server, _, layers) = published().await;
    server.state().token = Some("wanted".to_owned());
    let second = machine(&server.host);
    let finished = second.finished(&[&layers[0], &layers[1]], false);
    assert_eq!(finished.find(SharedStep::System, KEY, "system").await.expect("found"), Some(layers));
    let state = server.state();
    let blobs = state.requests.iter().filter(|(method, path, _)| method == "GET" && path.contains("/blobs/"));
    assert!(blobs.clone().any(|(_, _, login)| login.is_some()));
}

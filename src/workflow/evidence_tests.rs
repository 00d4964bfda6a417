//! Evidence attached to registries of every kind, by one writer and by two at once.
#![expect(clippy::disallowed_methods, reason = "asks the clock")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use envforge_protocol::Level;
use jiff::Timestamp;

use super::evidence::{attach, subject_of, withdraw};
use super::memory_registry::{Habits, MemoryRegistry, digest_of};
use crate::evidence::{Collection, Entry, EntryOutcome, Signer, SigningKey, legacy_tag, referrers_tag};
use crate::fetch::{FetchSettings, Fetcher};
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::model::versions::Machine;
use crate::registry::Registry;
use crate::report::{Event, Recorder, Reporter};
use crate::settings::image_registry::RegistrySettings;

const P256: &str = include_str!("../../tests/fixtures/evidence/p256.pem");
const OTHER: &str = include_str!("../../tests/fixtures/evidence/p256-other.pem");

fn key(text: &str) -> SigningKey {
    SigningKey::from_pem(&text.to_owned().into(), None).expect("a key of ours")
}

fn entry(gpu: &str) -> Entry {
    Entry {
        gpu: gpu.to_owned(),
        capability: "9.0".parse().expect("one"),
        count: 1,
        nccl: 1,
        driver: "580.95.05".parse().expect("one"),
        level: Level::Full,
        outcome: EntryOutcome::Passed,
        checked: Timestamp::now(),
        agent: String::new(),
        lock: String::new(),
        engine: String::new(),
        versions: BTreeMap::new(),
        passed: BTreeSet::from(["gemm-large".to_owned()]),
        skipped: BTreeMap::new(),
        speeds: BTreeMap::new(),
    }
}

struct Scene {
    memory: MemoryRegistry,
    registry: Registry,
    image: ImageRef,
    id: String,
    reporter: Arc<dyn Reporter>,
    recorder: Arc<Recorder>,
}

impl Scene {
    fn new(habits: Habits) -> Self {
        let memory = MemoryRegistry::start(habits);
        let settings =
            RegistrySettings { insecure: vec![memory.host.clone()], ..RegistrySettings::default() };
        let fetch =
            FetchSettings { attempts: 2, first_pause: Duration::from_millis(1), ..FetchSettings::default() };
        let registry = Registry::new(Fetcher::new(&fetch).expect("a client"), settings);
        let id = digest_of(b"configuration");
        let digest = memory.put_image("2.8", &id);
        let image = format!("{}/team/torch@{digest}", memory.host).parse().expect("a reference");
        let recorder = Arc::new(Recorder::default());
        Self { memory, registry, image, id, reporter: Arc::clone(&recorder) as Arc<dyn Reporter>, recorder }
    }

    async fn attach(&self, key: &SigningKey, gpu: &str) {
        let subject = subject_of(&self.registry, &self.image, (&self.id, &[self.digest()]), Machine::X86_64)
            .await
            .expect("there");
        attach(&self.registry, (&self.image, &subject), key, &[entry(gpu)], &self.reporter)
            .await
            .expect("attached");
    }

    /// The models that stand, by keys that are trusted.
    async fn standing(&self, keys: &[&SigningKey]) -> BTreeSet<String> {
        let signers: Vec<_> = keys.iter().map(|key| Signer { key: key.public(), not_after: None }).collect();
        let digest = self.image.digest().expect("pinned").clone();
        let found = self.registry.evidence(&self.image, &digest).await.expect("read");
        let known = Collection::by(&signers, &found.attestations(), &digest, Timestamp::now());
        known.known.into_iter().filter(|known| known.entry.stands()).map(|known| known.entry.gpu).collect()
    }

    fn digest(&self) -> Digest {
        self.image.digest().expect("pinned").clone()
    }

    fn notes(&self) -> Vec<String> {
        let texts = self.recorder.take().into_iter().filter_map(|event| match event {
            Event::Note { text } => Some(text),
            _ => None,
        });
        texts.collect()
    }
}

fn models(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// With and without the API, deleting and not.
const KINDS: [Habits; 4] = [
    Habits { referrers: false, deletes: false, fixed_tags: false, jitter: 0 },
    Habits { referrers: false, deletes: true, fixed_tags: false, jitter: 0 },
    Habits { referrers: true, deletes: false, fixed_tags: false, jitter: 0 },
    Habits { referrers: true, deletes: true, fixed_tags: false, jitter: 0 },
];

#[tokio::test]
async fn evidence_is_added_and_withdrawn_in_every_kind_of_registry() {
    let key = key(P256);
    for habits in KINDS {
        let scene = Scene::new(habits);
        assert_eq!(scene.standing(&[&key]).await, models(&[]));
        scene.attach(&key, "A").await;
        scene.attach(&key, "B").await;
        assert_eq!(scene.standing(&[&key]).await, models(&["A", "B"]), "{habits:?}");
        let subject = scene.registry.evidence_subject(&scene.image, Machine::X86_64).await.expect("there");
        let is_a = |entry: &Entry| entry.gpu == "A";
        let taken = withdraw(&scene.registry, (&scene.image, &subject), &key, is_a, &scene.reporter).await;
        let (attached, withdrawn) = taken.expect("withdrawn");
        assert_eq!((withdrawn.len(), attached.standing), (1, 1));
        assert_eq!(scene.standing(&[&key]).await, models(&["B"]), "{habits:?}");
        let again = withdraw(&scene.registry, (&scene.image, &subject), &key, is_a, &scene.reporter).await;
        assert!(again.err().expect("nothing left").to_string().contains("nothing to withdraw"));
        // A registry that keeps what it once had says so; the others show cosign the newest alone.
        let keeps = habits.referrers && !habits.deletes;
        let notes = scene.notes();
        let says = notes.iter().any(|note| note.contains("cosign may still read"));
        assert_eq!(says, keeps, "{habits:?}: {notes:#?}");
        let digest = scene.image.digest().expect("pinned").clone();
        let found = scene.registry.evidence(&scene.image, &digest).await.expect("read");
        let own = found
            .attestations()
            .iter()
            .filter(|one| one.envelope.payload_by(&key.public()).is_some())
            .count();
        assert_eq!(own == 4, !keeps, "two documents in two forms: {own}, {habits:?}");
    }
}

#[tokio::test]
async fn tags_that_nobody_may_write_again_leave_the_referrer() {
    let scene = Scene::new(Habits { referrers: true, fixed_tags: true, ..Habits::default() });
    let key = key(P256);
    scene.attach(&key, "A").await;
    scene.attach(&key, "B").await;
    assert_eq!(scene.standing(&[&key]).await, models(&["A", "B"]));
    let notes = scene.notes();
    assert!(notes.iter().any(|note| note.contains("cosign 2 sees no new evidence")), "{notes:#?}");
    // Without the API no place is left: the attach fails and keeps what stood.
    let scene = Scene::new(Habits { fixed_tags: true, ..Habits::default() });
    scene.attach(&key, "A").await;
    let subject = scene.registry.evidence_subject(&scene.image, Machine::X86_64).await.expect("there");
    let error = attach(&scene.registry, (&scene.image, &subject), &key, &[entry("B")], &scene.reporter).await;
    let error = error.err().expect("refused").to_string();
    assert!(error.contains("409") && error.contains("the tag is immutable"), "{error}");
    assert_eq!(scene.standing(&[&key]).await, models(&["A"]));
}

#[tokio::test]
async fn evidence_of_others_stays() {
    let (one, two) = (key(P256), key(OTHER));
    for habits in KINDS {
        let scene = Scene::new(habits);
        // An SBOM of another program.
        let digest = scene.image.digest().expect("pinned").to_string();
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let sbom = format!(
            r#"{{"schemaVersion":2,"mediaType":"{kind}","artifactType":"application/spdx+json","config":{{}},"layers":[],"subject":{{"mediaType":"{kind}","size":1,"digest":"{digest}"}}}}"#
        );
        let sbom = scene.memory.put("sbom", kind, sbom.as_bytes());
        scene.attach(&one, "A").await;
        scene.attach(&two, "B").await;
        scene.attach(&one, "C").await;
        assert_eq!(scene.standing(&[&one]).await, models(&["A", "C"]));
        assert_eq!(scene.standing(&[&two]).await, models(&["B"]));
        assert_eq!(scene.standing(&[&one, &two]).await, models(&["A", "B", "C"]));
        assert!(scene.memory.content().manifests.contains_key(&sbom));
    }
}

/// The registry answers after another time each, so that the requests of two writers come in every order.
#[tokio::test]
async fn two_writers_at_once_lose_nothing() {
    write_at_once(16).await;
}

#[tokio::test]
#[ignore = "nightly: a minute; `two_writers_at_once_lose_nothing` does it sixteen times"]
async fn two_writers_at_once_lose_nothing_a_hundred_times() {
    write_at_once(100).await;
}

async fn write_at_once(rounds: u64) {
    let (one, two) = (key(P256), key(OTHER));
    for round in 0..rounds {
        let habits = Habits { jitter: 50 + round * 7, ..KINDS[usize::try_from(round % 4).expect("small")] };
        let scene = Scene::new(habits);
        let other = if round % 8 < 4 { &one } else { &two };
        tokio::join!(scene.attach(&one, "A"), scene.attach(other, "B"));
        assert_eq!(scene.standing(&[&one, &two]).await, models(&["A", "B"]), "round {round}, {habits:?}");
    }
}

#[tokio::test]
async fn image_that_the_registry_has_under_the_name_is_the_one_that_was_checked() {
    let scene = Scene::new(Habits::default());
    let subject = async |id: &str, known: &[Digest]| {
        subject_of(&scene.registry, &scene.image, (id, known), Machine::X86_64).await
    };
    let digest = scene.digest();
    let known = std::slice::from_ref(&digest);
    let other = digest_of(b"another configuration");
    let error = subject(&other, known).await.expect_err("refused");
    assert!(error.to_string().contains("its registry has another image there"), "{error}");
    assert!(subject(&scene.id, known).await.is_ok());
    // The same configuration under other layers: a digest that this machine neither pulled nor pushed.
    assert!(subject(&scene.id, &[]).await.is_err());
    // A containerd store calls an image by its manifest.
    assert!(subject(digest.as_str(), known).await.is_ok());
}

#[tokio::test]
async fn answer_that_is_no_list_is_not_an_empty_one() {
    let scene = Scene::new(Habits::default());
    let key = key(P256);
    scene.attach(&key, "A").await;
    let digest = scene.digest();
    for tag in [legacy_tag(&digest), referrers_tag(&digest)] {
        let before = scene.memory.content().tags[&tag].clone();
        for body in ["<html>log in</html>", r#"{"errors":[]}"#] {
            scene.memory.put(&tag, "text/html", body.as_bytes());
            let error = scene.registry.evidence(&scene.image, &digest).await.expect_err("not known");
            assert!(error.to_string().contains("is not an image registry"), "{error}");
        }
        scene.memory.content().tags.insert(tag, before);
    }
    assert_eq!(scene.standing(&[&key]).await, models(&["A"]));
}

/// An engine that takes the first entry it understands may run another image than the one whose manifest is signed.
#[tokio::test]
async fn index_that_engines_may_read_differently_is_no_subject() {
    let scene = Scene::new(KINDS[0]);
    let signed = scene.digest();
    let evil = scene.memory.put_image("evil", &digest_of(b"another configuration"));
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let entry = |digest: &str, platform: &str| {
        format!(r#"{{"mediaType":"{kind}","digest":"{digest}","size":1{platform}}}"#)
    };
    let amd64 = r#","platform":{"os":"linux","architecture":"amd64"}"#;
    let of_index = async |first: &str| {
        let entries = [entry(&evil, first), entry(signed.as_str(), amd64)].join(",");
        let text = format!(
            r#"{{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{entries}]}}"#
        );
        let index = scene.memory.put("2.9", "application/vnd.oci.image.index.v1+json", text.as_bytes());
        let image: ImageRef =
            format!("{}/team/torch@{index}", scene.memory.host).parse().expect("a reference");
        let known = [index.parse().expect("a digest")];
        // With a containerd store the image's id is that of the index.
        subject_of(&scene.registry, &image, (&index, &known), Machine::X86_64).await
    };
    for platform in [
        r#","platform":{"os":"linux","architecture":"x86_64"}"#,
        r#","platform":{"os":"Linux","architecture":"AMD64"}"#,
        r#","platform":{"os":"linux","architecture":"amd64","variant":"v3"}"#,
        "",
    ] {
        let error = of_index(platform).await.expect_err("refused").to_string();
        assert!(error.contains("index with 2 images for linux/amd64"), "{platform}: {error}");
    }
    let other = of_index(r#","platform":{"os":"linux","architecture":"arm64"}"#).await.expect("one for each");
    assert_eq!(other.manifest.digest, signed);
}

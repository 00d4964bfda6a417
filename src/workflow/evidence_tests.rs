//! Evidence attached to registries of every kind, by one writer and by two at once.
#![expect(clippy::disallowed_methods, reason = "asks the clock")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use envforge_protocol::Level;
use jiff::{SignedDuration, Timestamp};

use super::evidence::{Attester, subject_of};
use super::memory_registry::{Habits, MemoryRegistry, digest_of};
use crate::evidence::{
    Admission, Collection, Entry, EntryOutcome, RESULT_TYPE, SIGNATURE_TYPE, SUMMARY_TYPE, Signer,
    SigningKey, Wanted, admit, legacy_tag, referrers_tag,
};
use crate::fetch::{FetchSettings, Fetcher};
use crate::model::compat;
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::model::versions::Machine;
use crate::registry::{EvidenceList, NewEvidence, Registry};
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
        nodes: BTreeMap::new(),
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

    fn attester<'a>(&'a self, key: &'a SigningKey) -> Attester<'a> {
        Attester { registry: &self.registry, key, matrix: compat::embedded(), reporter: &self.reporter }
    }

    async fn attach(&self, key: &SigningKey, gpu: &str) {
        self.try_attach(key, gpu).await.expect("attached");
    }

    async fn try_attach(&self, key: &SigningKey, gpu: &str) -> Result<(), String> {
        let known = [self.digest()];
        let subject = subject_of(&self.registry, &self.image, (&self.id, &known), Machine::X86_64);
        let subject = subject.await.map_err(|error| error.to_string())?;
        let entries = [entry(gpu)];
        let attached = self.attester(key).attach((&self.image, &subject), &entries).await;
        attached.map(drop).map_err(|error| error.to_string())
    }

    /// Changes the manifest under a tag; returns its former and its new digest.
    fn rewrite(&self, tag: &str, change: impl Fn(String) -> String) -> (String, String) {
        let (before, (kind, bytes)) = {
            let content = self.memory.content();
            let digest = content.tags[tag].clone();
            (digest.clone(), content.manifests[&digest].clone())
        };
        let text = change(String::from_utf8(bytes).expect("JSON"));
        (before, self.memory.put(tag, &kind, text.as_bytes()))
    }

    /// Changes the entries of the list of referrers that stands under a tag.
    fn rewrite_list(&self, change: impl Fn(&mut Vec<serde_json::Value>)) {
        self.rewrite(&referrers_tag(&self.digest()), |text| {
            let mut list: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            change(list["manifests"].as_array_mut().expect("a list"));
            list.to_string()
        });
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
        let taken = scene.attester(&key).withdraw((&scene.image, &subject), is_a).await;
        let (attached, withdrawn) = taken.expect("withdrawn");
        assert_eq!((withdrawn.len(), attached.standing), (1, 1));
        assert_eq!(scene.standing(&[&key]).await, models(&["B"]), "{habits:?}");
        let again = scene.attester(&key).withdraw((&scene.image, &subject), is_a).await;
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
    let key = key(P256);
    for status in [None, Some(400)] {
        let scene = Scene::new(Habits { referrers: true, fixed_tags: true, ..Habits::default() });
        scene.memory.content().fixed_status = status;
        scene.attach(&key, "A").await;
        scene.attach(&key, "B").await;
        assert_eq!(scene.standing(&[&key]).await, models(&["A", "B"]), "{status:?}");
        let notes = scene.notes();
        assert!(notes.iter().any(|note| note.contains("cosign 2 sees no new evidence")), "{notes:#?}");
    }
    // Without the API no place is left: the attach fails and keeps what stood.
    let scene = Scene::new(Habits { fixed_tags: true, ..Habits::default() });
    scene.attach(&key, "A").await;
    let subject = scene.registry.evidence_subject(&scene.image, Machine::X86_64).await.expect("there");
    let error = scene.attester(&key).attach((&scene.image, &subject), &[entry("B")]).await;
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

/// Puts an index of images, each for a platform or none, and returns it as an image of this scene.
fn put_index(scene: &Scene, tag: &str, images: &[(&str, &str)]) -> ImageRef {
    let entry = |(digest, architecture): &(&str, &str)| {
        let os = if *architecture == "unknown" { "unknown" } else { "linux" };
        serde_json::json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest, "size": 1,
            "platform": { "os": os, "architecture": architecture },
        })
    };
    let kind = "application/vnd.oci.image.index.v1+json";
    let manifests: Vec<_> = images.iter().map(entry).collect();
    let index = serde_json::json!({ "schemaVersion": 2, "mediaType": kind, "manifests": manifests });
    let index = scene.memory.put(tag, kind, index.to_string().as_bytes());
    format!("{}/team/torch@{index}", scene.memory.host).parse().expect("a reference")
}

/// Attaches what a run proved of the image for a machine in an index.
async fn attach_in(scene: &Scene, index: &ImageRef, machine: Machine, gpu: &str) {
    let subject = scene.registry.evidence_subject(index, machine).await.expect("there");
    let key = key(P256);
    scene.attester(&key).attach((index, &subject), &[entry(gpu)]).await.expect("attached");
}

/// The predicate types of a digest by the key of these tests, newest statement alone, and the models that stand for cosign.
async fn said_of(scene: &Scene, image: &ImageRef) -> (BTreeSet<String>, BTreeSet<String>) {
    let digest = image.digest().expect("pinned");
    let found = scene.registry.signed_evidence(image, digest).await.expect("read").attestations();
    let public = key(P256).public();
    let payloads: Vec<serde_json::Value> = found
        .iter()
        .filter_map(|one| one.envelope.payload_by(&public))
        .map(|payload| serde_json::from_slice(payload).expect("JSON"))
        .collect();
    for payload in &payloads {
        assert_eq!(payload["subject"][0]["digest"]["sha256"], digest.as_str()["sha256:".len()..]);
    }
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let kinds = payloads.iter().map(|payload| word(&payload["predicateType"])).collect();
    let entries = payloads.iter().flat_map(|payload| {
        payload["predicate"]["io.envforge.evidence"]["entries"].as_array().cloned().unwrap_or_default()
    });
    let standing = entries.filter(|entry| entry["outcome"] == "passed").map(|entry| word(&entry["gpu"]));
    (kinds, standing.collect())
}

/// cosign and admission controllers ask for the digest of the index that a pod names.
#[tokio::test]
async fn index_of_one_image_says_what_its_image_says() {
    for habits in [KINDS[0], KINDS[3]] {
        let scene = Scene::new(habits);
        let signed = scene.digest();
        let attestation = scene.memory.put_image("attestation", &digest_of(b"an attestation"));
        let index =
            put_index(&scene, "2.9", &[(signed.as_str(), "amd64"), (attestation.as_str(), "unknown")]);
        attach_in(&scene, &index, Machine::X86_64, "A").await;
        let (kinds, standing) = said_of(&scene, &index).await;
        assert_eq!(standing, models(&["A"]), "{habits:?}");
        assert_eq!(kinds, models(&[RESULT_TYPE, SUMMARY_TYPE, SIGNATURE_TYPE]), "{habits:?}");
        // The image's own digest alone is named now: the index follows all the same.
        scene.attach(&key(P256), "B").await;
        assert_eq!(said_of(&scene, &index).await.1, models(&["A", "B"]), "{habits:?}");
        let subject = scene.registry.evidence_subject(&scene.image, Machine::X86_64).await.expect("there");
        let (signer, all) = (key(P256), |_: &Entry| true);
        let taken = scene.attester(&signer).withdraw((&scene.image, &subject), all).await;
        taken.expect("withdrawn");
        let (kinds, standing) = said_of(&scene, &index).await;
        assert_eq!((kinds, standing), (models(&[RESULT_TYPE]), models(&[])), "{habits:?}");
    }
}

/// Of two images one is not enough: who may write tags could list another next to a proven one.
#[tokio::test]
async fn index_stands_as_long_as_each_of_its_images_is_proven() {
    let scene = Scene::new(KINDS[3]);
    let other = scene.memory.put_image("arm", &digest_of(b"another configuration"));
    let index = put_index(&scene, "2.9", &[(scene.digest().as_str(), "amd64"), (other.as_str(), "arm64")]);
    attach_in(&scene, &index, Machine::X86_64, "A").await;
    assert_eq!(said_of(&scene, &index).await, (models(&[]), models(&[])));
    let notes = scene.notes().join("\n");
    assert!(notes.contains("no evidence of the index") && notes.contains(&other), "{notes}");
    attach_in(&scene, &index, Machine::Aarch64, "B").await;
    assert_eq!(said_of(&scene, &index).await.1, models(&["A", "B"]));
    // What is said of the index is not said of its images: `admit` reads those.
    assert_eq!(scene.standing(&[&key(P256)]).await, models(&["A"]));

    let subject = scene.registry.evidence_subject(&index, Machine::Aarch64).await.expect("there");
    let failed = entry("B").withdrawn(Timestamp::now());
    scene.attester(&key(P256)).attach((&index, &subject), &[failed]).await.expect("attached");
    assert_eq!(said_of(&scene, &index).await, (models(&[RESULT_TYPE]), models(&[])));
    assert_eq!(scene.standing(&[&key(P256)]).await, models(&["A"]), "the other image keeps its own");
    // A later run restores it.
    attach_in(&scene, &index, Machine::Aarch64, "B").await;
    assert_eq!(said_of(&scene, &index).await.1, models(&["A", "B"]));
}

/// Who asks for a level of an index gets it of each image: what one of them alone has does not stand.
#[tokio::test]
async fn level_of_an_index_is_one_that_each_image_has() {
    let scene = Scene::new(KINDS[0]);
    let other = scene.memory.put_image("arm", &digest_of(b"another configuration"));
    let index = put_index(&scene, "2.9", &[(scene.digest().as_str(), "amd64"), (other.as_str(), "arm64")]);
    let key = key(P256);
    for (machine, gpu, level) in [(Machine::X86_64, "A", Level::Full), (Machine::Aarch64, "B", Level::Quick)]
    {
        let subject = scene.registry.evidence_subject(&index, machine).await.expect("there");
        let new = [Entry { level, ..entry(gpu) }];
        scene.attester(&key).attach((&index, &subject), &new).await.expect("attached");
    }
    assert_eq!(said_of(&scene, &index).await.1, models(&["B"]));
}

/// An index that lists more images than anybody builds is not asked about one by one.
#[tokio::test]
async fn index_of_any_number_of_images_costs_no_more() {
    let scene = Scene::new(KINDS[3]);
    let strangers: Vec<String> = (0..500_u32).map(|number| digest_of(&number.to_be_bytes())).collect();
    let mut images = vec![(scene.image.digest().expect("pinned").as_str(), "amd64")];
    images.extend(strangers.iter().map(|digest| (digest.as_str(), "riscv64")));
    let index = put_index(&scene, "2.9", &images);
    attach_in(&scene, &index, Machine::X86_64, "A").await;
    let asked = |digest: &str| {
        let content = scene.memory.content();
        let is_it = |request: &&String| {
            request.contains("/referrers/") && request.contains(&digest["sha256:".len()..])
        };
        content.requests.iter().filter(is_it).count()
    };
    let asked = strangers.iter().filter(|digest| asked(digest) > 0).count();
    assert_eq!(asked, 31, "with the proven one 32");
    let notes = scene.notes().join("\n");
    assert!(notes.contains("469 more"), "{notes}");
}

/// Kyverno finds attestations only next to a signature; cosign's own signatures stay what they are.
#[tokio::test]
async fn signature_goes_with_what_stands_and_no_other_is_touched() {
    let scene = Scene::new(KINDS[3]);
    let signer = key(P256);
    let digest = scene.digest();
    // What `cosign sign` with the same key has attached.
    let payload = serde_json::json!({
        "_type": "https://in-toto.io/Statement/v0.1", "predicateType": SIGNATURE_TYPE, "predicate": {},
        "subject": [{ "name": "x", "digest": { "sha256": digest.as_str()["sha256:".len()..] } }],
    });
    let of_cosign = NewEvidence::signed(payload.to_string().into_bytes(), SIGNATURE_TYPE, &signer);
    let subject = scene.registry.evidence_subject(&scene.image, Machine::X86_64).await.expect("there");
    let (nothing, public) = (EvidenceList::default(), signer.public());
    let by = (&public, "2026-11-29T00:00:00Z");
    let new = (&nothing, std::slice::from_ref(&of_cosign));
    scene
        .registry
        .attach_evidence((&scene.image, &subject), new, by, &scene.reporter)
        .await
        .expect("attached");
    let signatures = || {
        let content = scene.memory.content();
        let texts = content.manifests.values().map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned());
        texts.filter(|text| text.contains(SIGNATURE_TYPE) && text.contains("\"subject\"")).count()
    };
    assert_eq!(signatures(), 1);
    scene.attach(&signer, "A").await;
    scene.attach(&signer, "B").await;
    assert_eq!(signatures(), 2, "one of cosign, and the newest of this program");
    // No layer of the `.att` tag: cosign 2 keeps signatures elsewhere.
    let tag = {
        let content = scene.memory.content();
        let manifest = &content.manifests[&content.tags[&legacy_tag(&digest)]];
        String::from_utf8_lossy(&manifest.1).into_owned()
    };
    assert!(tag.contains(SUMMARY_TYPE) && !tag.contains(SIGNATURE_TYPE), "{tag}");
    let taken = scene.attester(&signer).withdraw((&scene.image, &subject), |_| true).await;
    taken.expect("withdrawn");
    assert_eq!(signatures(), 1, "a failed image has no signature of this program");
}

/// What Docker 20.10 pushes: verifiers compare the subject's media type with the image's.
#[tokio::test]
async fn image_of_dockers_own_type_is_a_subject_of_that_type() {
    let scene = Scene::new(KINDS[0]);
    let kind = "application/vnd.docker.distribution.manifest.v2+json";
    let text = format!(
        r#"{{"schemaVersion":2,"mediaType":"{kind}","config":{{"mediaType":"application/vnd.docker.container.image.v1+json","digest":"{}","size":2}},"layers":[]}}"#,
        scene.id
    );
    let digest = scene.memory.put("older", kind, text.as_bytes());
    let image: ImageRef = format!("{}/team/torch@{digest}", scene.memory.host).parse().expect("a reference");
    let subject = scene.registry.evidence_subject(&image, Machine::X86_64).await.expect("there");
    let signer = key(P256);
    scene.attester(&signer).attach((&image, &subject), &[entry("A")]).await.expect("attached");
    assert_eq!(said_of(&scene, &image).await.1, models(&["A"]));
    let content = scene.memory.content();
    let manifests = content
        .manifests
        .values()
        .filter_map(|(_, bytes)| serde_json::from_slice::<serde_json::Value>(bytes).ok());
    let kinds: BTreeSet<String> =
        manifests.filter_map(|one| one["subject"]["mediaType"].as_str().map(str::to_owned)).collect();
    assert_eq!(kinds, models(&[kind]));
}

/// What strangers may add: more documents than are read, and larger ones. The rest counts, and a writer does not go on without them.
#[tokio::test]
async fn documents_beyond_the_bounds_are_named_and_nothing_is_attached() {
    let key = key(P256);
    let bundle = "application/vnd.dev.sigstore.bundle.v0.3+json";
    let manifest = "application/vnd.oci.image.manifest.v1+json";
    let entry = |digest: &str| serde_json::json!({ "mediaType": manifest, "size": 1, "digest": digest, "artifactType": bundle });
    for (is_many, says) in
        [(true, "referrers, 1000 read"), (false, "a document of 5242880 bytes, limit 4194304")]
    {
        let scene = Scene::new(KINDS[0]);
        scene.attach(&key, "A").await;
        let blob = digest_of(b"a large one");
        let large = format!(
            r#"{{"schemaVersion":2,"mediaType":"{manifest}","config":{{}},"layers":[{{"mediaType":"{bundle}","size":5242880,"digest":"{blob}"}}]}}"#
        );
        let large = scene.memory.put("large", manifest, large.as_bytes());
        scene.rewrite_list(|list| {
            if is_many {
                list.extend((0..1000_u32).map(|number| entry(&digest_of(&number.to_be_bytes()))));
            } else {
                list.push(entry(&large));
            }
        });
        let found = scene.registry.evidence(&scene.image, &scene.digest()).await.expect("read");
        assert!(matches!(found.skipped.as_slice(), [one] if one.ends_with(says)), "{:?}", found.skipped);
        assert_eq!(scene.standing(&[&key]).await, models(&["A"]));
        let error = scene.try_attach(&key, "B").await.expect_err("refused");
        assert!(error.contains("its evidence cannot be read") && error.contains(says), "{error}");
    }
}

/// Whatever the step at which the registry is gone: what stood stands, and the next call adds what is missing.
#[tokio::test]
async fn connection_that_drops_while_attaching_loses_nothing() {
    for habits in [KINDS[0], KINDS[3]] {
        // Every third step, all at once: a writer waits for others before it is done.
        let answers = futures_util::future::join_all((0..40).map(async |third| {
            let step = 3 * third;
            let scene = Scene::new(habits);
            let key = key(P256);
            scene.attach(&key, "A").await;
            scene.memory.content().cut = Some(step);
            let answer = scene.try_attach(&key, "B").await;
            scene.memory.content().cut = None;
            let standing = scene.standing(&[&key]).await;
            assert!(standing.contains("A"), "step {step}, {habits:?}: {standing:?}, {answer:?}");
            scene.attach(&key, "B").await;
            assert_eq!(scene.standing(&[&key]).await, models(&["A", "B"]), "step {step}, {habits:?}");
            answer.is_ok()
        }))
        .await;
        let failed = answers.iter().filter(|is_done| !**is_done).count();
        assert!(failed > 5 && failed < answers.len(), "{failed} of {} were cut, {habits:?}", answers.len());
    }
}

#[tokio::test]
async fn referrers_and_layers_that_are_there_twice_count_once() {
    let scene = Scene::new(KINDS[0]);
    let key = key(P256);
    scene.attach(&key, "A").await;
    scene.rewrite_list(|list| {
        let again = list.clone();
        list.extend(again);
    });
    scene.rewrite(&legacy_tag(&scene.digest()), |text| {
        let mut manifest: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let layers = manifest["layers"].as_array_mut().expect("layers");
        let again = layers.clone();
        layers.extend(again);
        manifest.to_string()
    });
    let digest = scene.digest();
    let found = scene.registry.evidence(&scene.image, &digest).await.expect("read").attestations();
    assert_eq!(found.len(), 8, "two documents in two forms, each twice");
    let signer = Signer { key: key.public(), not_after: None };
    let known = Collection::by(&[signer], &found, &digest, Timestamp::now());
    assert_eq!((known.known.len(), known.ignored.len()), (1, 0), "{:?}", known.ignored);
    // The next statement takes the place of all of them.
    scene.attach(&key, "B").await;
    assert_eq!(scene.standing(&[&key]).await, models(&["A", "B"]));
    let found = scene.registry.evidence(&scene.image, &digest).await.expect("read");
    assert_eq!(found.found.len(), 4, "{:#?}", found.found);
}

/// Who can write to the registry can bring back what was withdrawn: its age ends that.
#[tokio::test]
async fn older_list_that_is_put_back_counts_until_its_age_ends() {
    let key = key(P256);
    for habits in KINDS {
        let scene = Scene::new(habits);
        scene.attach(&key, "NVIDIA H200").await;
        let (manifests, tags) = {
            let content = scene.memory.content();
            (content.manifests.clone(), content.tags.clone())
        };
        let subject = scene.registry.evidence_subject(&scene.image, Machine::X86_64).await.expect("there");
        let taken = scene.attester(&key).withdraw((&scene.image, &subject), |_| true).await;
        assert!(taken.is_ok() && scene.standing(&[&key]).await.is_empty(), "{habits:?}");
        // Next to the newer one it changes nothing.
        scene.memory.content().manifests.extend(manifests.clone());
        assert!(scene.standing(&[&key]).await.is_empty(), "{habits:?}");
        {
            let mut content = scene.memory.content();
            (content.manifests, content.tags) = (manifests, tags);
        }
        let digest = scene.digest();
        let found = scene.registry.evidence(&scene.image, &digest).await.expect("read").attestations();
        let answer = |days: i64| {
            let day = SignedDuration::from_hours(24);
            let now = Timestamp::now() + SignedDuration::from_hours(24 * days);
            let signer = Signer { key: key.public(), not_after: None };
            let known = Collection::by(&[signer], &found, &digest, now);
            let wanted = Wanted {
                gpus: Vec::new(),
                count: 1,
                driver: None,
                exact_driver: false,
                level: Level::Full,
                max_age: day * 30,
                agents: BTreeSet::new(),
            };
            admit(&known, &wanted, compat::embedded(), now)
        };
        assert!(matches!(answer(29), Admission::Admitted(_)), "nothing can tell, {habits:?}");
        let Admission::Refused(reasons) = answer(32) else { panic!("admitted, {habits:?}") };
        assert!(reasons.join("\n").contains("32 days ago; limit 30"), "{reasons:#?}");
    }
}

/// A signed statement in a document of another type is none: readers that look at types would judge otherwise.
#[tokio::test]
async fn statement_in_a_document_of_another_type_counts_for_nothing() {
    let scene = Scene::new(KINDS[0]);
    let key = key(P256);
    scene.attach(&key, "A").await;
    let other = "application/octet-stream";
    scene.rewrite(&legacy_tag(&scene.digest()), |text| {
        text.replace("application/vnd.dsse.envelope.v1+json", other)
    });
    assert_eq!(scene.standing(&[&key]).await, models(&["A"]), "the bundle is still there");
    scene.rewrite_list(|list| {
        for entry in list {
            let digest = entry["digest"].as_str().expect("one").to_owned();
            scene.memory.content().tags.insert("one".to_owned(), digest);
            let layer = r#""mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json""#;
            let change = |text: String| {
                assert!(text.contains(layer), "{text}");
                text.replace(layer, &format!(r#""mediaType":"{other}""#))
            };
            entry["digest"] = scene.rewrite("one", change).1.into();
        }
    });
    assert!(scene.standing(&[&key]).await.is_empty());
}

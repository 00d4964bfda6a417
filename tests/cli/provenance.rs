//! What an image was built from, signed: by a trusted key it makes a pulled digest ours.

use crate::assert_message;
use crate::evidence::{Place, assert_answer, with_driver, write_key};
use crate::memory_registry::Habits;
use crate::verify::{H200, SPEC, Scene, lock, report};

fn passed() -> String {
    with_driver(&report(&lock(), H200, true), "580.95.05")
}

/// A machine whose engine pulled the image, and which never heard of its lock.
fn puller(place: &Place) -> Scene {
    let scene = place.tester(passed());
    for folder in ["state/built-images", "state/locks-of-specs"] {
        std::fs::remove_dir_all(scene.program.path(folder)).expect("ours");
    }
    let key = include_str!("../fixtures/evidence/p256.pub");
    write_key(&scene.program, "lab.pub", key, 0o644);
    scene
}

fn configure(scene: &Scene, text: &str) {
    let folder = scene.program.path("home/.config/envforge");
    std::fs::create_dir_all(&folder).expect("ours");
    std::fs::write(folder.join("config.toml"), text).expect("ours");
}

/// `[trust]` of that key.
fn trusting(scene: &Scene, more: &str) -> String {
    format!("[trust]\nkeys = [{{ file = '{}'{more} }}]\n", scene.program.path("lab.pub").display())
}

/// The builder pushes the image with its provenance.
fn pushed(place: &Place) -> Scene {
    let builder = place.tester(passed());
    // What the builder recorded is in its lock, too.
    let mut recorded = lock();
    recorded.records.content = Some("c".repeat(64));
    let file = builder.program.path("state/locks-of-specs/one.lock");
    std::fs::write(file, recorded.to_toml()).expect("ours");
    assert_answer(&builder.verify(&[]), 0, &["passed"]);
    let target = format!("{}/team/torch:2.8", place.registry.host);
    let run = builder.program.run(&["push", SPEC, &target, "--attest", "--key", "key.pem"]);
    assert_answer(&run, 0, &[&place.image.replace('@', ":2.8@")]);
    assert!(run.stderr.contains(&format!("provenance attached: {}", place.image)), "{}", run.stderr);
    assert!(!format!("{run:?}").contains("PRIVATE"), "{run:?}");
    builder
}

#[test]
fn image_with_provenance_by_a_trusted_key_is_ours_on_another_machine() {
    for referrers in [false, true] {
        let place = Place::new(Habits { referrers, ..Habits::default() });
        drop(pushed(&place));
        let other = puller(&place);
        configure(&other, &trusting(&other, ""));
        let attest = ["verify", &place.image, "--attest", "--key", "key.pem"];
        let run = other.program.run(&attest);
        assert_answer(&run, 0, &["passed", &format!("attested: {} by key ", place.image)]);
        assert!(run.stderr.contains(&format!("built from lock {}", &lock().hash()[..12])), "{}", run.stderr);
        assert_eq!(other.requests.tags(), [lock().stack.name, "team/torch:1".to_owned()]);
        // Its own agent, as root for the files, held to the lock that came with the signature.
        assert!(other.requests.files().contains(&format!("version={}", lock().stack.version)));
        // What this machine saw itself stays, without a registry and a key.
        configure(&other, "");
        place.registry.content().broken = Some(503);
        let run = other.program.run(&["verify", "--last", &place.image]);
        assert!(run.stdout.contains("verified") || run.stderr.contains("verified"), "{run:?}");
    }
}

/// Each of these machines checks the image as a stranger's: in a sandbox, without a tag.
#[test]
fn without_a_key_for_it_provenance_changes_nothing() {
    let place = Place::new(Habits::default());
    drop(pushed(&place));
    let strangers = |config: &dyn Fn(&Scene) -> String, says: &str| {
        let other = puller(&place);
        let text = config(&other);
        configure(&other, &text);
        let run = other.program.run(&["verify", &place.image, "--attest", "--key", "key.pem"]);
        assert_message(&run, 1, &["the image's own word"]);
        assert!(run.stderr.contains(says), "{says}: {}", run.stderr);
        assert!(other.requests.tags().is_empty(), "{says}");
        assert!(!other.program.path("state/signed-images").exists(), "{says}");
    };
    strangers(&|_| String::new(), "lock file of the image not found");
    strangers(&|scene| trusting(scene, ", for = ['tests']"), "lock file of the image not found");
    strangers(&|scene| trusting(scene, ", not-after = '2020-01-01'"), "after the key's `not-after`");
    strangers(
        &|scene| {
            let key = include_str!("../fixtures/evidence/p256-other.pub");
            write_key(&scene.program, "lab.pub", key, 0o644);
            trusting(scene, "")
        },
        "lock file of the image not found",
    );
    // A registry that does not answer: not known, and said so.
    place.registry.content().broken = Some(503);
    strangers(&|scene| trusting(scene, ""), "is not known");
}

/// Provenance is about one digest: copied to another image it says nothing.
#[test]
fn provenance_of_another_image_is_not_believed() {
    let place = Place::new(Habits::default());
    drop(pushed(&place));
    let (digest, other) = {
        let digest = place.image.split_once('@').expect("pinned").1.replace(':', "-");
        // Another manifest with the same configuration: other layers, say.
        let config = &place.id;
        let text = format!(
            r#"{{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"{config}","size":2}},"layers":[],"annotations":{{"a":"b"}}}}"#
        );
        let other =
            place.registry.put("other", "application/vnd.oci.image.manifest.v1+json", text.as_bytes());
        (digest, other)
    };
    {
        let mut content = place.registry.content();
        for suffix in ["", ".att"] {
            if let Some(to) = content.tags.get(&format!("{digest}{suffix}")).cloned() {
                content.tags.insert(format!("{}{suffix}", other.replace(':', "-")), to);
            }
        }
    }
    let image = format!("{}/team/torch@{other}", place.registry.host);
    let copied = Place { registry: place.registry.clone(), image, id: place.id.clone() };
    let machine = puller(&copied);
    configure(&machine, &trusting(&machine, ""));
    let run = machine.program.run(&["verify", &copied.image, "--attest", "--key", "key.pem"]);
    assert_message(&run, 1, &["the image's own word"]);
    assert!(machine.requests.tags().is_empty(), "tagged");
}

#[test]
fn only_what_is_ours_gets_provenance() {
    let place = Place::new(Habits::default());
    let scene = puller(&place);
    let target = format!("{}/team/torch:2.8", place.registry.host);
    let push = |more: &[&str]| scene.program.run(&[&["push", &place.image, &target], more].concat());
    assert_message(&push(&["--attest", "--key", "key.pem"]), 1, &["no provenance of", "did not build it"]);
    // Nor does the word of another key become this one's.
    drop(pushed(&place));
    configure(&scene, &trusting(&scene, ""));
    assert_answer(&scene.program.run(&["verify", &place.image]), 0, &["passed"]);
    assert_message(&push(&["--attest", "--key", "key.pem"]), 1, &["no provenance of", "did not build it"]);
    assert_message(&push(&["--attest"]), 2, &["no key to sign with"]);
    assert_message(&push(&["--key", "key.pem"]), 2, &["--attest"]);
    assert!(!scene.requests.contain("/push"), "it was pushed");
}

/// A report of before the key was trusted is the image's own word, and stays that.
#[test]
fn sandbox_run_becomes_no_proof_when_a_key_is_trusted_later() {
    let place = Place::new(Habits::default());
    drop(pushed(&place));
    let other = puller(&place);
    assert_answer(&other.program.run(&["verify", &place.image]), 0, &["passed"]);
    configure(&other, &trusting(&other, ""));
    assert_answer(&other.program.run(&["verify", &place.image, "--level", "quick"]), 0, &["passed"]);
    assert!(other.requests.tags().is_empty(), "tagged by what ran in the sandbox");
    let policy =
        "[policy]\nrequire-evidence = { level = 'full', gpu = 'any' }\n".to_owned() + &trusting(&other, "");
    configure(&other, &policy);
    let run = other.program.run(&["shell", &place.image, "--", "true"]);
    assert!(run.code == 125 && run.stderr.contains("is not proven"), "{run:?}");
}

/// What others recorded of their build decides nothing here: a content digest that came with a lock would make images ours.
#[test]
fn records_of_a_signed_lock_are_not_kept() {
    let place = Place::new(Habits::default());
    drop(pushed(&place));
    let other = puller(&place);
    configure(&other, &trusting(&other, ""));
    assert_answer(&other.program.run(&["verify", &place.image]), 0, &["passed"]);
    let kept = other.program.path(format!("state/locks-of-images/{}.lock", lock().hash()));
    let text = std::fs::read_to_string(kept).expect("kept");
    assert!(!text.contains(&"c".repeat(64)), "{text}");
}

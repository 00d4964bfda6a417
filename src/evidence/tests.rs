//! Keys, envelopes, statements, what counts of them, and forgeries.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use envforge_protocol::Level;
use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;

use super::*;
use crate::model::compat;
use crate::model::image_digest::Digest;

const H200: &str = "NVIDIA H200";
const A100: &str = "NVIDIA A100-SXM4-80GB";
const DAY: SignedDuration = SignedDuration::from_hours(24);

fn now() -> Timestamp {
    "2026-11-28T12:00:00Z".parse().expect("a time")
}

fn digest(of: &str) -> Digest {
    Digest::of(of.as_bytes())
}

fn entry(gpu: &str, driver: &str, level: Level) -> Entry {
    let capability = if gpu == A100 { "8.0" } else { "9.0" };
    Entry {
        gpu: gpu.to_owned(),
        capability: capability.parse().expect("a capability"),
        count: 1,
        nccl: 1,
        driver: driver.parse().expect("a driver"),
        level,
        outcome: EntryOutcome::Passed,
        checked: now() - DAY,
        agent: "a".repeat(64),
        lock: "b".repeat(64),
        engine: "Docker 28.5.2".to_owned(),
        versions: BTreeMap::from([("torch".to_owned(), "2.8.0".to_owned())]),
        passed: BTreeSet::from(["gemm-large".to_owned()]),
        skipped: BTreeMap::new(),
        speeds: BTreeMap::new(),
        nodes: BTreeMap::new(),
    }
}

fn statement(number: u64, entries: &[Entry]) -> Statement {
    Statement {
        name: "reg.test/team/torch".to_owned(),
        digests: vec![digest("image")],
        indexes: Vec::new(),
        issued: now() - SignedDuration::from_hours(2),
        number,
        run: format!("run-{number}"),
        matrix: "2026-11-28".to_owned(),
        program: "0.2.0".to_owned(),
        entries: entries.to_vec(),
    }
}

fn signed(statement: &Statement, key: &SigningKey) -> Attestation {
    Attestation {
        envelope: Envelope::sign(statement.results(), key),
        signer: Some(key.public().fingerprint()),
    }
}

fn signer(key: &SigningKey) -> Signer {
    Signer { key: key.public(), not_after: None }
}

fn read(found: &[Attestation], key: &SigningKey) -> Collection {
    Collection::by(&[signer(key)], found, &digest("image"), now())
}

fn wanted() -> Wanted {
    Wanted {
        gpus: vec![WantedGpu::Model(H200.to_owned())],
        count: 1,
        driver: Some("580.95.05".parse().expect("a driver")),
        exact_driver: false,
        level: Level::Quick,
        max_age: DAY * 90,
        agents: BTreeSet::new(),
    }
}

/// Asserts that evidence is refused with these words.
#[track_caller]
fn assert_refused(evidence: &Collection, wanted: &Wanted, says: &str) {
    match admit(evidence, wanted, compat::embedded(), now()) {
        Admission::Refused(reasons) => {
            assert!(reasons.join("\n").contains(says), "`{says}` not in {reasons:#?}");
        }
        Admission::Admitted(proofs) => panic!("admitted: {proofs:#?}"),
    }
}

#[track_caller]
fn assert_admitted(evidence: &Collection, wanted: &Wanted) -> Vec<String> {
    match admit(evidence, wanted, compat::embedded(), now()) {
        Admission::Admitted(proofs) => proofs.into_iter().flat_map(|(_, notes)| notes).collect(),
        Admission::Refused(reasons) => panic!("refused: {reasons:#?}"),
    }
}

/// A failed image has no signature, and a copy of an older one is not brought back.
#[test]
fn signature_is_of_what_stands_and_goes_with_its_statement() {
    let key = SigningKey::new();
    let good = statement(1, &[entry(H200, "580.95.05", Level::Full)]);
    let payload = good.signature().expect("it stands");
    assert_eq!(signature_issued(&payload), Some(good.issued));
    let failed = statement(2, &[entry(H200, "580.95.05", Level::Full).withdrawn(now())]);
    assert!(failed.signature().is_none() && failed.summary().is_none());
    // One that cosign made has no date of ours, and is left alone; results are no signature.
    let bare = String::from_utf8(payload.clone()).expect("JSON").replace("io.envforge.evidence", "other");
    assert_eq!((signature_issued(bare.as_bytes()), signature_issued(&good.results())), (None, None));

    let signature =
        Attestation { envelope: Envelope::sign(payload, &key), signer: Some(key.public().fingerprint()) };
    let later = Statement { issued: good.issued + DAY, ..failed };
    let of = |results: &Statement| superseded(&[signature.clone(), signed(results, &key)]);
    assert!(of(&good).is_empty(), "its own results");
    assert_eq!(of(&later), std::slice::from_ref(&signature.envelope));
}

#[test]
fn statement_is_read_as_it_was_signed() {
    let key = SigningKey::new();
    let mut written =
        statement(7, &[entry(H200, "580.95.05", Level::Full), entry(A100, "570.1", Level::Perf)]);
    written.indexes = vec![digest("index")];
    written.entries[0].nodes =
        BTreeMap::from([("node7".to_owned(), BTreeSet::from(["GPU-5c1e".to_owned()]))]);
    let envelope = Envelope::parse(&Envelope::sign(written.results(), &key).to_json()).expect("an envelope");
    let payload = envelope.payload_by(&key.public()).expect("signed by it");
    assert_eq!(Statement::parse(payload).as_ref(), Ok(&written));
    assert_eq!(envelope.payload_by(&SigningKey::new().public()), None);
    let bundle =
        Bundle::attestation(&Bundle::blob(&envelope, &key.public().fingerprint())).expect("a bundle");
    assert_eq!(bundle, Attestation { envelope, signer: Some(key.public().fingerprint()) });
}

#[test]
fn summary_lists_what_stands_and_only_that() {
    let failed = entry(A100, "570.1", Level::Full).withdrawn(now());
    let summary = |entries: &[Entry]| {
        let payload = statement(1, entries).summary()?;
        let value: serde_json::Value = serde_json::from_slice(&payload).expect("JSON");
        Some(value["predicate"]["properties"].to_string())
    };
    let text = summary(&[entry(H200, "580.95.05", Level::Full), failed.clone()]).expect("something stands");
    assert!(text.contains("ENVFORGE_GPU_FULL_SM90_R580") && !text.contains("SM80"), "{text}");
    assert_eq!(summary(std::slice::from_ref(&failed)), None);
    let result = |entries: &[Entry]| -> serde_json::Value {
        serde_json::from_slice::<serde_json::Value>(&statement(1, entries).results()).expect("JSON")["predicate"]["result"].clone()
    };
    assert_eq!(result(std::slice::from_ref(&failed)), "FAILED");
    assert_eq!(result(&[failed, entry(H200, "580.1", Level::Quick)]), "PASSED");
}

#[test]
fn admits_what_was_proven_and_says_on_which_branch() {
    let key = SigningKey::new();
    let evidence = read(&[signed(&statement(1, &[entry(H200, "570.124.06", Level::Full)]), &key)], &key);
    assert_eq!(assert_admitted(&evidence, &wanted()), ["proven on R570; the driver is 580.95.05"]);
    let older = Wanted { driver: Some("535.104.05".parse().expect("a driver")), ..wanted() };
    assert_refused(&evidence, &older, "proven on R570, newer than the driver 535.104.05");
    let exact = Wanted { exact_driver: true, ..wanted() };
    assert_refused(&evidence, &exact, "proven with driver 570.124.06, not 580.95.05");
    assert_admitted(&evidence, &Wanted { driver: None, gpus: Vec::new(), ..wanted() });
    for (gpu, says) in [
        (WantedGpu::Model(A100.to_owned()), "NVIDIA A100-SXM4-80GB: evidence only for NVIDIA H200"),
        (WantedGpu::Model("NVIDIA H100 80GB HBM3".to_owned()), "evidence only for NVIDIA H200"),
        (WantedGpu::Capability("8.0".parse().expect("one")), "evidence only for NVIDIA H200"),
    ] {
        assert_refused(&evidence, &Wanted { gpus: vec![gpu], ..wanted() }, says);
    }
    assert_admitted(
        &evidence,
        &Wanted { gpus: vec![WantedGpu::Capability("9.0".parse().expect("one"))], ..wanted() },
    );
    assert_refused(&evidence, &Wanted { level: Level::Perf, ..wanted() }, "level full is below perf");
    let agents = |list: &[&str]| list.iter().map(|agent| (*agent).to_owned()).collect::<BTreeSet<_>>();
    let of = evidence.known[0].entry.agent.clone();
    assert_admitted(&evidence, &Wanted { agents: agents(&["0", &of]), ..wanted() });
    let other = Wanted { agents: agents(&["0"]), ..wanted() };
    assert_refused(&evidence, &other, "that `[policy] agents` does not list");
    assert_refused(&evidence, &Wanted { max_age: SignedDuration::from_hours(23), ..wanted() }, "1 days ago");
    let both = Wanted {
        gpus: vec![WantedGpu::Model(H200.to_owned()), WantedGpu::Model(A100.to_owned())],
        ..wanted()
    };
    assert_refused(&evidence, &both, "NVIDIA A100");
}

#[test]
fn several_gpus_need_nccl_over_several() {
    let key = SigningKey::new();
    let of = |nccl: u32, gpu: &str| {
        let entry = Entry { nccl, count: 8, ..entry(gpu, "580.1", Level::Full) };
        read(&[signed(&statement(1, &[entry]), &key)], &key)
    };
    let eight = Wanted { count: 8, ..wanted() };
    assert_admitted(&of(8, H200), &eight);
    assert_refused(&of(1, H200), &eight, "8 GPUs need NCCL on at least two; it ran on one GPU");
    let slices = Wanted { gpus: vec![WantedGpu::Model("NVIDIA H200 MIG 1g.18gb".to_owned())], ..eight };
    assert_refused(&of(0, "NVIDIA H200 MIG 1g.18gb"), &slices, "on a MIG slice");
    // A slice is another model than the whole GPU.
    let slice = "NVIDIA H200 MIG 1g.18gb";
    let of_slice = Wanted { gpus: vec![WantedGpu::Model(slice.to_owned())], ..wanted() };
    assert_admitted(&of(0, slice), &of_slice);
    assert_refused(&of(0, slice), &wanted(), "evidence only for NVIDIA H200 MIG 1g.18gb");
    assert_refused(&of(1, H200), &of_slice, "evidence only for NVIDIA H200");
}

/// Forgeries of everybody who can write to the registry, and of a key's holder who lies about time.
#[test]
fn forgeries_are_refused() {
    let (key, other) = (SigningKey::new(), SigningKey::new());
    let good = statement(1, &[entry(H200, "580.95.05", Level::Full)]);
    let evidence = |attestation: Attestation| read(&[attestation], &key);
    assert_admitted(&evidence(signed(&good, &key)), &wanted());

    let refused = |what: &str, attestation: Attestation, says: &str| {
        let read = evidence(attestation);
        match admit(&read, &wanted(), compat::embedded(), now()) {
            Admission::Refused(reasons) => assert!(reasons.join("\n").contains(says), "{what}: {reasons:#?}"),
            Admission::Admitted(proofs) => panic!("{what}: admitted {proofs:#?}"),
        }
    };
    refused("another key", signed(&good, &other), "1 by keys that are not trusted here");
    let image = Statement { digests: vec![digest("another image")], ..good.clone() };
    refused("replay on another image", signed(&image, &key), "about another image");
    let future = Statement { issued: now() + DAY, ..good.clone() };
    refused("a clock a day off", signed(&future, &key), "and this machine's clock says");
    let mut later = good.clone();
    later.entries[0].checked = now() + DAY;
    refused("checks of tomorrow", signed(&later, &key), "and this machine's clock says");
    let mut old = good.clone();
    old.entries[0].checked = now() - DAY * 91;
    refused("expired", signed(&old, &key), "91 days ago; limit 90");
    let static_only = statement(1, &[entry(H200, "580.95.05", Level::Static)]);
    refused("a static run", signed(&static_only, &key), "level static is below quick");

    // What is inside an envelope, changed without the key.
    let json = signed(&good, &key).envelope.to_json();
    let value: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let altered = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut value = value.clone();
        change(&mut value);
        Envelope::parse(value.to_string().as_bytes()).map(|envelope| Attestation { envelope, signer: None })
    };
    let payload = String::from_utf8(good.results()).expect("UTF-8");
    for (what, text) in [
        ("a higher level", payload.replace("\"full\"", "\"perf\"")),
        ("another GPU", payload.replace(H200, A100)),
        (
            "another digest",
            payload.replace(digest("image").as_str().trim_start_matches("sha256:"), &"0".repeat(64)),
        ),
    ] {
        assert_ne!(text, payload, "{what}");
        let attestation =
            altered(&|value| value["payload"] = STANDARD.encode(&text).into()).expect("an envelope");
        refused(what, attestation, "by keys that are not trusted here");
    }
    let unsigned = altered(&|value| value["signatures"] = serde_json::json!([])).expect("an envelope");
    refused("unsigned", unsigned, "by keys that are not trusted here");
    let cut = altered(&|value| {
        let text = value["signatures"][0]["sig"].as_str().expect("one").to_owned();
        value["signatures"][0]["sig"] = text[..text.len() / 2 / 4 * 4].into();
    });
    refused("a truncated signature", cut.expect("an envelope"), "by keys that are not trusted here");
    // The signature covers the type: an envelope of another one is none.
    let kind = altered(&|value| value["payloadType"] = "application/json".into());
    assert_eq!(kind.expect_err("refused"), EnvelopeError::Kind("application/json".to_owned()));
    assert!(altered(&|value| value["payload"] = "e30_".into()).is_err(), "URL-safe base64");
    for cut in [&json[..json.len() / 2], b"", b"[]", b"null"] {
        assert!(Envelope::parse(cut).is_err());
    }
    // A key signs other things, too: they say nothing here.
    for payload in [
        r#"{"_type":"https://in-toto.io/Statement/v1","subject":[],"predicateType":"https://slsa.dev/provenance/v1","predicate":{}}"#.to_owned(),
        payload.replace(RESULT_TYPE, "https://example.com/other"),
        "{}".to_owned(),
        "not JSON".to_owned(),
    ] {
        let envelope = Envelope::sign(payload.into_bytes(), &key);
        assert!(evidence(Attestation { envelope, signer: None }).known.is_empty());
    }
    let newer = Envelope::sign(payload.replace("\"schema\":1", "\"schema\":2").into_bytes(), &key);
    refused("a newer schema", Attestation { envelope: newer, signer: None }, "schema 2 of a newer envforge");
}

#[test]
fn key_past_its_date_counts_for_what_it_signed_before() {
    let key = SigningKey::new();
    let found = [signed(&statement(1, &[entry(H200, "580.95.05", Level::Full)]), &key)];
    let until = |end: Timestamp| {
        let signer = Signer { not_after: Some(end), ..signer(&key) };
        Collection::by(&[signer], &found, &digest("image"), now())
    };
    assert_admitted(&until(now()), &wanted());
    assert_refused(&until(now() - DAY), &wanted(), "after the key's `not-after`");
}

/// The clock of the machine that asks, or of the one that signed.
#[test]
fn clock_that_is_a_year_off_admits_nothing() {
    let key = SigningKey::new();
    let year = DAY * 365;
    let good = statement(1, &[entry(H200, "580.95.05", Level::Full)]);
    let by_clock = |by: SignedDuration| {
        let mut moved = Statement { issued: good.issued + by, ..good.clone() };
        moved.entries[0].checked = good.entries[0].checked + by;
        moved
    };
    for (signs, asks, says) in [
        (SignedDuration::ZERO, -year, "and this machine's clock says 2025-11-28"),
        (SignedDuration::ZERO, year, "366 days ago; limit 90"),
        (-year, SignedDuration::ZERO, "366 days ago; limit 90"),
        (year, SignedDuration::ZERO, "and this machine's clock says 2026-11-28"),
    ] {
        let (found, clock) = ([signed(&by_clock(signs), &key)], now() + asks);
        let read = Collection::by(&[signer(&key)], &found, &digest("image"), clock);
        match admit(&read, &wanted(), compat::embedded(), clock) {
            Admission::Refused(reasons) => assert!(reasons.join("\n").contains(says), "{says}: {reasons:#?}"),
            Admission::Admitted(proofs) => panic!("{says}: admitted {proofs:#?}"),
        }
    }
    // Both are off in the same way: nothing tells.
    let found = [signed(&by_clock(year), &key)];
    let read = Collection::by(&[signer(&key)], &found, &digest("image"), now() + year);
    assert!(matches!(admit(&read, &wanted(), compat::embedded(), now() + year), Admission::Admitted(_)));
}

#[test]
fn newest_word_counts_and_nothing_is_forgotten() {
    let key = SigningKey::new();
    let full = entry(H200, "580.95.05", Level::Full);
    let first = signed(&statement(1, std::slice::from_ref(&full)), &key);
    // A later statement about another GPU does not repeat the first.
    let second = signed(&statement(2, &[entry(A100, "570.1", Level::Full)]), &key);
    let both = read(&[second.clone(), first.clone()], &key);
    assert_eq!(both.known.len(), 2);
    assert_admitted(&both, &wanted());
    // A failure at a lower level withdraws the higher ones of that GPU and branch alone.
    let failed = entry(H200, "580.65.06", Level::Quick).withdrawn(now() - SignedDuration::from_hours(1));
    let third = signed(&statement(3, &[failed]), &key);
    let other_branch = signed(&statement(2, &[entry(H200, "570.1", Level::Full)]), &key);
    for order in [[&first, &other_branch, &third], [&third, &other_branch, &first]] {
        let found: Vec<_> = order.into_iter().cloned().collect();
        let read = read(&found, &key);
        assert_refused(&read, &wanted(), "withdrawn on 2026-11-28");
        // What an older branch proved holds there, and not for the one that failed.
        assert_refused(&read, &wanted(), "withdrawn for R580 on 2026-11-28");
        assert_admitted(&read, &Wanted { driver: Some("570.1".parse().expect("one")), ..wanted() });
    }
    // A later run settles it.
    let later = Entry { checked: now(), ..full.clone() };
    let fourth = signed(&statement(4, &[later]), &key);
    assert_admitted(&read(&[first.clone(), third.clone(), fourth], &key), &wanted());
    // Repeating what was withdrawn restores nothing.
    let repeated = signed(&statement(4, std::slice::from_ref(&full)), &key);
    assert_refused(&read(&[first.clone(), third.clone(), repeated], &key), &wanted(), "withdrawn");
    let own = Collection::own(&key.public(), &[first.clone(), third.clone()], &digest("image"), now());
    assert!(own.with(&[full]).iter().all(|entry| !entry.stands()));
    // An older list put back changes nothing while the newer one is there, and is bounded by its age where that is gone.
    assert_refused(&read(&[first.clone(), third, first.clone()], &key), &wanted(), "withdrawn");
    // The same statement in both forms is one.
    assert_eq!(read(&[first.clone(), first], &key).known.len(), 1);
}

#[test]
fn two_statements_of_one_number_are_both_refused_and_united_by_the_next() {
    let key = SigningKey::new();
    let (one, two) = (entry(H200, "580.1", Level::Full), entry(A100, "570.1", Level::Full));
    let found = [
        signed(&statement(1, std::slice::from_ref(&one)), &key),
        signed(&statement(1, std::slice::from_ref(&two)), &key),
    ];
    assert_refused(
        &read(&found, &key),
        &wanted(),
        "2 different statements with number 1: none of them counts",
    );
    let own = Collection::own(&key.public(), &found, &digest("image"), now());
    assert_eq!(own.known.len(), 2);
    // A withdrawal counts even so.
    let failed = signed(&statement(2, &[one.withdrawn(now())]), &key);
    let both = signed(&statement(2, std::slice::from_ref(&one)), &key);
    let before = signed(&statement(1, std::slice::from_ref(&one)), &key);
    assert_refused(&read(&[before.clone(), failed.clone(), both], &key), &wanted(), "withdrawn");
    let future = Statement { issued: now() + DAY, ..statement(2, &[one.withdrawn(now())]) };
    assert_refused(&read(&[before, signed(&future, &key)], &key), &wanted(), "withdrawn");
    let next = signed(&statement(own.highest + 1, &own.with(&[])), &key);
    let all = [found.as_slice(), &[next]].concat();
    assert_admitted(&read(&all, &key), &wanted());
    assert_eq!(read(&all, &key).known.len(), 2);
}

#[test]
fn evidence_without_a_key_is_what_somebody_says() {
    let key = SigningKey::new();
    let attestation = signed(&statement(1, &[entry(H200, "580.1", Level::Full)]), &key);
    let tag = Attestation { signer: None, ..attestation.clone() };
    let said = Collection::unchecked(&[tag, attestation], &digest("image"), now());
    assert_eq!(said.known.len(), 1, "both forms are one");
    assert_eq!(said.known[0].signer, key.public().fingerprint());
    assert_refused(&said, &wanted(), "no evidence by a trusted key");
}

#[test]
fn saved_evidence_is_read_back() {
    let key = SigningKey::new();
    let found = vec![signed(&statement(1, &[entry(H200, "580.1", Level::Full)]), &key)];
    let saved = SavedEvidence { name: "reg.test/x".to_owned(), digest: digest("image"), found };
    assert_eq!(SavedEvidence::parse("x", &saved.to_json()).expect("ours"), saved);
    for wrong in ["", "{}", r#"{"schema":2,"name":"","digest":"","envelopes":[]}"#] {
        assert!(
            SavedEvidence::parse("x", wrong.as_bytes()).expect_err("refused").to_string().contains("`x`")
        );
    }
}

/// Keys of `cosign generate-key-pair` (2.5.0) and of openssl, made for this test alone.
const COSIGN_KEY: &str = include_str!("../../tests/fixtures/evidence/cosign.key");
const COSIGN_PUB: &str = include_str!("../../tests/fixtures/evidence/cosign.pub");
const P256_KEY: &str = include_str!("../../tests/fixtures/evidence/p256.pem");
const P256_PUB: &str = include_str!("../../tests/fixtures/evidence/p256.pub");
const P256_SEC1: &str = include_str!("../../tests/fixtures/evidence/p256-sec1.pem");
const P384_KEY: &str = include_str!("../../tests/fixtures/evidence/p384.pem");
const P384_PUB: &str = include_str!("../../tests/fixtures/evidence/p384.pub");
const ED25519_KEY: &str = include_str!("../../tests/fixtures/evidence/ed25519.pem");
const ED25519_PUB: &str = include_str!("../../tests/fixtures/evidence/ed25519.pub");
const RSA_KEY: &str = include_str!("../../tests/fixtures/evidence/rsa.pem");
const RSA_PUB: &str = include_str!("../../tests/fixtures/evidence/rsa.pub");
const COSIGN_PASSWORD: &str = "planted-pass";

#[test]
fn keys_of_cosign_and_openssl_are_read_and_others_say_what_they_are() {
    let private = |text: &str, password: Option<&str>| {
        let password = password.map(|password| SecretString::from(password.to_owned()));
        SigningKey::from_pem(&SecretString::from(text.to_owned()), password.as_ref())
    };
    for (key, password, public) in
        [(COSIGN_KEY, Some(COSIGN_PASSWORD), COSIGN_PUB), (P256_KEY, None, P256_PUB)]
    {
        let key = private(key, password).expect("a key");
        let read = PublicKey::from_pem(public).expect("a public key");
        assert_eq!(key.public(), read);
        assert_eq!(read.to_pem(), public);
        assert!(!format!("{key:?}").contains("PRIVATE"), "{key:?}");
    }
    for (text, password, error) in [
        (COSIGN_KEY, None, KeyError::PasswordMissing),
        (COSIGN_KEY, Some("wrong"), KeyError::WrongPassword),
        (P256_PUB, None, KeyError::Public),
        (P256_SEC1, None, KeyError::Kind("EC PRIVATE KEY".to_owned())),
        ("nothing", None, KeyError::NotPem),
        ("", None, KeyError::NotPem),
    ] {
        assert_eq!(private(text, password).expect_err("refused"), error);
    }
    assert_eq!(PublicKey::from_pem(P256_KEY), Err(KeyError::Private));
    assert_eq!(PublicKey::from_pem(COSIGN_KEY), Err(KeyError::Private));
    for (key, public, name) in
        [(P384_KEY, P384_PUB, "P-384"), (ED25519_KEY, ED25519_PUB, "Ed25519"), (RSA_KEY, RSA_PUB, "RSA")]
    {
        assert_eq!(private(key, None).expect_err("refused"), KeyError::Unsupported(name));
        assert_eq!(PublicKey::from_pem(public), Err(KeyError::Unsupported(name)));
    }
}

#[test]
fn encrypted_key_cannot_ask_for_any_memory() {
    let body = COSIGN_KEY.lines().filter(|line| !line.starts_with('-')).collect::<String>();
    let text = String::from_utf8(STANDARD.decode(body).expect("base64")).expect("JSON");
    let huge = text.replace("\"N\":65536", "\"N\":1073741824");
    assert_ne!(huge, text);
    let name = "ENCRYPTED SIGSTORE PRIVATE KEY";
    let pem = format!("-----BEGIN {name}-----\n{}\n-----END {name}-----\n", STANDARD.encode(huge));
    let password = SecretString::from("x".to_owned());
    let error = SigningKey::from_pem(&pem.into(), Some(&password)).expect_err("refused");
    assert_eq!(error, KeyError::Encryption("scrypt with N=1073741824, r=8, p=1".to_owned()));
}

#[test]
fn report_gives_an_entry_for_each_gpu_model_and_names_no_machine() {
    use crate::model::image::info::ImageInfo;
    use crate::model::verdict::{ImageExpectations, Verdict, VerdictStatus, judge};
    let lines = r#"{"id":"device","stage":"gpu","outcome":"passed","detail":"","measured":{"gpu.0":"NVIDIA H200 (sm_90)","driver":"580.95.05","uuid":"GPU-1234"}}
{"id":"gemm-large","stage":"gpu","outcome":"passed","detail":"","measured":{"gpu.0":"NVIDIA H200 (sm_90)","gpu.1":"NVIDIA H200 (sm_90)"}}
{"id":"nccl-all-reduce","stage":"gpu","outcome":"passed","detail":"","measured":{"gpu.0":"NVIDIA H200 (sm_90), NVIDIA H200 (sm_90)"}}
{"id":"speed-gemm-fp16","stage":"perf","outcome":"passed","detail":"","measured":{"gpu.0":"NVIDIA H200 (sm_90)","tflops":"700.5","host":"node7"}}
{"done":true,"seconds":1}"#;
    let image = ImageInfo { id: "sha256:1".to_owned(), user: "1000:1000".to_owned(), ..ImageInfo::default() };
    let report = Verdict {
        level: "full".to_owned(),
        checked: "2026-11-27T10:00:00Z".to_owned(),
        engine: Some("Docker 28.5.2".to_owned()),
        lock: Some("c".repeat(64)),
        ..judge(lines, "", &image, &ImageExpectations::default())
    };
    let entries = Entry::of_report(&report, &"a".repeat(64));
    let [entry] = entries.as_slice() else { panic!("{entries:#?}") };
    assert_eq!((entry.gpu.as_str(), entry.count, entry.nccl, entry.branch()), ("NVIDIA H200", 2, 2, 580));
    assert_eq!(entry.speeds["speed-gemm-fp16"], BTreeMap::from([("tflops".to_owned(), "700.5".to_owned())]));
    let text = serde_json::to_string(entry).expect("JSON");
    assert!(!text.contains("GPU-1234") && !text.contains("node7"), "{text}");
    let failed = Entry::of_report(&Verdict { verdict: VerdictStatus::Failed, ..report.clone() }, "");
    assert!(failed.iter().all(|entry| !entry.stands()) && failed.len() == 1, "{failed:#?}");
    for verdict in [VerdictStatus::Undecided, VerdictStatus::StaticOnly] {
        assert_eq!(Entry::of_report(&Verdict { verdict, ..report.clone() }, ""), []);
    }
}

proptest::proptest! {
    #[test]
    fn readers_never_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200), text in "\\PC{0,200}") {
        let _ = Envelope::parse(&bytes);
        let _ = Statement::parse(&bytes);
        let _ = Bundle::attestation(&bytes);
        let _ = Bundle::of_manifest(&bytes);
        let _ = Legacy::parse(&bytes);
        let _ = referrers(&bytes);
        let _ = PublicKey::from_pem(&text);
        let _ = SavedEvidence::parse("x", &bytes);
    }
}

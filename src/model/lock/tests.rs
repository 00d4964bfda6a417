//! Locks of every product with their hashes, computed by another program from the documented form, and the published test vector.
#![expect(clippy::disallowed_methods, reason = "reads the fixtures")]

use serde_json::Value;

use super::Lock;
use super::canonical::canonical_json;
use crate::model::image::plan::environment_of;
use crate::model::sha256::sha256_hex;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lock");

fn read(file: &str) -> String {
    fs_err::read_to_string(format!("{FIXTURES}/{file}")).expect("a fixture")
}

/// The locks with their recorded hashes.
fn recorded() -> Vec<(String, String, Lock)> {
    let sums = read("products/SHA256");
    let all: Vec<_> = sums
        .lines()
        .map(|line| {
            let (hash, file) = line.split_once("  ").expect("hash and file");
            let text = read(&format!("products/{file}"));
            (file.to_owned(), hash.to_owned(), Lock::from_toml(file, &text).expect(file))
        })
        .collect();
    assert_eq!(all.len(), 18, "every fixture is listed");
    all
}

#[test]
fn lock_keeps_its_hash_when_it_is_written_again() {
    for (file, hash, lock) in recorded() {
        assert_eq!(lock.hash(), hash, "{file}");
        let text = lock.to_toml();
        let back = Lock::from_toml(&file, &text).expect("reads");
        assert_eq!((&back, back.to_toml()), (&lock, text), "{file}");
    }
}

#[test]
fn lock_matches_its_own_request() {
    for (file, _, lock) in recorded() {
        assert_eq!(lock.differences_from(&lock.stack, &lock.added), [], "{file}");
        assert_eq!(lock.claims(&environment_of(&lock.stack, &lock.added)), [], "{file}");
    }
}

#[test]
fn fields_of_another_shape_are_refused_with_their_line() {
    let mut lock = crate::model::lock::sample::lock();
    lock.stack.ptxas = Some(crate::model::lock::sample::ptxas());
    let text = lock.to_toml();
    for (from, to, says) in [
        ("name = \"libc6\"", "name = \"--force\"", "invalid package name `--force`"),
        ("name = \"torch\"", "name = \"torch; rm -rf /\"", "invalid package name"),
        ("version = \"2.36-9+deb12u14\"", "version = \"$(id)\"", "invalid version `$(id)`"),
        ("architecture = \"amd64\"", "architecture = \"../x\"", "invalid package name `../x`"),
        ("name = \"debian:12\"\nsuite", "name = \"a b\"\nsuite", "invalid image name `a b`"),
        ("suite = \"bookworm\"\ncontent", "suite = \"x y\"\ncontent", "invalid package name `x y`"),
        ("\"nvidia/cuda_nvcc/bin/ptxas\"", "\"nvidia/../../x/bin/ptxas\"", "invalid path of ptxas"),
        ("\"nvidia/cuda_nvcc/bin/ptxas\"", "\"/tmp/ptxas\"", "invalid path of ptxas `/tmp/ptxas`"),
        ("\"TRITON_PTXAS_PATH\"", "\"LD_PRELOAD\"", "unknown variant `LD_PRELOAD`"),
        ("name = \"uv\"", "name = \"UV\"", "invalid package name `UV`"),
    ] {
        let bad = text.replacen(from, to, 1);
        assert_ne!(bad, text, "`{from}` is missing");
        let error = Lock::from_toml("x.lock", &bad).expect_err(to).to_string();
        assert!(error.contains(says) && error.contains("line "), "{to}: {error}");
    }
}

#[test]
fn one_changed_pin_changes_the_hash() {
    for (file, hash, lock) in recorded() {
        let mut other = lock.clone();
        other.tools[0].sha256 = "9".repeat(64);
        assert_ne!(other.hash(), hash, "{file}");
    }
}

#[test]
fn test_vector_is_reproduced() {
    let vector: Value = serde_json::from_str(&read("vector.json")).expect("JSON");
    let lock = Lock::from_toml("vector.lock", &read("vector.lock")).expect("reads");
    assert_eq!(canonical_json(&lock), vector["canonical"].as_str().expect("text"));
    assert_eq!(lock.hash(), vector["sha256"].as_str().expect("text"));
    assert_eq!(sha256_hex(canonical_json(&lock).as_bytes()), lock.hash());
}

#[test]
fn canonical_form_follows_from_the_lock_file_as_documented() {
    for (file, _, lock) in recorded() {
        let mut value: Value = ::toml::from_str(&lock.to_toml()).expect("TOML");
        for path in [
            "/records",
            "/base/content",
            "/stack/name",
            "/stack/glibc",
            "/stack/status",
            "/stack/experimental",
            "/stack/local",
            "/stack/licence",
            "/stack/requires",
            "/stack/matrix",
            "/stack/reasons",
            "/stack/forward_compat/source",
            "/stack/source_build/job_memory_gb",
            "/stack/source_build/time",
            "/stack/source_build/experimental",
        ] {
            let (table, name) = path.rsplit_once('/').expect("a path");
            if let Some(Value::Object(members)) = value.pointer_mut(table) {
                members.remove(name);
            }
        }
        remove_empty(&mut value);
        let canonical: Value = serde_json::from_str(&canonical_json(&lock)).expect("JSON");
        assert_eq!(canonical, value, "{file}");
    }
}

#[test]
fn lock_names_a_restrictive_licence() {
    let mut lock = crate::model::lock::sample::lock();
    assert!(!lock.to_toml().contains("licence"));
    let hash = lock.hash();
    lock.stack.licence = Some("Agreement".to_owned());
    let text = lock.to_toml();
    assert!(text.contains("licence = \"Agreement\"\n"), "{text}");
    assert_eq!(Lock::from_toml("x.lock", &text).expect("reads"), lock);
    assert_eq!(lock.hash(), hash, "a name of the licence changes no image");
}

fn remove_empty(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(remove_empty);
            let is_empty = |value: &Value| match value {
                Value::Object(members) => members.is_empty(),
                Value::Array(items) => items.is_empty(),
                value => value.is_null(),
            };
            members.retain(|_, value| !is_empty(value));
        }
        Value::Array(items) => items.iter_mut().for_each(remove_empty),
        _ => {}
    }
}

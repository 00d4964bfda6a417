//! Fuzz targets: texts from outside must give a value or an error, never a panic, and what was read is written back as
//! it was. Part of the library's own tests, since most readers are private to it.
//!
//! `cargo test --lib fuzz` replays the corpus (`__fuzz__/fuzz__TARGET/corpus`), which never fails by luck;
//! `BOLERO_RANDOM_ITERATIONS=100000` tries as many random inputs more, `ENVFORGE_FUZZ_SECONDS=60` changed inputs of the corpus;
//! `tests/fuzz/run.sh SECONDS` fuzzes with coverage, on stable Rust.

#[path = "mutated.rs"]
mod mutated;

use std::str::FromStr;

use crate::archive::fuzzed as archive_room;
use crate::assemble::fuzzed as assemble;
use crate::base::fuzzed;
use crate::model::lock::Lock;
use crate::model::spec::Spec;
use crate::model::verdict::fuzzed as verdict;
use crate::registry::fuzzed as registry;
use crate::settings::parse_config;

/// Runs `check` on every input.
macro_rules! for_each_input {
    ($check:expr) => {
        let check = $check;
        bolero::check!().with_iterations(0).for_each(|bytes: &[u8]| check(bytes));
        mutated::for_each(check);
    };
}

/// Runs `check` on every input that is UTF-8: all of our formats are.
macro_rules! for_each_text {
    ($check:expr) => {
        for_each_input!(|bytes: &[u8]| {
            if let Ok(text) = std::str::from_utf8(bytes) {
                $check(text);
            }
        })
    };
}

#[test]
fn spec() {
    for_each_text!(|text: &str| {
        if let Ok(spec) = Spec::from_str(text) {
            let written = spec.to_string();
            assert_eq!(Spec::from_str(&written).ok(), Some(spec), "`{text}` was written as `{written}`");
        }
    });
}

#[test]
fn lock() {
    for_each_text!(|text: &str| {
        if let Ok(lock) = Lock::from_toml("envforge.lock", text) {
            let written = lock.to_toml();
            assert_eq!(Lock::from_toml("envforge.lock", &written).expect("our own lock"), lock);
        }
    });
}

#[test]
fn config() {
    for_each_text!(|text: &str| drop(parse_config("config.toml".into(), text)));
}

#[test]
fn packages() {
    for_each_text!(fuzzed::packages);
}

#[test]
fn release() {
    for_each_text!(fuzzed::release);
}

#[test]
fn registry_documents() {
    for_each_text!(registry::document);
}

#[test]
fn docker_config() {
    for_each_text!(registry::docker_config);
}

#[test]
fn image_reference() {
    for_each_text!(registry::reference);
}

#[test]
fn wheel() {
    for_each_input!(|bytes: &[u8]| assemble::wheel(bytes));
}

#[test]
fn record() {
    for_each_text!(assemble::record);
}

#[test]
fn entry_points() {
    for_each_text!(assemble::entry_points);
}

#[test]
fn layer() {
    for_each_text!(assemble::layer);
}

#[test]
fn report() {
    for_each_text!(verdict::report);
}

#[test]
fn archive() {
    for_each_input!(|bytes: &[u8]| archive_room::archive(bytes));
}

#[test]
fn deb() {
    for_each_input!(|bytes: &[u8]| fuzzed::deb(bytes));
}

/// `cargo test` replays a corpus only where it finds one.
#[test]
fn every_target_has_a_corpus_and_every_corpus_a_target() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/__fuzz__");
    let mut found: Vec<_> = fs_err::read_dir(folder)
        .expect("the corpora")
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| {
            fs_err::read_dir(entry.path().join("corpus")).is_ok_and(|mut files| files.next().is_some())
        })
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("fuzz__").map(str::to_owned))
        .collect();
    found.sort();
    let source = include_str!("targets.rs");
    let tests = source.split("\n#[test]\nfn ").skip(1).filter(|test| {
        let body = test.split("\n}\n").next().unwrap_or_default();
        // Not this test, which only speaks of them.
        (body.contains("for_each_text!(") || body.contains("for_each_input!("))
            && !body.contains("include_str!")
    });
    let mut targets: Vec<_> = tests.filter_map(|test| test.split('(').next()).collect();
    targets.sort_unstable();
    assert_eq!(found, targets);
}

/// The corpus of the lock: written anew, since its form changes with the program.
#[test]
#[expect(clippy::disallowed_methods, reason = "reads and writes the corpus")]
fn the_corpus_holds_a_lock_as_it_is_written_today() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/__fuzz__/fuzz__lock/corpus/sample");
    let text = crate::model::lock::sample::lock().to_toml();
    if std::env::var_os("ENVFORGE_UPDATE_CORPUS").is_some() {
        fs_err::write(file, &text).expect("the corpus is writable");
    }
    assert_eq!(fs_err::read_to_string(file).ok(), Some(text), "run once with ENVFORGE_UPDATE_CORPUS=1");
}

//! The wheel of a source build on its way from one machine of the team to another.

use std::future::ready;

use super::tests::{TeamMachine, machine};
use super::*;
use crate::failure::Exit;
use crate::model::compat;
use crate::model::lock::{IndexKind, Lock, LockedSource, LockedWheel, WheelLayer, sample};
use crate::packages::{LocalWheel, test_wheel};
use crate::registry::test_registry::TestRegistry;
use crate::source_build::{built_once, cached_wheel};
use crate::workflow::compiled_wheels::compiled_wheels;
use crate::workflow::layer_sources::LayerSources;
use crate::workflow::shared_wheel::{SharedWheel, note_compiled};

const BUILT: &str = "docopt 0.6.2";

/// A wheel in the cache of a machine.
fn wheel(machine: &TeamMachine, version: &str) -> LocalWheel {
    test_wheel(machine.store.cache_dir().parent().expect("a folder"), "docopt", version)
}

fn locked(wheel: &LocalWheel) -> LockedWheel {
    LockedWheel {
        name: wheel.name.clone(),
        version: wheel.version.clone(),
        file: wheel.file.clone(),
        sha256: wheel.sha256.clone(),
        size: Some(wheel.size),
        index: IndexKind::Local,
        index_name: None,
        layer: WheelLayer::User,
    }
}

/// A lock with a wheel that was built of a source distribution.
fn lock(wheel: &LocalWheel) -> Lock {
    let mut lock = sample::lock();
    lock.wheels.push(locked(wheel));
    lock.sources = vec![LockedSource {
        name: wheel.name.clone(),
        version: wheel.version.clone(),
        file: "docopt-0.6.2.tar.gz".to_owned(),
        sha256: "d".repeat(64),
        size: None,
        build: Vec::new(),
        recipe: None,
    }];
    lock
}

/// The key of the wheel that the lock has of a source distribution.
fn key(lock: &Lock) -> String {
    compiled_wheels(lock, compat::embedded()).into_iter().next().expect("one wheel is compiled").0
}

async fn build(machine: &TeamMachine, key: &str, wheel: &LocalWheel) -> LocalWheel {
    let (none, made) = (ready(Ok(None)), ready(Ok::<_, CommandError>(wheel.clone())));
    built_once(&machine.store, key, None, none, made).await.expect("built")
}

async fn publish(machine: &TeamMachine, lock: &Lock) -> Result<usize, CommandError> {
    let finished = machine.finished(&[], true);
    note_compiled(&finished, lock, compat::embedded())?;
    publish_layers(&finished, Machine::X86_64).await?;
    Ok(finished.steps().len())
}

/// A registry with a wheel of the first machine, its lock and the key.
async fn shared() -> (TestRegistry, LocalWheel, Lock, String) {
    let server = TestRegistry::start().await;
    let first = machine(&server.host);
    let wheel = wheel(&first, "0.6.2");
    let lock = lock(&wheel);
    let key = key(&lock);
    build(&first, &key, &wheel).await;
    assert_eq!(publish(&first, &lock).await.expect("published"), 1);
    (server, wheel, lock, key)
}

async fn found(
    machine: &TeamMachine,
    key: &str,
    recorded: Option<&LockedWheel>,
) -> Result<Option<LocalWheel>, CommandError> {
    shared_wheel(machine, key, recorded, machine.sources(false)).find().await
}

fn shared_wheel<'a>(
    machine: &TeamMachine,
    key: &'a str,
    recorded: Option<&'a LockedWheel>,
    sources: LayerSources,
) -> SharedWheel<'a> {
    SharedWheel::of_parts(machine.parts(), sources, (key, BUILT), recorded)
}

#[tokio::test]
async fn wheel_that_a_lock_records_reaches_a_second_machine() {
    let (server, wheel, lock, key) = shared().await;
    let second = machine(&server.host);
    let recorded = locked(&wheel);
    let taken = found(&second, &key, Some(&recorded)).await.expect("found");
    assert_eq!(taken.as_ref(), Some(&wheel));
    assert!(second.store.read(&wheel.sha256).expect("readable").is_some());
    // It was not built here: neither kept under the key nor published.
    assert_eq!(cached_wheel(&second.store, &key).expect("readable"), None);
    let sent = server.count("PUT");
    assert_eq!(publish(&second, &lock).await.expect("nothing to do"), 0);
    assert_eq!((server.count("PUT"), second.warnings()), (sent, Vec::new()));
}

#[tokio::test]
async fn wheel_without_record_is_compiled_here_and_compared() {
    let (server, wheel, _, key) = shared().await;
    let second = machine(&server.host);
    let shared = shared_wheel(&second, &key, None, second.sources(false));
    assert_eq!(shared.find().await.expect("asked"), None);
    shared.compare(&wheel).expect("the same wheel");
    assert_eq!(shared.find().await.expect("asked"), None);
    let other = self::wheel(&second, "0.7");
    let error = shared.compare(&other).expect_err("another one");
    assert!(error.to_string().contains("(wheel of docopt 0.6.2) than this machine made"), "{error}");
    assert_eq!(second.warnings(), Vec::<String>::new());
}

#[tokio::test]
async fn other_wheel_than_the_recorded_one_is_an_error() {
    let (server, wheel, _, key) = shared().await;
    let second = machine(&server.host);
    let other = LockedWheel { sha256: "e".repeat(64), ..locked(&wheel) };
    let error = found(&second, &key, Some(&other)).await.expect_err("refused");
    assert!(error.to_string().contains("(wheel of docopt 0.6.2) than the lock file records"), "{error}");
    assert_eq!((error.exit(), second.files()), (Exit::Outside, Vec::new()));
    // A machine whose build gave another wheel does not put it in the place of the first one.
    let made = self::wheel(&second, "0.7");
    build(&second, &key, &made).await;
    let error = publish(&second, &lock(&made)).await.expect_err("the first one is there");
    assert!(error.to_string().contains("than this machine made of the same inputs"), "{error}");
}

#[tokio::test]
async fn wheel_that_was_not_compiled_here_is_not_published() {
    let server = TestRegistry::start().await;
    let first = machine(&server.host);
    let (made, given) = (wheel(&first, "0.6.2"), wheel(&first, "0.7"));
    let lock = lock(&given);
    assert_eq!(publish(&first, &lock).await.expect("nothing to do"), 0);
    build(&first, &key(&lock), &made).await;
    assert_eq!(publish(&first, &lock).await.expect("nothing to do"), 0);
    build(&first, &key(&self::lock(&made)), &made).await;
    let only_read = first.finished(&[], false);
    note_compiled(&only_read, &self::lock(&made), compat::embedded()).expect("nothing to do");
    assert_eq!((only_read.steps().len(), server.state().requests.len()), (0, 0));
}

#[tokio::test]
async fn recorded_wheel_comes_before_that_of_the_key_and_a_shared_one_is_not_kept_for_it() {
    let first = machine("127.0.0.1:9");
    let (one, two) = (wheel(&first, "0.6.2"), wheel(&first, "0.7"));
    let key = "ab".repeat(32);
    let gone = || ready(Err(CommandError::from(std::io::Error::other("not built"))));
    let shared = |wheel: &LocalWheel| ready(Ok(Some(wheel.clone())));
    let taken = built_once(&first.store, &key, None, shared(&two), gone()).await.expect("shared");
    assert_eq!((taken, cached_wheel(&first.store, &key).expect("readable")), (two.clone(), None));
    build(&first, &key, &one).await;
    let recorded = locked(&two);
    let in_cache = built_once(&first.store, &key, Some(&recorded), ready(Ok(None)), gone()).await;
    assert_eq!(in_cache.expect("of the cache"), two);
    first.store.discard(&two.sha256).expect("removed");
    let lost = built_once(&first.store, &key, Some(&recorded), ready(Ok(None)), gone()).await;
    assert_eq!(lost.expect("what the key gives here"), one);
    let of_key = built_once(&first.store, &key, None, shared(&two), gone()).await.expect("not asked for");
    assert_eq!(of_key, one);
}

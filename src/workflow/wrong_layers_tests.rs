//! A registry or a folder that lists wrong layers, loses them, or names files of others.

use serde_json::json;

use super::tests::{KEY, TeamMachine, machine, published};
use super::*;
use crate::engine::plain_config;
use crate::failure::Exit;
use crate::model::image_digest::Digest;
use crate::model::lock::vendor_files::place;
use crate::model::sha256::sha256_hex;
use crate::registry::test_registry::TestRegistry;
use crate::store::vendor_layers;
use crate::workflow::assemble::{Purpose, SharedStep};
use crate::workflow::layer_sources::LayerSources;

const STEP: SharedStep = SharedStep::System;

/// The lists of layers that stand for none of two recorded ones.
fn wrong_lists(machine: &TeamMachine, layers: &[KeptLayer]) -> Vec<Vec<KeptLayer>> {
    let (one, two) = (layers[0].clone(), layers[1].clone());
    vec![
        vec![],
        vec![one.clone()],
        vec![two.clone(), one.clone()],
        vec![one.clone(), one.clone()],
        vec![one.clone(), machine.layer("other")],
        vec![one.clone(), two.clone(), two],
        vec![one; 1000],
    ]
}

/// Lets the registry list these blobs as the layers of the key.
fn list(server: &TestRegistry, blobs: &[(String, u64)], layers: &[KeptLayer]) {
    let diff_ids: Vec<String> = layers.iter().map(KeptLayer::diff_id).collect();
    let config = plain_config(Machine::X86_64, &diff_ids);
    let digest = Digest::of(&config).to_string();
    let blobs: Vec<_> = blobs.iter().map(|(digest, size)| json!({"digest": digest, "size": size})).collect();
    let manifest = json!({"config": {"digest": digest, "size": config.len()}, "layers": blobs});
    let mut state = server.state();
    state.blobs.insert(digest, config.to_vec());
    state.manifests.insert(format!("layers-{KEY}"), manifest.to_string().into_bytes());
}

/// The compressed layers that the registry lists under the key.
fn blobs(server: &TestRegistry) -> Vec<String> {
    let manifest = server.state().manifests[&format!("layers-{KEY}")].clone();
    let document: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
    let layers = document["layers"].as_array().expect("layers");
    layers.iter().map(|layer| layer["digest"].as_str().expect("a digest").to_owned()).collect()
}

#[tokio::test]
async fn only_the_recorded_layers_of_the_step_in_their_order_count() {
    let (server, first, layers) = published().await;
    for (number, wrong) in wrong_lists(&first, &layers).into_iter().enumerate() {
        let blobs: Vec<_> = wrong.iter().map(|layer| (layer.diff_id(), layer.size)).collect();
        list(&server, &blobs, &wrong);
        let second = machine(&server.host);
        let finished = second.finished(&[&layers[0], &layers[1]], false);
        let error = finished.find(STEP, KEY, "system").await.expect_err("refused");
        assert!(error.to_string().contains("(system) than the lock file records"), "{number}: {error}");
        assert_eq!((error.exit(), second.files()), (Exit::Outside, Vec::new()), "{number}");
        // A vendor folder, which has the files.
        let folder = second.store.cache_dir().with_file_name("vendor");
        let names: Vec<&str> = wrong.iter().map(|layer| layer.sha256.as_str()).collect();
        vendor_layers::write(&folder, KEY, &names).expect("written");
        let sources = LayerSources::of_folder(folder);
        let finished = second.finished_of(&[&layers[0], &layers[1]], sources, Purpose::Build);
        let error = finished.find(STEP, KEY, "system").await.expect_err("refused");
        assert!(error.to_string().contains("(system) than the lock file records"), "{number}: {error}");
    }
}

#[tokio::test]
async fn listed_layers_are_as_many_as_their_step_has() {
    let (server, _, layers) = published().await;
    let second = machine(&server.host);
    for (step, number, is_valid) in [
        (SharedStep::System, 0, false),
        (SharedStep::System, 2, true),
        (SharedStep::System, 3, false),
        (SharedStep::Toolkit, 0, false),
        (SharedStep::Toolkit, 2, false),
        (SharedStep::Apt, 2, false),
    ] {
        let packed = blobs(&server);
        let size = |digest: &String| server.state().blobs[digest].len() as u64;
        let good: Vec<_> = packed.iter().map(|digest| (digest.clone(), size(digest))).collect();
        let all: Vec<KeptLayer> = layers.iter().cycle().take(number).cloned().collect();
        let listed: Vec<_> = good.iter().cycle().take(number).cloned().collect();
        list(&server, &listed, &all);
        let found = second.finished(&[], false).find(step, KEY, "it").await;
        assert_eq!(found.is_ok(), is_valid, "{step:?} {number}");
        if let Err(error) = found {
            assert!(error.to_string().contains("does not hold finished layers"), "{error}");
        }
        list(&server, &good, &layers);
    }
}

#[tokio::test]
async fn file_of_the_cache_survives_a_registry_that_names_its_hash() {
    let (server, _, layers) = published().await;
    let second = machine(&server.host);
    let wheel = vec![b'w'; 1000];
    let sha256 = sha256_hex(&wheel);
    second.store.put(&sha256, &wheel).expect("stored");
    let tar = "system".repeat(100_000).into_bytes();
    for (digest, content) in [(format!("sha256:{sha256}"), wheel.clone()), (layers[0].diff_id(), tar)] {
        let size = content.len() as u64;
        server.state().blobs.insert(digest.clone(), content);
        list(&server, &[(digest.clone(), size), (digest, size)], &layers);
        let finished = second.finished(&[&layers[0], &layers[1]], false);
        let error = finished.find(STEP, KEY, "system").await.expect_err("no gzip");
        assert!(error.to_string().contains("serves a wrong layer (system)"), "{error}");
        assert_eq!(second.store.read(&sha256).expect("readable").as_deref(), Some(wheel.as_slice()));
        assert_eq!(second.files().len(), 1, "the wheel alone: {:?}", second.files());
    }
}

#[tokio::test]
async fn implausible_size_is_a_fault_of_the_registry() {
    let (server, _, layers) = published().await;
    let packed = blobs(&server);
    for size in [1 << 63, u64::MAX, 17 << 30] {
        list(&server, &[(packed[0].clone(), size), (packed[1].clone(), 1)], &layers);
        let second = machine(&server.host);
        let error = second.finished(&[&layers[0], &layers[1]], false).find(STEP, KEY, "system").await;
        let error = error.expect_err("refused").to_string();
        assert!(error.contains(&format!("a layer of {size} bytes, whose tar may have")), "{error}");
        assert!(error.contains(&server.host), "{error}");
    }
}

#[tokio::test]
async fn taken_layers_are_remembered_for_locks_that_record_them() {
    let (server, first, layers) = published().await;
    let second = machine(&server.host);
    let recorded = [&layers[0], &layers[1]];
    let taken = second.finished(&recorded, false).find(STEP, KEY, "system").await;
    assert_eq!(taken.expect("found").as_ref(), Some(&layers));
    server.answers("GET", usize::MAX, "500 Internal Server Error");
    let asked = server.state().requests.len();
    let finished = second.finished(&recorded, false);
    assert_eq!(finished.find(STEP, KEY, "system").await.expect("kept").as_ref(), Some(&layers));
    assert_eq!(finished.steps().len(), 1);
    assert_eq!((server.state().requests.len(), second.warnings()), (asked, Vec::new()));
    // Nothing else vouches for them.
    let other = first.layer("other");
    for recorded in [&[][..], &[&layers[1], &layers[0]], &[&layers[0], &other]] {
        let second = second.finished(recorded, false);
        assert_eq!(second.find(STEP, KEY, "system").await.expect("asked for"), None);
    }
    assert!(server.state().requests.len() > asked);
    // A layer that left the cache does not count.
    second.store.discard(&layers[0].sha256).expect("removed");
    assert_eq!(finished.find(STEP, KEY, "system").await.expect("asked for"), None);
}

#[tokio::test]
async fn lost_layer_is_put_there_again() {
    let (server, first, layers) = published().await;
    let lost = blobs(&server).remove(1);
    let whole = server.state().blobs.remove(&lost).expect("it was there");
    let sent = server.count("PATCH");
    first.publish(&layers).await.expect("published");
    assert_eq!(server.state().blobs.get(&lost), Some(&whole));
    assert_eq!(server.count("PATCH"), sent + 1);
    first.publish(&layers).await.expect("nothing to do");
    assert_eq!(server.count("PATCH"), sent + 1);
    assert_eq!(first.warnings(), Vec::<String>::new());
}

#[tokio::test]
async fn documents_of_something_else_are_an_error_for_readers_and_writers() {
    let index = json!({"manifests": [{"digest": Digest::of(b""), "size": 1}]}).to_string();
    let list = json!({"schemaVersion": 1}).to_string();
    for document in [index.as_str(), &list, "{\"config\":{}}", "<html>"] {
        let (server, first, layers) = published().await;
        server.state().manifests.insert(format!("layers-{KEY}"), document.as_bytes().to_vec());
        let second = machine(&server.host);
        let finished = second.finished(&[&layers[0], &layers[1]], false);
        let error = finished.find(STEP, KEY, "system").await.expect_err("refused");
        assert!(error.to_string().contains("does not hold finished layers"), "{document}: {error}");
        assert_eq!((error.exit(), second.warnings()), (Exit::Outside, Vec::new()), "{document}");
        assert_eq!(first.publish(&layers).await.expect_err("refused").exit(), Exit::Outside, "{document}");
    }
}

#[tokio::test]
async fn login_that_ends_during_a_download_is_renewed_once() {
    for (status, times, is_found) in [
        ("401 Unauthorized", 1, true),
        ("403 Forbidden", 1, true),
        ("401 Unauthorized", 2, false),
        ("403 Forbidden", 2, false),
    ] {
        let (server, _, layers) = published().await;
        let blob = blobs(&server).remove(0);
        server.answers(&format!("GET /v2/team/layers/blobs/{blob}"), times, status);
        let second = machine(&server.host);
        let finished = second.finished(&[&layers[0], &layers[1]], true);
        let found = finished.find(STEP, KEY, "system").await.expect("found, or a warning");
        assert_eq!(found, is_found.then_some(layers), "{status}");
        let warnings = second.warnings();
        assert_eq!(warnings.len(), usize::from(!is_found), "{warnings:?}");
        assert!(warnings.iter().all(|text| text.contains("access denied")), "{warnings:?}");
        assert!(warnings.iter().all(|text| text.contains("docker login")), "{warnings:?}");
    }
}

#[tokio::test]
async fn writer_without_a_valid_login_learns_it_before_the_build() {
    let (server, _, layers) = published().await;
    server.state().token = Some("other".to_owned());
    server.answers("GET /token", usize::MAX, "401 Unauthorized");
    let second = machine(&server.host);
    let finished = second.finished(&[&layers[0], &layers[1]], true);
    assert_eq!(finished.find(STEP, KEY, "system").await.expect("a warning"), None);
    let warnings = second.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("docker login"), "{warnings:?}");
    let sent = server.count("POST");
    finished.made(KEY, "system", &layers).expect("ours");
    publish_layers(&finished, Machine::X86_64).await.expect("not asked");
    assert_eq!((server.count("POST"), second.warnings().len()), (sent, 1));
}

#[tokio::test]
async fn throwaway_image_takes_recorded_layers_alone_and_publishes_nothing() {
    let (server, first, layers) = published().await;
    let repository = format!("{}/team/layers", server.host).parse().expect("a reference");
    let sources = LayerSources::new(Some(LayerRepository { repository, write: true }));
    let other = first.layer("other");
    for (recorded, is_found) in
        [(vec![&layers[0], &layers[1]], true), (vec![], false), (vec![&layers[0], &other], false)]
    {
        let second = machine(&server.host);
        let finished = second.finished_of(&recorded, sources.clone(), Purpose::Throwaway);
        let found = finished.find(STEP, KEY, "system").await.expect("its layers may be others");
        assert_eq!(found, is_found.then(|| layers.clone()), "{}", recorded.len());
        assert!(!finished.collects());
        if !is_found {
            let error = finished.made(KEY, "system", std::slice::from_ref(&other)).expect_err("compared");
            assert!(error.to_string().contains("than this machine made of the same inputs"), "{error}");
        }
    }
}

#[tokio::test]
async fn vendor_folder_gives_recorded_layers_and_its_damage_is_named() {
    let server = TestRegistry::start().await;
    let second = machine(&server.host);
    let folder = second.store.cache_dir().with_file_name("vendor");
    let tar = b"a tar".repeat(100);
    let layer = KeptLayer { sha256: sha256_hex(&tar), size: 500 };
    let file = folder.join(place(&layer.sha256));
    let finished = |recorded: &[&KeptLayer]| {
        second.finished_of(recorded, LayerSources::of_folder(folder.clone()), Purpose::Build)
    };
    assert_eq!(finished(&[&layer]).find(STEP, KEY, "system").await.expect("no record"), None);
    vendor_layers::write(&folder, KEY, &[&layer.sha256]).expect("written");
    for (bytes, what) in [(None, "missing"), (Some(&b"other"[..]), "damaged")] {
        if let Some(bytes) = bytes {
            crate::store::write_atomically(&file, bytes).expect("written");
        }
        let error = finished(&[&layer]).find(STEP, KEY, "system").await.expect_err("damaged");
        assert!(error.to_string().contains(&format!("system is {what}")), "{error}");
        assert_eq!(error.exit(), Exit::Usage);
        let hint = format!("run `envforge vendor {folder} --layers` online to restore layers");
        assert!(error.hints()[0].starts_with(&hint), "{:?}", error.hints());
        assert_eq!(second.files(), Vec::<String>::new());
    }
    crate::store::write_atomically(&file, &tar).expect("written");
    assert_eq!(finished(&[]).find(STEP, KEY, "system").await.expect("nothing vouches for it"), None);
    let found = finished(&[&layer]).find(STEP, KEY, "system").await.expect("found");
    assert_eq!(found, Some(vec![layer.clone()]));
    assert_eq!(second.store.read(&layer.sha256).expect("readable").as_deref(), Some(tar.as_slice()));
    let state = server.state();
    assert!(state.requests.is_empty(), "{:?}", state.requests);
}

#[tokio::test]
async fn step_that_is_made_again_is_noted_once() {
    let (server, first, layers) = published().await;
    let finished = first.finished(&[], true);
    finished.made(KEY, "system", &layers).expect("ours");
    finished.made(&"cd".repeat(32), "apt", &layers[..1]).expect("ours");
    finished.made(KEY, "system", &layers).expect("ours");
    let keys: Vec<String> = finished.steps().into_iter().map(|step| step.key).collect();
    assert_eq!(keys, ["cd".repeat(32), KEY.to_owned()]);
    drop(server);
}

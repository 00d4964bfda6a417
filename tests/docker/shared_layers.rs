//! Layers that one machine of a team makes and the others take: from a registry, and from a vendor folder.

use std::path::Path;

use crate::engine::docker;
use crate::registry::Registry;
use crate::scene::{SPEC, Scene, TAG, copy_folder, files_below, give_downloads, shared_cache};

const LOCK: &str = "team.lock";
const WARNING: &str = "layers are made here instead of taken from there";

/// The same scene on another machine: cache and state of that name, with nothing but the record of the base, which the engine
/// has, and downloads. The engine loses the image.
fn on_machine(scene: Scene, name: &str) -> Scene {
    let (cache, state) =
        (scene.program.path(format!("{name}/cache")), scene.program.path(format!("{name}/state")));
    copy_folder(&scene.program.path("state/base"), &state.join("base"));
    give_files(&cache, &std::fs::read_to_string(scene.program.path(LOCK)).expect("a lock"));
    for tag in [TAG, "pytorch-cuda:2.7-cu118-unverified"] {
        if !docker(&["images", "-q", tag]).is_empty() {
            docker(&["rmi", tag]);
        }
    }
    scene
        .set("ENVFORGE_CACHE_DIR", cache.to_string_lossy())
        .set("ENVFORGE_STATE_DIR", state.to_string_lossy())
}

/// Puts the files of the shared cache into another, without the layers that a lock records.
fn give_files(cache: &Path, lock: &str) {
    let is_layer = |name: &str| lock.contains(&format!("diff-id = \"sha256:{name}\""));
    let (given, left_out) = give_downloads(cache, |name| !is_layer(name));
    assert!(given > 0 && left_out > 0, "{given} files, {left_out} layers");
    // And the base, which the engine need not have as an image.
    copy_folder(&shared_cache().join("base"), &cache.join("base"));
}

/// What a machine made in containers: records of steps, and compiled wheels.
fn made_in_containers(scene: &Scene, name: &str) -> (usize, usize) {
    let records = files_below(&scene.program.path(format!("{name}/cache/records")));
    let of = |folder: &str| {
        records.iter().filter(|path| path.parent().is_some_and(|parent| parent.ends_with(folder))).count()
    };
    let is_step = |path: &&std::path::PathBuf| {
        path.parent().is_some_and(|parent| parent.ends_with("layers")) && path.extension().is_some()
    };
    (records.iter().filter(is_step).count(), of("byte-code-2"))
}

fn image() -> String {
    docker(&["inspect", "-f", "{{.Id}}", TAG])
}

/// Changes the last byte of each layer on the disk of the registry.
fn damage_layers(registry: &Registry) {
    for file in files_below(Path::new(&registry.folder.path().join("data/docker/registry/v2/blobs"))) {
        let mut bytes = std::fs::read(&file).expect("a file of the registry");
        if bytes.starts_with(&[0x1f, 0x8b]) {
            *bytes.last_mut().expect("not empty") ^= 1;
            std::fs::write(&file, bytes).expect("written");
        }
    }
}

#[test]
#[ignore = "needs docker"]
fn second_machine_takes_the_layers_of_the_first_and_refuses_wrong_ones() {
    let registry = Registry::open();
    let scene = Scene::locked().set("ENVFORGE_LAYERS", format!("{}/team/layers", registry.host()));
    std::fs::write(scene.program.path(LOCK), scene.lock()).expect("ours");
    let scene = scene.set("ENVFORGE_LAYERS_WRITE", "true");
    scene.succeed(&["build", SPEC, "--lockfile", LOCK]);
    let first = image();
    assert!(registry.has_no_uploads());

    // Another machine with an empty disk, which may only read: nothing is made in a container.
    let build = ["build", SPEC, "--locked", "--lockfile", LOCK, "-v"];
    let scene = on_machine(scene.set("ENVFORGE_LAYERS_WRITE", "false"), "second");
    let run = scene.succeed(&build);
    assert_eq!(image(), first);
    assert_eq!(made_in_containers(&scene, "second"), (0, 0), "{}", run.stderr);
    assert!(run.stderr.contains("taken from there instead of made"), "{}", run.stderr);
    assert!(!run.stderr.contains(WARNING), "{}", run.stderr);

    // A registry that serves wrong layers.
    damage_layers(&registry);
    let scene = on_machine(scene, "third");
    scene.fail(&build, 3, &["serves a wrong layer"]);
    scene.assert_only_tags_added();
}

#[test]
#[ignore = "nightly: needs docker and ENVFORGE_INDEX, an index of everything"]
fn offline_machine_takes_the_layers_of_a_vendor_folder() {
    let scene = Scene::new();
    scene.succeed(&["vendor", SPEC, "vendor", "--layers", "--lockfile", LOCK]);
    scene.succeed(&["vendor", "vendor", "--check"]);
    scene.succeed(&["build", SPEC, "--locked", "--lockfile", LOCK]);
    let first = image();

    let build = ["build", SPEC, "--offline", "vendor", "-v"];
    let scene = on_machine(scene, "offline");
    let run = scene.succeed(&build);
    assert_eq!(image(), first);
    assert_eq!(made_in_containers(&scene, "offline"), (0, 0), "{}", run.stderr);

    // A changed layer is found by both.
    let records = files_below(&scene.program.path("vendor/layers"));
    let texts = records.iter().map(|file| std::fs::read_to_string(file).expect("a record"));
    let sha256 =
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).next().expect("a layer");
    let path = scene.program.path(format!("vendor/files/{}/{sha256}", &sha256[..2]));
    let mut bytes = std::fs::read(&path).expect("a layer");
    *bytes.last_mut().expect("not empty") ^= 1;
    std::fs::write(&path, bytes).expect("written");
    assert_eq!(scene.program.run(&["vendor", "vendor", "--check"]).code, 1);
    let scene = on_machine(scene, "damaged");
    scene.fail(&build, 2, &["is damaged"]);
}

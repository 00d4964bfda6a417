//! What nobody publishes, with the real engine: from a wheel that somebody built.

use std::path::PathBuf;

use crate::engine::docker;
use crate::framework::TORCH_2_8_CU118;
use crate::scene::{Scene, python_in};
use crate::shell::Terminal;
use crate::wheels::{Wheel, WheelSpec, sha256};

pub(crate) const SPEC: &str = "pytorch-cuda:2.8-cu118";
pub(crate) const TAG: &str = "pytorch-cuda:2.8.0-cu118-py3.11-unverified";

/// A scene whose index has the libraries of the release, and the release itself as wheels that no index has.
fn scene() -> (Scene, Vec<Wheel>) {
    let scene = Scene::new();
    let (built, others) =
        TORCH_2_8_CU118.wheels("cp311", "built").into_iter().partition(|wheel| wheel.file.contains("+cu118"));
    scene.index.publish(others);
    (scene, built)
}

fn written(scene: &Scene, wheel: &Wheel) -> String {
    let path: PathBuf = scene.program.path(&wheel.file);
    std::fs::write(&path, &wheel.bytes).expect("a folder of ours");
    path.to_string_lossy().into_owned()
}

#[test]
#[ignore = "nightly: needs docker, three minutes; `cli` locks prebuilt wheels without an engine"]
fn prebuilt_wheel_is_locked_built_and_checked() {
    let (scene, built) = scene();
    let named = |name: &str| built.iter().find(|wheel| wheel.project == name).expect("there");
    let (torch, vision) = (named("torch"), named("torchvision"));
    let (torch_file, vision_file) = (written(&scene, torch), written(&scene, vision));
    let args = ["build", SPEC, "--target", "any", "--wheel", &torch_file, "--wheel", &vision_file];
    let run = scene.succeed(&args);
    assert_eq!(run.stdout, format!("{TAG}\n{SPEC}-unverified\n"));
    assert!(run.stderr.contains("skipping torchaudio"), "{}", run.stderr);
    let said = python_in(TAG, "import torch, torchvision; print(torch.__version__, torchvision.__version__)");
    assert_eq!(said, "2.8.0+cu118 0.23.0+cu118");
    let lock = scene.lock();
    assert!(lock.contains(&sha256(&torch.bytes)) && lock.contains("index = \"local\""), "{lock}");
    assert!(!lock.contains("name = \"torchaudio\"") && !lock.contains(&torch_file), "{lock}");

    // The cache has them now: without the files, and exactly what the lock says.
    std::fs::remove_file(&torch_file).expect("a file of ours");
    scene.succeed(&["build", SPEC, "--target", "any", "--locked"]);
    scene.succeed(&["lock", SPEC, "--target", "any", "--check"]);
    let decisive = |lock: &str| lock.split("[records]").next().map(str::to_owned);
    assert_eq!(decisive(&scene.lock()), decisive(&lock));

    // Another wheel of the same name is another lock.
    let other = TORCH_2_8_CU118.wheels("cp311", "another");
    let other = other.iter().find(|wheel| wheel.project == "torch").expect("there");
    let file = written(&scene, other);
    scene.fail(&["build", SPEC, "--target", "any", "--locked", "--wheel", &file], 1, &["wheel of torch"]);
    scene.assert_only_tags_added();
}

#[test]
#[ignore = "needs docker"]
fn build_asks_on_a_terminal_before_it_compiles() {
    let (scene, _) = scene();
    let command = scene.program.command(&["build", SPEC, "--target", "any"]);
    let mut terminal = Terminal::open(&command, (100, 40));
    let said = terminal.wait_for("build it from source? [y/N]");
    for word in ["is not published for CUDA 11.8", "experimental", "GB for each compiler process", "time"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    terminal.type_in("n\n");
    terminal.wait_for("source build declined");
    assert_eq!(terminal.code(), 1);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs docker"]
fn missing_or_wrong_archive_is_reported_before_compiling() {
    let (scene, _) = scene();
    let mirror = format!("{}/archives", scene.index.url());
    let scene = scene.set("ENVFORGE_SOURCE_MIRROR", mirror);
    let build = ["build", SPEC, "--target", "any", "--yes"];
    let hint = "`[source] mirror` (ENVFORGE_SOURCE_MIRROR), or use a prebuilt wheel: `--wheel FILE`";
    scene.fail(&build, 3, &["cannot download source archive", "pytorch-v2.8.0", hint]);
    let asked = scene.index.seen().into_iter().find(|one| one.path.starts_with("/archives/"));
    let archive = asked.expect("the mirror was asked").path;
    scene.index.serve(&archive, b"another archive".to_vec());
    scene.fail(&build, 3, &["cannot download source archive", "SHA-256", hint]);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "nightly: needs docker and unpacks 3 GB of CUDA libraries; small_build has a wheel of another CUDA"]
fn wheel_with_content_of_another_name_gets_no_tag() {
    let (scene, _) = scene();
    let misbuilt = WheelSpec::new("torch", "2.8.0+cu118")
        .tag("cp311-cp311-linux_x86_64")
        .file("torch/__init__.py", "__version__ = '2.8.0+cu118'\n")
        .build();
    let file = written(&scene, &misbuilt);
    let said =
        scene.fail(&["build", SPEC, "--target", "any", "--wheel", &file], 1, &["not tagged", "failed"]);
    assert!(!scene.added().tags.contains(TAG), "{:#?}", scene.added());
    let image = said.lines().find_map(|line| line.split_once("docker rmi ")).expect("the image stays").1;
    docker(&["rmi", image]);
    scene.assert_nothing_left();
}

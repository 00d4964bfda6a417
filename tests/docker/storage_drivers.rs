//! One lock on two engines with different storage drivers, both without any layer: the same base, the same layers, the same image.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::engine::{docker, engine_socket};
use crate::engine_table;
use crate::export::build_exported;
use crate::program::Program;
use crate::scene::{SPEC, Scene, give_downloads_and, keep_downloads};

const LOCK: &str = "one.lock";
/// A tag of its own: others may use the second engine at the same time.
const TAG: &str = "two-drivers:1";

/// An engine beside that of the tests.
struct SecondEngine {
    address: String,
    driver: String,
    /// A daemon of this test, which ends when its input does.
    daemon: Option<(Child, Option<ChildStdin>)>,
    bases: Vec<String>,
}

impl SecondEngine {
    /// This machine's own, or one that is started with the simplest driver of all.
    fn other_than(driver: &str) -> Self {
        let own = "unix:///var/run/docker.sock";
        let is_other = engine_socket() != Path::new("/var/run/docker.sock");
        if is_other && let Some(found) = driver_of(own).filter(|found| found != driver) {
            return Self::at(own, found, None);
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench/overlay2.sh");
        let mut daemon = Command::new(script)
            .args(["sh", "-c", "echo \"$DOCKER_HOST\"; read -r line"])
            // Those of .ci/run have the first numbers.
            .env("ENGINE", "9")
            .env("STORAGE_DRIVER", if driver == "vfs" { "overlay2" } else { "vfs" })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut address = String::new();
        let said = daemon.stdout.take().expect("it is piped");
        BufReader::new(said).read_line(&mut address).expect("a line");
        let address = address.trim();
        let found = driver_of(address).filter(|found| found != driver);
        let found = found.unwrap_or_else(|| {
            panic!(
                "this test compares two storage drivers: of {driver} alone it proves nothing. It needs root and dockerd, to \
                 start a second engine (tests/bench/overlay2.sh)"
            )
        });
        let input = daemon.stdin.take();
        Self::at(address, found, Some((daemon, input)))
    }

    fn at(address: &str, driver: String, daemon: Option<(Child, Option<ChildStdin>)>) -> Self {
        Self { bases: bases(address), address: address.to_owned(), driver, daemon }
    }

    fn layers(&self) -> String {
        engine_table::docker(&self.address, &["inspect", "-f", "{{json .RootFS.Layers}}", &unverified()])
    }
}

impl Drop for SecondEngine {
    fn drop(&mut self) {
        let run = |args: &[&str]| Command::new("docker").args(["-H", &self.address]).args(args).output();
        drop(run(&["rmi", "-f", &unverified()]));
        for base in bases(&self.address).iter().filter(|base| !self.bases.contains(base)) {
            drop(run(&["rmi", base]));
        }
        if let Some((daemon, input)) = &mut self.daemon {
            drop(input.take());
            drop(daemon.wait());
        }
    }
}

fn driver_of(address: &str) -> Option<String> {
    let info = Command::new("docker").args(["-H", address, "info", "-f", "{{.Driver}}"]).output().ok()?;
    let driver = String::from_utf8_lossy(&info.stdout).trim().to_owned();
    (info.status.success() && !driver.is_empty()).then_some(driver)
}

fn bases(address: &str) -> Vec<String> {
    let list = Command::new("docker").args(["-H", address, "images", "-q", "envforge-base"]).output();
    let text = list.map(|list| String::from_utf8_lossy(&list.stdout).into_owned()).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn unverified() -> String {
    format!("{TAG}-unverified")
}

fn records(program: &Program) -> toml::Table {
    let lock = std::fs::read_to_string(program.path(LOCK)).expect("a lock");
    lock.parse::<toml::Table>().expect("TOML")["records"].as_table().expect("records").clone()
}

/// A scene with the lock of the small build as [`LOCK`].
fn scene_with_lock() -> Scene {
    let scene = Scene::locked();
    std::fs::copy(scene.lock_path(), scene.program.path(LOCK)).expect("a file of ours");
    scene
}

/// The same, the storage driver of its engine, and an engine with another one.
fn two_engines() -> (Scene, String, SecondEngine) {
    let scene = scene_with_lock();
    let driver = docker(&["info", "-f", "{{.Driver}}"]);
    let second = SecondEngine::other_than(&driver);
    (scene, driver, second)
}

#[test]
#[ignore = "nightly: needs docker and makes a base on two engines, four minutes"]
fn one_lock_without_any_layer_gives_one_image_on_two_storage_drivers() {
    let (scene, driver, second) = two_engines();

    let (cache, other) = (scene.program.path("one/cache"), scene.program.path("other/cache"));
    // Byte code is compiled on both.
    give_downloads_and(&cache, &["base"]);
    let state = scene.program.path("other/state");
    std::fs::create_dir_all(&state).expect("a folder of ours");
    std::fs::copy(scene.program.path("state/cache-key"), state.join("cache-key")).expect("a file of ours");

    let build = ["build", SPEC, "--lockfile", LOCK, "-t", TAG, "--json"];
    let scene = scene.set("ENVFORGE_CACHE_DIR", cache.to_string_lossy());
    scene.succeed(&build);
    scene.succeed(&["lock", SPEC, "--lockfile", LOCK, "--digest"]);
    let (layers, first) =
        (docker(&["inspect", "-f", "{{json .RootFS.Layers}}", &unverified()]), records(&scene.program));

    keep_downloads(&cache, &std::fs::read_to_string(scene.program.path(LOCK)).expect("a lock"));
    give_downloads_and(&other, &[]);
    let scene = scene
        .set("DOCKER_HOST", &second.address)
        .set("ENVFORGE_CACHE_DIR", other.to_string_lossy())
        .set("ENVFORGE_STATE_DIR", state.to_string_lossy());
    let run = scene.program.run(&[&build[..], &["--locked"]].concat());
    assert_eq!(run.code, 0, "{driver} and {}: {}", second.driver, run.stderr);
    assert!(run.stderr.contains("install "), "the base was made anew: {}", run.stderr);
    // The lock records configuration, layers and content by now: the second build was held to them.
    assert_eq!(records(&scene.program), first);
    assert_eq!(second.layers(), layers, "{driver} and {}", second.driver);
    docker(&["rmi", &unverified()]);
}

/// Without envforge, by the engine's own client, it is the same image file by file.
#[test]
#[ignore = "nightly: needs docker and builds a Dockerfile on two engines, some minutes"]
fn exported_dockerfile_gives_the_content_of_the_lock_on_two_storage_drivers() {
    let (scene, driver, second) = two_engines();
    let folder = scene.program.path("exported");
    scene.succeed(&["build", SPEC, "--lockfile", LOCK, "-t", TAG]);
    scene.succeed(&["lock", SPEC, "--lockfile", LOCK, "--digest"]);
    scene.succeed(&["export", "dockerfile", SPEC, &folder.to_string_lossy(), "--lockfile", LOCK]);
    let content = records(&scene.program)["content"].as_str().expect("a digest").to_owned();

    let state = scene.program.path("other/state");
    std::fs::create_dir_all(&state).expect("a folder of ours");
    let own = format!("unix://{}", engine_socket().display());
    // Its base, which the Dockerfile names.
    let scene = scene.set("DOCKER_HOST", &second.address).set("ENVFORGE_STATE_DIR", state.to_string_lossy());
    scene.succeed(&["build", SPEC, "--lockfile", LOCK, "-t", TAG, "--locked"]);
    for engine in [&own, &second.address] {
        let tag = "two-drivers-exported:1";
        build_exported(&scene, &folder, engine, tag);
        let found = engine_table::content_on(engine, tag);
        engine_table::docker(engine, &["rmi", "-f", tag]);
        assert_eq!(found, content, "{driver} and {}: {engine}", second.driver);
    }
    docker(&["rmi", &unverified()]);
}

/// A lock of an envforge that made other layers of the same packages.
#[test]
#[ignore = "needs docker"]
fn records_of_another_layout_are_told_of_and_neither_compared_nor_refused() {
    let scene = scene_with_lock();
    let build = ["build", SPEC, "--lockfile", LOCK];
    let digest = ["lock", SPEC, "--lockfile", LOCK, "--digest"];
    scene.succeed(&build);
    scene.succeed(&digest);
    let recorded = records(&scene.program);

    let text = std::fs::read_to_string(scene.program.path(LOCK)).expect("a lock");
    let mut lock = text.clone();
    for name in ["content", "config"] {
        let value = recorded[name].as_str().expect("a digest");
        let other = format!("{}{}", &value[..value.len() - 8], "0".repeat(8));
        lock = lock.replace(&format!("{name} = \"{value}\""), &format!("{name} = \"{other}\""));
    }
    let layout = recorded["layout"].as_integer().expect("a number");
    let old = lock.replace(&format!("layout = {layout}\n"), "layout = 1\n");
    assert!(layout != 1 && old != lock && lock != text, "{old}");
    std::fs::write(scene.program.path(LOCK), &old).expect("ours");

    let run = scene.succeed(&[build.as_slice(), &["--locked"]].concat());
    assert!(run.stderr.contains("are of layout 1, not"), "{}", run.stderr);
    assert_eq!(std::fs::read_to_string(scene.program.path(LOCK)).expect("a lock"), old);
    let run = scene.succeed(&build);
    assert!(run.stderr.contains("recording new ones"), "{}", run.stderr);
    let anew = records(&scene.program);
    assert_eq!((&anew["layout"], &anew["config"]), (&recorded["layout"], &recorded["config"]));
    assert_eq!((&anew["layers"], anew.get("content")), (&recorded["layers"], None));
    let run = scene.succeed(&[build.as_slice(), &["--locked"]].concat());
    assert!(!run.stderr.contains("of layout"), "{}", run.stderr);
    scene.succeed(&digest);
    assert_eq!(records(&scene.program), recorded);
    scene.assert_only_tags_added();
}

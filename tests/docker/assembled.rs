//! The assembled builder: the same digest each time, and no code of a wheel runs. `project` compares it with the Dockerfile's.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::engine::docker;
use crate::made_wheel::MadeWheel;
use crate::mirrors::run_at;
use crate::program::Run;
use crate::scene::{SPEC, Scene, TAG, files_below, shared_cache};
use crate::wheels::{Wheel, WheelSpec};

const BUILD: [&str; 4] = ["build", SPEC, "--locked", "--json"];

fn built(scene: &Scene, args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&scene.succeed(args).stdout).expect("JSON")
}

#[test]
#[ignore = "needs docker"]
fn image_is_the_same_each_time() {
    let scene = Scene::locked();
    let first = built(&scene, &BUILD);
    let id = docker(&["inspect", "-f", "{{.Id}}", TAG]);
    assert_eq!(first["image"], id.as_str());
    assert!(docker(&["inspect", "-f", "{{.Created}}", TAG]).starts_with("1980-01-02"));
    scene.assert_only_tags_added();

    // From nothing, with a clock a year off: every layer is made again, and a wheel that was damaged in the cache is
    // downloaded again.
    damage_a_wheel(&scene);
    docker(&["rmi", TAG, "pytorch-cuda:2.7-cu118-unverified"]);
    let again = run_at(&scene, "+1y", &[BUILD.as_slice(), &["--no-cache"]].concat());
    assert_eq!(again.code, 0, "{}", again.stderr);
    let again: serde_json::Value = serde_json::from_str(&again.stdout).expect("JSON");
    assert_eq!((&again["image"], &again["content"]), (&first["image"], &first["content"]));
    docker(&["rmi", TAG, "pytorch-cuda:2.7-cu118-unverified"]);
    drop(Command::new("docker").args(["rmi", &id]).output());
    scene.assert_nothing_left();
}

/// The wheel of torch in the cache.
fn cached_torch(scene: &Scene) -> PathBuf {
    let lock: toml::Table = scene.lock().parse().expect("TOML");
    let mut wheels = lock["wheels"].as_array().expect("a list").iter();
    let torch = wheels.find(|wheel| wheel["name"].as_str() == Some("torch")).expect("torch is locked");
    let sha256 = torch["sha256"].as_str().expect("a hash");
    shared_cache().join("sha256").join(&sha256[..2]).join(sha256)
}

/// Changes a byte of torch's wheel in the cache.
fn damage_a_wheel(scene: &Scene) {
    let path = cached_torch(scene);
    let mut bytes = std::fs::read(&path).expect("the wheel is in the cache");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    // The file may have another name, in the cache of another engine.
    std::fs::remove_file(&path).expect("ours");
    std::fs::write(&path, bytes).expect("written");
}

#[test]
#[ignore = "needs docker"]
fn no_code_of_a_wheel_runs_in_a_build() {
    let scene = Scene::locked();
    let evil = "import os; open('/opt/env/ran', 'w'); open('/tmp/ran', 'w'); os._exit(3)";
    let wheel = WheelSpec::new("evil", "1.0")
        .file("evil.pth", &format!("import os; exec(\"{evil}\")\n"))
        .file("sitecustomize.py", evil)
        .file("usercustomize.py", evil)
        .file("evil/__init__.py", evil)
        .file("evil-1.0.dist-info/entry_points.txt", "[console_scripts]\npython-evil = evil:main\n")
        .build();
    scene.index.publish(vec![wheel]);
    let address = format!("{}/own", scene.index.url());
    let scene = scene.set("ENVFORGE_INDEX_OWN", address);
    let evil = "{ name = \"evil\", index = \"own\" }";
    let report = built(&scene, &["build", SPEC, "--with", evil, "--json"]);
    let image = report["tags"][0].as_str().expect("a tag");
    let container = docker(&["create", image]);
    let list = Command::new("docker").args(["export", &container]).output().expect("docker runs").stdout;
    docker(&["rm", &container]);
    docker(&["rmi", image]);
    let mut archive = tar::Archive::new(list.as_slice());
    let paths = archive
        .entries()
        .expect("a tar")
        .map(|entry| entry.expect("an entry").path().expect("a path").to_string_lossy().into_owned());
    let found: Vec<String> = paths.filter(|path| path.ends_with("/ran") || path.contains("evil")).collect();
    assert!(!found.iter().any(|path| path.ends_with("/ran")), "{found:?}");
    assert!(
        found.iter().any(|path| path.ends_with("evil/__pycache__/__init__.cpython-311.pyc")),
        "{found:?}"
    );
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs docker"]
fn four_builds_of_one_spec_at_once_give_one_image() {
    let scene = Scene::fresh();
    scene.succeed(&["lock", SPEC]);
    let start = || scene.program.command(&["build", SPEC, "--locked", "--json"]).spawn().expect("it starts");
    let all = [start(), start(), start(), start()];
    let images: Vec<_> = all
        .into_iter()
        .map(|child| {
            let run = Run::of(&child.wait_with_output().expect("a child of ours"));
            assert_eq!(run.code, 0, "{}", run.stderr);
            let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
            report["image"].as_str().expect("an id").to_owned()
        })
        .collect();
    assert!(images.iter().all(|image| *image == images[0]), "{images:?}");
    scene.assert_only_tags_added();
}

#[test]
#[ignore = "nightly: needs docker, two minutes; `image_is_the_same_each_time` damages a wheel in the cache"]
fn wheel_that_is_cut_in_the_cache_is_downloaded_again() {
    let scene = Scene::fresh();
    scene.succeed(&["build", SPEC]);
    let first = docker(&["inspect", "-f", "{{.Id}}", TAG]);
    docker(&["rmi", TAG, "pytorch-cuda:2.7-cu118-unverified"]);
    let path = cached_torch(&scene);
    let length = std::fs::metadata(&path).expect("the wheel is in the cache").len();
    std::fs::File::options().write(true).open(&path).and_then(|file| file.set_len(length / 2)).expect("cut");
    scene.index.take_downloads();
    scene.succeed(&["build", SPEC]);
    assert_eq!(docker(&["inspect", "-f", "{{.Id}}", TAG]), first);
    let downloads = scene.index.take_downloads();
    assert!(downloads.iter().any(|path| path.contains("torch-2.7.1")), "{downloads:?}");
}

#[test]
#[ignore = "nightly: needs docker and makes every layer anew, two minutes; `shared_layers` builds on a second machine"]
fn committed_lock_builds_with_an_empty_state_and_no_index_in_the_settings() {
    let scene = Scene::locked();
    let lock: toml::Table = scene.lock().parse().expect("TOML");
    let wheels = lock["wheels"].as_array().expect("a list");
    // Another machine's cache: it lacks the wheels of the developer stack.
    let stack: Vec<String> = wheels
        .iter()
        .filter(|wheel| wheel["layer"].as_str() == Some("stack"))
        .map(|wheel| wheel["sha256"].as_str().expect("a hash").to_owned())
        .collect();
    assert!(stack.len() > 20, "{stack:?}");
    let cache = scene.program.path("cache");
    for folder in ["sha256", "base"] {
        for file in files_below(&shared_cache().join(folder)) {
            let name = file.file_name().expect("a name").to_string_lossy().into_owned();
            let to = cache.join(file.strip_prefix(shared_cache()).expect("below it"));
            if !stack.contains(&name) {
                std::fs::create_dir_all(to.parent().expect("a folder")).expect("ours");
                std::fs::hard_link(&file, &to)
                    .or_else(|_| std::fs::copy(&file, &to).map(drop))
                    .expect("ours");
            }
        }
    }
    let scene = scene.set("ENVFORGE_CACHE_DIR", cache.to_string_lossy());
    let text = scene.lock();
    let report = built(&scene, &["build", SPEC, "--locked", "--no-cache", "--json"]);
    assert_eq!(report["lock_file"], scene.lock_path().to_string_lossy().as_ref());
    let has = |sha256: &String| cache.join("sha256").join(&sha256[..2]).join(sha256).is_file();
    assert!(stack.iter().all(has), "the wheels were downloaded");
    // The addresses that the base's uv gave are of this machine: none is in the lock.
    assert_eq!(scene.lock(), text, "`--locked` writes nothing into it");
    assert!(!scene.lock().contains("://"), "{}", scene.lock());
    scene.assert_only_tags_added();
}

#[test]
#[ignore = "needs docker"]
fn build_says_which_wheels_install_one_path_once_they_are_here() {
    let scene = Scene::locked();
    // No other run has them in the cache.
    let own = scene.program.path("").display().to_string();
    let wheel =
        |name: &str| WheelSpec::new(name, "1.0").file("shared/x.py", &format!("# {name} {own}\n")).build();
    scene.index.publish(vec![wheel("one"), wheel("two")]);
    let address = format!("{}/own", scene.index.url());
    let scene = scene.set("ENVFORGE_INDEX_OWN", address);
    let added =
        ["--with", "{ name = \"one\", index = \"own\" }", "--with", "{ name = \"two\", index = \"own\" }"];
    let text = "`one` and `two` install different files at `shared/x.py`: those of `two` stay";
    let lock = scene.succeed(&[&["lock", SPEC], added.as_slice()].concat());
    assert!(!lock.stderr.contains("shared/x.py"), "{}", lock.stderr);

    let build = scene.program.run(&[&["build", SPEC, "--locked", "--json"], added.as_slice()].concat());
    assert_eq!(build.stderr.matches("shared/x.py").count(), 1, "{}", build.stderr);
    assert!(build.stderr.contains(text), "{}", build.stderr);
    let report: serde_json::Value = serde_json::from_str(&build.stdout).expect("JSON");
    let told = |report: &serde_json::Value| {
        let all = report["misfits"].as_array().expect("a list").iter();
        let same = all.filter(|misfit| misfit["kind"] == "same-path");
        same.map(|misfit| misfit["text"].as_str().expect("a text").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(told(&report), [text]);
    let lock = built(&scene, &[&["lock", SPEC, "--json"], added.as_slice()].concat());
    assert_eq!(told(&lock), [text]);
    docker(&["rmi", report["tags"][0].as_str().expect("a tag")]);
    scene.assert_nothing_left();
}

/// A wheel for this processor with a library that names others and uses nothing of them.
fn wheel_that_needs(folder: &Path, sonames: &[&str]) -> Wheel {
    std::fs::create_dir_all(folder).expect("ours");
    std::fs::write(folder.join("a.c"), "int given(void) { return 1; }").expect("ours");
    let compile = |out: &str, flags: &[&str]| {
        let words = ["-shared", "-fPIC", "-nostdlib", "-o", out, "a.c"];
        let status = Command::new("cc").current_dir(folder).args(words).args(flags).status();
        assert!(status.expect("a C compiler").success());
    };
    for soname in sonames {
        compile(soname, &[&format!("-Wl,-soname,{soname}")]);
    }
    compile("_C.so", &[["-Wl,--no-as-needed"].as_slice(), sonames].concat());
    let library = std::fs::read(folder.join("_C.so")).expect("compiled");
    Wheel {
        project: "odd".to_owned(),
        file: format!("odd-1.0-py3-none-manylinux_2_28_{}.whl", std::env::consts::ARCH),
        bytes: MadeWheel::new("odd").file("odd/_C.so", &library).build(),
        metadata: "Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n".to_owned(),
    }
}

/// The check of the image judges by the same rule.
#[test]
#[ignore = "needs docker"]
fn build_names_missing_libraries_before_it_makes_a_layer() {
    let scene = Scene::locked();
    let wheel = wheel_that_needs(&scene.program.path("odd"), &["libGL.so.1", "libodd.so.2", "libz.so.1"]);
    scene.index.publish(vec![wheel]);
    let address = format!("{}/own", scene.index.url());
    let scene = scene.set("ENVFORGE_INDEX_OWN", address);
    let added = ["--with", "{ name = \"odd\", index = \"own\" }"];
    let lock = scene.succeed(&[&["lock", SPEC], added.as_slice()].concat());
    assert!(!lock.stderr.contains("libodd"), "{}", lock.stderr);

    let build = scene.program.run(&[&["build", SPEC, "--locked", "--json"], added.as_slice()].concat());
    assert_eq!(build.code, 1, "{}", build.stderr);
    let text = "`odd 1.0` needs libraries that the image lacks: libGL.so.1, libodd.so.2 (apt: libgl1)";
    assert!(build.stderr.contains(text), "{}", build.stderr);
    assert!(build.stderr.contains("to add these libraries: `--apt libgl1`"), "{}", build.stderr);
    let report: serde_json::Value = serde_json::from_str(&build.stdout).expect("JSON");
    let all = report["misfits"].as_array().expect("a list");
    let missing = all.iter().find(|misfit| misfit["kind"] == "system-library").expect("one");
    assert_eq!(missing["libraries"], serde_json::json!(["libGL.so.1", "libodd.so.2"]));
    docker(&["rmi", report["image"].as_str().expect("an image")]);
    scene.assert_nothing_left();
}

//! A framework from its own index, end to end: lock, build, checks, tag; and the same again from the caches.

use crate::engine::docker;
use crate::scene::{SPEC, Scene, TAG, python_in};

#[test]
#[ignore = "needs docker"]
fn framework_is_locked_built_checked_and_tagged() {
    let scene = Scene::new();
    let run = scene.program.run(&["build", SPEC, "--locked"]);
    assert_eq!(run.code, 1, "there is no lock yet: {}", run.stderr);
    let run = scene.succeed(&["build", SPEC]);
    assert!(run.stderr.contains("unverified"), "the last lines say how to promote it: {}", run.stderr);
    let said = python_in(TAG, "import torch; print(torch.__version__, torch.version.cuda)");
    assert_eq!(said, "2.7.1+cu118 11.8");
    assert_the_lock_names_the_kind_of_index_only(&scene);

    scene.assert_only_tags_added();
    assert_eq!(docker(&["inspect", "-f", "{{.Config.User}}", TAG]), "1000:1000");

    let id = docker(&["inspect", "-f", "{{.Id}}", TAG]);
    scene.index.take_downloads();
    scene.succeed(&["build", SPEC]);
    assert_eq!(scene.index.take_downloads(), Vec::<String>::new(), "the second build downloads nothing");
    assert_eq!(docker(&["inspect", "-f", "{{.Id}}", TAG]), id, "the second build gives the same image");

    let first = scene.lock();
    scene.succeed(&["lock", SPEC]);
    assert_eq!(scene.lock(), first);
}

#[track_caller]
fn assert_the_lock_names_the_kind_of_index_only(scene: &Scene) {
    let text = scene.lock();
    assert!(
        !text.contains("://172.") && !text.contains(&scene.index.url()),
        "an address in the lock: {text}"
    );
    let lock: toml::Table = text.parse().expect("the lock is TOML");
    let wheels = lock["wheels"].as_array().expect("a list of wheels");
    let index_of = |name: &str| {
        let found = wheels.iter().find(|wheel| wheel["name"].as_str() == Some(name));
        found.and_then(|wheel| wheel["index"].as_str()).unwrap_or_else(|| panic!("no `{name}` in the lock"))
    };
    assert_eq!(index_of("torch"), "framework");
    assert_eq!(index_of("torchvision"), "framework");
    assert_eq!(index_of("jupyterlab"), "default");
    for wheel in wheels {
        for value in wheel.as_table().expect("a wheel").values().filter_map(toml::Value::as_str) {
            assert!(!value.contains("://"), "an address in the lock: {value}");
        }
    }
}

#[test]
#[ignore = "nightly: needs docker and makes two bases from nothing, three minutes"]
fn two_users_of_one_engine_bootstrap_the_same_base() {
    let scene = Scene::new().with_empty_cache_for_locks();
    let start = |user: &str| {
        let mut command = scene.program.command(&["lock", SPEC, "--base-provider", "bootstrap"]);
        for (name, folder) in [("ENVFORGE_CACHE_DIR", "cache"), ("ENVFORGE_STATE_DIR", "state")] {
            command.env(name, scene.program.path(format!("{folder}-of-{user}")));
        }
        command.spawn().expect("the program starts")
    };
    let (one, two) = (start("one"), start("two"));
    for child in [one, two] {
        let output = child.wait_with_output().expect("a child of ours");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs docker"]
fn framework_that_reports_another_cuda_gets_no_tag() {
    let scene = Scene::new();
    scene.index.publish(crate::framework::TORCH_2_7_CU118_MISBUILT.wheels("cp311", "misbuilt"));
    scene.fail(&["build", SPEC], 1, &["12.6", "11.8"]);
    let tags = scene.added().tags;
    assert!(!tags.iter().any(|tag| tag.starts_with("pytorch-cuda:")), "{tags:?}");
}

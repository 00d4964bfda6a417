//! `--cuda` and `--python`: they restrict a spec wherever one is taken, and never change what it says.

use envforge::model::lock::Lock;
use serde_json::Value;

use crate::vendor::lock_and_index;
use crate::verify::{H200, SPEC, Scene, cdi, lock, report};
use crate::{assert_message, envforge, program};

fn name(args: &[&str]) -> Value {
    let run = envforge(&[&["plan", "--json", "--target", "any"], args].concat());
    assert_eq!(run.code, 0, "{args:?}: {}", run.stderr);
    let plan: Value = serde_json::from_str(&run.stdout).expect("JSON");
    plan["name"].clone()
}

#[test]
fn options_mean_what_the_spec_would_say() {
    let full = "pytorch-cuda:2.8.0-cu126-py3.12";
    assert_eq!(name(&["pytorch-cuda:2.8-cu126-py3.12"]), full);
    assert_eq!(name(&["pytorch-cuda:2.8", "--cuda", "12.6", "--python", "3.12"]), full);
    assert_eq!(name(&["torch:2.8-cu12", "--cuda", "cu126", "--python", "py312"]), full);
    assert_eq!(name(&["pytorch-cuda:2.8-cu126-py3.12", "--cuda", "12", "--python", "3.12"]), full);
    assert_ne!(name(&["pytorch-cuda:2.8"]), full);
}

#[test]
fn contradiction_is_an_error_of_the_call_with_both_values() {
    let program = program().with("DOCKER_HOST", "unix:///nonexistent.sock");
    let verbs: [&[&str]; 7] =
        [&["plan"], &["lock"], &["build"], &["outdated"], &["vendor"], &["export", "dockerfile"], &["shell"]];
    for verb in verbs {
        let dir: &[&str] = if ["vendor", "export"].contains(&verb[0]) { &["out"] } else { &[] };
        let code = if verb == ["shell"] { 125 } else { 2 };
        let run = |options: &[&str]| {
            program.run(&[verb, &["pytorch-cuda:2.8-cu128-py3.11"], dir, options].concat())
        };
        let says =
            ["--python 3.12 contradicts `py3.11` of spec `pytorch-cuda:2.8-cu128-py3.11`", "omit --python"];
        assert_message(&run(&["--python", "3.12"]), code, &says);
        assert_message(&run(&["--cuda", "12.6"]), code, &["--cuda 12.6 contradicts `cu128` of spec"]);
        assert_message(
            &run(&["--cuda", "twelve"]),
            code,
            &["invalid value `twelve` for --cuda", "cu128 or 12.8"],
        );
        // What agrees goes on.
        let agrees = run(&["--cuda", "12.8", "--python", "3.11"]);
        assert!(!agrees.stderr.contains("contradicts"), "{}", agrees.stderr);
    }
    assert!(!program.path("out").exists());
}

/// A spec names an image or a lock there; whatever else is named has its own CUDA and Python.
#[test]
fn names_of_images_and_locks_are_restricted_as_specs() {
    let lock = lock();
    let scene = Scene::new(cdi(report(&lock, H200, true)), &lock);
    std::fs::write(scene.program.path("old.lock"), lock.to_toml()).expect("ours");
    let verbs: [(&[&str], &[&str]); 6] = [
        (&["verify"], &[]),
        (&["push"], &["127.0.0.1:9/team/torch:1"]),
        (&["inspect"], &[]),
        (&["size"], &[]),
        (&["diff"], &["old.lock"]),
        (&["why", "torch"], &[]),
    ];
    for (verb, rest) in verbs {
        let run = |name: &str, options: &[&str]| scene.program.run(&[verb, &[name], rest, options].concat());
        let says = ["--python 3.12 contradicts `py3.11` of spec `pytorch-cuda:2.8-cu128-py3.11`"];
        assert_message(&run("pytorch-cuda:2.8-cu128-py3.11", &["--python", "3.12"]), 2, &says);
        // The image of a spec is that of the whole one.
        let other = run("pytorch-cuda:2.8", &["--cuda", "12.6"]);
        assert!(other.code != 0 && !other.stderr.contains("contradicts"), "{verb:?}: {}", other.stderr);
        if verb != ["why", "torch"] {
            assert!((other.stdout + &other.stderr).contains("cu126"), "{verb:?}");
        }
        if verb != ["diff"] {
            let says = ["--cuda requires a spec", "omit --cuda, or name a spec"];
            assert_message(&run("old.lock", &["--cuda", "12.8"]), 2, &says);
        }
    }
    for verb in ["inspect", "size", "verify"] {
        let run = scene.program.run(&[verb, "pytorch-cuda:2.8", "--cuda", "12.8", "--python", "3.11"]);
        assert_eq!(run.code, 0, "{verb}: {}", run.stderr);
    }
}

/// The second side of a comparison is the project, in one of its environments.
#[test]
fn diff_compares_with_an_environment_of_the_project() {
    let (lock, _index) = lock_and_index();
    let scene = Scene::new(cdi(report(&lock, H200, true)), &lock);
    let program = &scene.program;
    let text = format!("schema = 1\nname = 'p'\nspec = '{SPEC}'\n[environments.train]\nspec = '{SPEC}'\n");
    std::fs::write(program.path("envforge.toml"), text).expect("ours");
    let other = Lock { wheels: lock.wheels[..1].to_vec(), ..lock.clone() };
    std::fs::write(program.path("envforge.lock"), lock.to_toml()).expect("ours");
    std::fs::write(program.path("envforge.train.lock"), other.to_toml()).expect("ours");
    let diff = |args: &[&str]| program.run(&[&["diff", "--json"], args].concat());
    let changes = |args: &[&str]| -> Value {
        let run = diff(args);
        assert_eq!(run.code, 0, "{args:?}: {}", run.stderr);
        serde_json::from_str::<Value>(&run.stdout).expect("JSON")["changes"].clone()
    };
    assert_eq!(changes(&["envforge.lock"]), serde_json::json!([]));
    assert_ne!(changes(&["envforge.lock", "-E", "train"]), serde_json::json!([]));
    assert_eq!(changes(&["envforge.train.lock", "-E", "train", "--project", "."]), serde_json::json!([]));
    let both = diff(&["envforge.lock", "envforge.train.lock", "-E", "train"]);
    assert_message(&both, 2, &["`--environment` cannot be combined with a spec: `envforge.train.lock`"]);
}

#[test]
fn project_is_restricted_too() {
    let program = program();
    std::fs::write(program.path("envforge.toml"), "schema = 1\nspec = 'pytorch-cuda:2.8-py3.11'\n")
        .expect("ours");
    let run = program.run(&["plan", "--cuda", "12.6", "--json"]);
    let plan: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(plan["name"], "pytorch-cuda:2.8.0-cu126-py3.11", "{}", run.stderr);
    let says = ["--python 3.12 contradicts `py3.11` of spec `pytorch-cuda:2.8-py3.11`"];
    assert_message(&program.run(&["plan", "--python", "3.12"]), 2, &says);
    let says = ["--python requires a spec or a project"];
    assert_message(&program.run(&["shell", "debian:12", "--python", "3.12"]), 125, &says);
}

#[test]
fn list_takes_the_same_words() {
    let specs = |cuda: &str| envforge(&["list", "pytorch-cuda", "--all", "--cuda", cuda]).stdout;
    assert!(specs("cu126").contains("2.8.0-cu126"));
    assert_eq!(specs("cu126"), specs("12.6"));
    assert!(specs("12").len() > specs("12.6").len());
    assert_message(&envforge(&["list", "--cuda", "twelve"]), 2, &["invalid value `twelve` for --cuda"]);
    assert_message(&envforge(&["list", "--python", "three"]), 2, &["invalid value `three` for --python"]);
}

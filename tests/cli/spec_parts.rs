//! `--cuda` and `--python`: they restrict a spec wherever one is taken, and never change what it says.

use serde_json::Value;

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

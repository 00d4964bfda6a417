//! Specs that cannot be read or are not in the matrix.

use crate::terminal::run_on_terminal;
use crate::{assert_80_columns, assert_message, envforge, said};

#[test]
fn unknown_name_suggests_the_closest_ones() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cud:2.8-cu128"]));
    assert_message(&envforge(&["plan", "pytorch-cud:2.8-cu128"]), 1, &["pytorch-cud", "`pytorch-cuda`"]);
}

#[test]
fn unknown_version_suggests_the_closest_ones() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.88-cu128"]));
    assert_message(&envforge(&["plan", "pytorch-cuda:2.88"]), 1, &["unknown-version", "2.88", "2.8.0"]);
}

#[test]
fn invalid_spec_is_reported_with_its_place() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.8-cu128-py3.11-nonsense"]));
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.8-cu"]));
}

#[test]
#[ignore = "needs docker"]
fn every_command_rejects_an_invalid_spec_first() {
    for args in [
        vec!["plan", "pytorch-cuba"],
        vec!["lock", "pytorch-cuba"],
        vec!["build", "pytorch-cuba"],
        vec!["export", "dockerfile", "pytorch-cuba", "out"],
    ] {
        let program = crate::program();
        let run = program.run(&args);
        assert_message(&run, 1, &["unknown-name", "pytorch-cuba", "pytorch-cuda"]);
        let mut command = program.command(&args);
        command.env("NO_COLOR", "1");
        assert_80_columns(&run_on_terminal(command, ""));
        assert!(!program.path("out").exists());
    }
}

#[test]
fn exit_code_distinguishes_invalid_from_unpublished_specs() {
    assert_eq!(envforge(&["plan", "pytorch-cuda:2.8:2.9"]).code, 2);
    assert_eq!(envforge(&["plan", ""]).code, 2);
    assert_eq!(envforge(&["plan", "pytorch-cuda:2.9-cu118"]).code, 1);
}

#[test]
fn every_spelling_is_equivalent() {
    let name = |spec: &str| {
        let run = envforge(&["plan", spec, "--json"]);
        assert_eq!(run.code, 0, "{spec}: {}", run.stderr);
        let plan: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
        plan["name"].as_str().map(str::to_owned).expect("a name")
    };
    for spec in [
        "pytorch-cuda:2.8-cu128",
        "pytorch-cuda:2.8.0-cu128",
        "pytorch-cuda:v2.8-cu12.8",
        "pytorch-cuda:2.8.0+cu128",
        "pytorch-cuda:2.8-cuda12.8-py311",
        "pytorch-cuda:2.8-cu128-py3.11-runtime",
    ] {
        assert_eq!(name(spec), "pytorch-cuda:2.8.0-cu128-py3.11", "{spec}");
    }
}

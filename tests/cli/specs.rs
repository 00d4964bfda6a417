//! Specs that cannot be read or are not in the matrix.

use crate::{assert_80_columns, assert_message, envforge, said};

#[test]
fn an_unknown_name_gets_the_nearest_ones() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cud:2.8-cu128"]));
    assert_message(&envforge(&["plan", "pytorch-cud:2.8-cu128"]), 1, &["pytorch-cud", "`pytorch-cuda`"]);
}

#[test]
fn an_unknown_version_gets_the_nearest_ones() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.88-cu128"]));
    assert_message(&envforge(&["plan", "pytorch-cuda:2.88"]), 1, &["unknown-version", "2.88", "2.8.0"]);
}

#[test]
fn a_spec_that_is_no_spec_is_pointed_at() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.8-cu128-py3.11-nonsense"]));
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.8-cu"]));
}

#[test]
#[cfg_attr(not(feature = "docker"), ignore = "needs docker: cargo test --features docker")]
fn every_command_that_takes_a_spec_refuses_a_wrong_one_before_anything_else() {
    for args in [
        vec!["plan", "pytorch-cuba"],
        vec!["lock", "pytorch-cuba"],
        vec!["build", "pytorch-cuba"],
        vec!["export", "dockerfile", "pytorch-cuba", "out"],
    ] {
        let program = crate::program();
        let run = program.run(&args);
        assert_message(&run, 1, &["unknown-name", "pytorch-cuba", "pytorch-cuda"]);
        assert_80_columns(&run);
        assert!(!program.path("out").exists());
    }
}

#[test]
fn what_is_no_spec_is_a_wrong_call_and_what_is_not_published_is_a_no() {
    assert_eq!(envforge(&["plan", "pytorch-cuda:2.8:2.9"]).code, 2);
    assert_eq!(envforge(&["plan", ""]).code, 2);
    assert_eq!(envforge(&["plan", "pytorch-cuda:2.9-cu118"]).code, 1);
}

#[test]
fn every_spelling_means_the_same() {
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

//! Stacks that cannot run: every rule that said no, its source, and what works instead.

use crate::{assert_message, envforge, said};

#[test]
fn a_combination_nobody_publishes() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.9-cu118"]));
}

#[test]
fn a_driver_that_is_too_old() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.8-cu128", "--driver", "470.57.02"]));
}

#[test]
fn a_gpu_without_code_in_the_wheel() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.8-cu128", "--gpu", "NVIDIA GeForce GTX 1080 Ti"]));
}

#[test]
fn a_gpu_that_is_newer_than_the_binary() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.6-cu124", "--gpu", "sm_120"]));
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let run =
        envforge(&["plan", "--json", "pytorch-cuda:2.8-cu128", "--gpu", "sm_35", "--driver", "470.57.02"]);
    let plan: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    let rules: Vec<_> =
        plan["refusals"].as_array().into_iter().flatten().filter_map(|r| r["rule"].as_str()).collect();
    assert_eq!(run.code, 1);
    assert!(rules.contains(&"gpu-not-in-binary") && rules.contains(&"driver-too-old"), "{rules:?}");
}

#[test]
fn a_gpu_nobody_knows_gets_the_nearest_names() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.8-cu128", "--gpu", "NVIDIA A1000-SXM4-80GB"]));
    assert_message(&envforge(&["plan", "pytorch-cuda", "--gpu", "Voodoo 2"]), 2, &["Voodoo 2", "--gpu sm_"]);
}

#[test]
fn a_driver_that_is_no_version() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.8-cu128", "--driver", "five-hundred"]));
}

#[test]
fn a_python_without_wheel() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.8-cu128-py3.8"]));
}

#[test]
#[cfg_attr(not(feature = "docker"), ignore = "needs docker: cargo test --features docker")]
fn what_cannot_run_is_never_built() {
    let program = crate::program();
    for command in ["lock", "build"] {
        assert_message(&program.run(&[command, "pytorch-cuda:2.9-cu118"]), 1, &["variant-unpublished"]);
    }
}

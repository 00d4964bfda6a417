//! Stacks that cannot run: every rule that said no, its source, and what works instead.

use crate::{assert_message, envforge, said};

#[test]
fn unpublished_combination_is_rejected() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.9-cu118"]));
}

#[test]
fn old_driver_is_rejected() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.8-cu128", "--driver", "470.57.02"]));
}

#[test]
fn gpu_without_code_in_the_wheel_is_rejected() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.8-cu128", "--gpu", "NVIDIA GeForce GTX 1080 Ti"]));
}

#[test]
fn gpu_newer_than_the_binary_is_rejected() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.6-cu124", "--gpu", "sm_120"]));
}

#[test]
fn every_violated_rule_is_reported() {
    let run =
        envforge(&["plan", "--json", "pytorch-cuda:2.8-cu128", "--gpu", "sm_35", "--driver", "470.57.02"]);
    let plan: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    let rules: Vec<_> =
        plan["refusals"].as_array().into_iter().flatten().filter_map(|r| r["rule"].as_str()).collect();
    assert_eq!(run.code, 1);
    assert!(rules.contains(&"gpu-not-in-binary") && rules.contains(&"driver-too-old"), "{rules:?}");
}

#[test]
fn unknown_gpu_suggests_the_closest_names() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.8-cu128", "--gpu", "NVIDIA A1000-SXM4-80GB"]));
    assert_message(&envforge(&["plan", "pytorch-cuda", "--gpu", "Voodoo 2"]), 2, &["Voodoo 2", "--gpu sm_"]);
}

#[test]
fn invalid_driver_version_is_rejected() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.8-cu128", "--driver", "five-hundred"]));
}

#[test]
fn python_without_wheel_is_rejected() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.8-cu128-py3.8"]));
}

#[test]
#[ignore = "needs docker"]
fn build_rejects_what_plan_rejects() {
    let program = crate::program();
    for command in ["lock", "build"] {
        assert_message(&program.run(&[command, "pytorch-cuda:2.9-cu118"]), 1, &["variant-unpublished"]);
    }
}

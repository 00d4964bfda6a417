//! The agent's Python scripts with fake frameworks: an older release that lacks a flag or a feature is not a failure.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Runs a script of the agent with the fake frameworks; returns each check's outcome and detail.
fn outcomes(script: &str, arguments: &[&str], variables: &[(&str, &str)]) -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("python3")
        .arg("-B")
        .arg(root.join("kernels/agent/src/python").join(script))
        .args(arguments)
        .env("PYTHONPATH", root.join("tests/support/python"))
        .envs(variables.iter().copied())
        .output()
        .expect("python3 runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{script}: {text}{}", String::from_utf8_lossy(&output.stderr));
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    lines.map(|(id, rest)| (id.to_owned(), rest.replace('\t', " "))).collect()
}

fn torch(checks: &[&str], variables: &[(&str, &str)]) -> BTreeMap<String, String> {
    outcomes("torch_gpu.py", checks, variables)
}

#[test]
fn old_torch_without_precision_flags_is_tested() {
    let found = torch(&["framework-memory", "framework-autocast"], &[("FAKE_TORCH", "1.8")]);
    assert_eq!(found["gpu"], "A (sm_90)");
    assert!(found["framework-memory"].starts_with("passed "), "{found:?}");
    assert!(found["framework-autocast"].starts_with("passed "), "{found:?}");
}

#[test]
fn torch_without_cuda_graphs_skips_them() {
    let found = torch(&["framework-graph"], &[("FAKE_TORCH", "1.8")]);
    assert!(found["framework-graph"].starts_with("skipped:not-offered "), "{found:?}");
    assert!(torch(&["framework-graph"], &[])["framework-graph"].starts_with("passed "));
}

#[test]
fn cuda_graphs_are_captured_on_the_stream_of_their_own_gpu() {
    let found = torch(&["framework-graph"], &[("FAKE_COUNT", "2")]);
    assert_eq!((found["gpu"].as_str(), &found["framework-graph"][..7]), ("A (sm_90) B (sm_86)", "passed "));
}

/// These have not run on a GPU: what is shown here is what they ask for, and that each can fail.
#[test]
fn attention_training_and_fp8_are_tested_and_can_fail() {
    let checks = ["framework-attention", "framework-training", "framework-fp8"];
    let found = torch(&checks, &[("FAKE_COUNT", "1")]);
    let attention =
        "passed EFFICIENT_ATTENTION, FLASH_ATTENTION agree with the plain one; not offered: CUDNN_ATTENTION";
    assert_eq!(found["framework-attention"], attention);
    assert!(found["framework-training"].starts_with("passed 30 steps"), "{found:?}");
    assert!(found["framework-fp8"].starts_with("passed within"), "{found:?}");
    for (wrong, check) in [
        ("FLASH_ATTENTION", checks[0]),
        ("EFFICIENT_ATTENTION", checks[0]),
        ("training", checks[1]),
        ("fp8", checks[2]),
    ] {
        let found = torch(&checks, &[("FAKE_WRONG", wrong)]);
        for id in checks {
            assert_eq!(found[id].starts_with("failed "), id == check, "{wrong}: {found:?}");
        }
    }
    let old = torch(&checks, &[("FAKE_TORCH", "1.8")]);
    assert!(old["framework-attention"].starts_with("skipped:not-offered "), "{old:?}");
    assert!(old["framework-fp8"].starts_with("skipped:not-offered "), "{old:?}");
}

#[test]
fn onnxruntime_1_17_computes_on_the_gpu() {
    for version in ["1.17", "1.20"] {
        let found =
            outcomes("others_gpu.py", &["onnxruntime", "framework-matmul"], &[("FAKE_ONNXRUNTIME", version)]);
        assert!(found["framework-matmul"].starts_with("passed "), "{version}: {found:?}");
    }
}

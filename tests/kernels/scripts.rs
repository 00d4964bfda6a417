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

#[test]
fn onnxruntime_1_17_computes_on_the_gpu() {
    for version in ["1.17", "1.20"] {
        let found =
            outcomes("others_gpu.py", &["onnxruntime", "framework-matmul"], &[("FAKE_ONNXRUNTIME", version)]);
        assert!(found["framework-matmul"].starts_with("passed "), "{version}: {found:?}");
    }
}

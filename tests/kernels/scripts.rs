//! The agent's Python scripts with fake frameworks: an older release that lacks a flag or a feature is not a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use envforge_protocol::CheckId;

use crate::real::unpacked;

/// Runs a script of the agent with the fake frameworks; returns each check's outcome and detail.
pub(crate) fn outcomes(
    script: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> BTreeMap<String, String> {
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
#[ignore = "needs python3"]
fn old_torch_without_precision_flags_is_tested() {
    let found = torch(&["framework-memory", "framework-autocast"], &[("FAKE_TORCH", "1.8")]);
    assert_eq!(found["gpu"], "A (sm_90)");
    assert!(found["framework-memory"].starts_with("passed "), "{found:?}");
    assert!(found["framework-autocast"].starts_with("passed "), "{found:?}");
}

#[test]
#[ignore = "needs python3"]
fn torch_without_cuda_graphs_skips_them() {
    let found = torch(&["framework-graph"], &[("FAKE_TORCH", "1.8")]);
    assert!(found["framework-graph"].starts_with("skipped:not-offered "), "{found:?}");
    assert!(torch(&["framework-graph"], &[])["framework-graph"].starts_with("passed "));
}

#[test]
#[ignore = "needs python3"]
fn cuda_graphs_are_captured_on_the_stream_of_their_own_gpu() {
    let found = torch(&["framework-graph"], &[("FAKE_COUNT", "2")]);
    assert_eq!((found["gpu"].as_str(), &found["framework-graph"][..7]), ("A (sm_90) B (sm_86)", "passed "));
}

/// Check, script and mutation.
fn mutations() -> Vec<[&'static str; 3]> {
    let lines =
        include_str!("../fixtures/gpu/script-mutations.txt").lines().filter(|line| !line.starts_with('#'));
    let words = |line: &'static str| line.split_whitespace().take(3).collect::<Vec<_>>().try_into().ok();
    lines.map(|line| words(line).expect("check, script and mutation")).collect()
}

#[test]
fn every_check_of_a_framework_has_a_mutation() {
    let listed: BTreeSet<_> = mutations().into_iter().map(|[check, ..]| check).collect();
    let scripted =
        CheckId::ALL.iter().map(|check| check.as_str()).filter(|check| check.starts_with("framework-"));
    let on_a_gpu: BTreeSet<_> = scripted
        .filter(|id| CheckId::parse(id).is_some_and(|check| check.stage() == envforge_protocol::Stage::Gpu))
        .collect();
    assert_eq!(listed, on_a_gpu);
}

#[test]
#[ignore = "needs python3"]
fn mutation_of_a_framework_is_caught_by_its_own_check_alone() {
    let checks = |script: &str| -> BTreeSet<_> {
        mutations().into_iter().filter(|[_, of, _]| *of == script).map(|[check, ..]| check).collect()
    };
    let run = |script: &str, wrong: &str| {
        let ids: Vec<_> = checks(script).into_iter().collect();
        outcomes(script, &ids, &[("FAKE_COUNT", "2"), ("FAKE_WRONG", wrong)])
    };
    for script in ["torch_gpu.py", "vllm_gpu.py"] {
        let healthy = run(script, "");
        assert!(checks(script).iter().all(|id| healthy[*id].starts_with("passed ")), "{healthy:#?}");
    }
    for [check, script, mutation] in mutations() {
        let found = run(script, mutation);
        for id in checks(script) {
            assert_eq!(found[id].starts_with("failed "), id == check, "{mutation}: {found:#?}");
        }
    }
}

/// These have not run on a GPU: what is shown here is what they ask for.
#[test]
#[ignore = "needs python3"]
fn attention_training_and_fp8_say_what_they_did() {
    let checks = ["framework-attention", "framework-training", "framework-fp8"];
    let found = torch(&checks, &[("FAKE_COUNT", "1")]);
    let attention =
        "passed EFFICIENT_ATTENTION, FLASH_ATTENTION agree with the plain one; not offered: CUDNN_ATTENTION";
    assert_eq!(found["framework-attention"], attention);
    assert!(found["framework-training"].starts_with("passed 30 steps"), "{found:?}");
    assert!(found["framework-fp8"].starts_with("passed within"), "{found:?}");
    let old = torch(&checks, &[("FAKE_TORCH", "1.8")]);
    assert!(old["framework-attention"].starts_with("skipped:not-offered "), "{old:?}");
    assert!(old["framework-fp8"].starts_with("skipped:not-offered "), "{old:?}");
}

/// The kernel itself, executed on whole numbers.
#[test]
#[ignore = "needs python3"]
fn triton_kernel_multiplies_matrices() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let fakes = root.join("tests/support/python");
    let output = Command::new("python3")
        .arg("-B")
        .arg(fakes.join("run_triton.py"))
        .env("PYTHONPATH", format!("{}:{}", fakes.display(), root.join("kernels/agent/src/python").display()))
        .output()
        .expect("python3 runs");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "0 of 2048\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The way to give tokens to vLLM changed with 0.4.
#[test]
#[ignore = "needs python3"]
fn old_vllm_generates() {
    let found = outcomes("vllm_gpu.py", &["framework-generate"], &[("FAKE_VLLM", "0.4")]);
    assert_eq!(found["framework-generate"], "passed 3 prompts together, 16 tokens each as known, vLLM 0.4");
    let found = outcomes("vllm_gpu.py", &["framework-generate"], &[("FAKE_VLLM", "0.3")]);
    assert!(found["framework-generate"].starts_with("skipped:not-offered vLLM 0.3"), "{found:?}");
}

/// Real frameworks without a GPU, with what they require: name, wheels, and the checks that pass. `tests/frameworks-on-cpu.sh` runs
/// PyTorch, TensorFlow and Numba so, which are too large for this; CuPy and vLLM have no wheel for a processor.
const REAL: [(&str, &[&str], &[&str]); 2] = [
    (
        "jax",
        &[
            "jax==0.10.2",
            "jaxlib==0.10.2",
            "numpy==2.4.6",
            "scipy==1.17.1",
            "ml-dtypes==0.6.0",
            "opt-einsum==3.4.0",
        ],
        &["framework-matmul", "framework-conv", "framework-graph", "framework-training"],
    ),
    (
        "onnxruntime",
        &[
            "onnxruntime==1.26.0",
            "numpy==2.4.6",
            "flatbuffers==25.12.19",
            "protobuf==7.36.2",
            "packaging==26.3",
        ],
        &["framework-matmul"],
    ),
];

/// The frameworks say that their processor is a GPU.
#[test]
#[ignore = "needs the package index: 200 MB of wheels"]
fn real_frameworks_pass_without_a_gpu() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (name, wheels, checks) in REAL {
        let wheels: Vec<_> = wheels.iter().map(|wheel| unpacked(wheel).display().to_string()).collect();
        let output = Command::new("python3")
            .arg("-B")
            .arg(root.join("tests/support/on_cpu.py"))
            .arg(root.join("kernels/agent/src/python/others_gpu.py"))
            .arg(name)
            .args(checks)
            .env("PYTHONPATH", wheels.join(":"))
            .output()
            .expect("python3 runs");
        let text = String::from_utf8_lossy(&output.stdout);
        for check in checks {
            let passed = text.contains(&format!("{check}\tpassed\t"));
            assert!(passed, "{name}: {text}{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

/// A graph holds what was captured, not what it gave then.
#[test]
#[ignore = "needs python3"]
fn cupy_and_numba_multiply_and_a_captured_graph_is_launched() {
    let passed = |name: &str, wrong: &str| {
        let checks = [name, "framework-matmul", "framework-graph"];
        let found = outcomes("others_gpu.py", &checks, &[("FAKE_WRONG", wrong)]);
        let all = found.into_iter().filter(|(_, text)| text.starts_with("passed "));
        all.map(|(id, _)| id).collect::<Vec<_>>()
    };
    assert_eq!(passed("cupy", ""), ["framework-graph", "framework-matmul"]);
    assert_eq!(passed("cupy", "matmul"), ["framework-graph"]);
    assert_eq!(passed("cupy", "graph"), ["framework-matmul"]);
    assert_eq!(passed("numba", ""), ["framework-matmul"]);
    assert!(passed("numba", "matmul").is_empty());
}

#[test]
#[ignore = "needs python3"]
fn onnxruntime_1_17_computes_on_the_gpu() {
    for version in ["1.17", "1.20"] {
        let found =
            outcomes("others_gpu.py", &["onnxruntime", "framework-matmul"], &[("FAKE_ONNXRUNTIME", version)]);
        assert!(found["framework-matmul"].starts_with("passed "), "{version}: {found:?}");
    }
    let wrong = outcomes("others_gpu.py", &["onnxruntime", "framework-matmul"], &[("FAKE_WRONG", "matmul")]);
    assert!(wrong["framework-matmul"].starts_with("failed "), "{wrong:?}");
}

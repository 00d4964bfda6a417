//! Every check on a GPU can fail, and only for its own reason: one fault of the fake driver or a fake library at a time, and
//! the one check that must report it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use envforge_protocol::{CheckId, Stage};

use super::fake_gpu::{Answer, agent, folder};

const LIST: &str = include_str!("../fixtures/gpu/mutations.txt");

/// Checks that report and never fail.
const REPORTS: [&str; 2] = ["host-health", "nccl-transport"];
/// Checks that a framework in Python makes.
const NO_MUTATION: [&str; 13] = [
    "framework-matmul",
    "framework-conv",
    "framework-autocast",
    "framework-graph",
    "framework-memory",
    "framework-compile",
    "framework-attention",
    "framework-training",
    "framework-fp8",
    "framework-triton",
    "framework-ddp",
    "framework-generate",
    "product-kernel",
];

/// Level full on two GPUs that compute.
fn full(mutation: &str) -> Answer {
    let variables =
        [("FAKE_COMPUTE", "1"), ("FAKE_COUNT", "2"), ("FAKE_NVML", "1"), ("FAKE_MUTATION", mutation)];
    agent(&["full", "--stage", "gpu"], &variables)
}

/// The outcomes, and the checks of each.
fn outcomes(answer: &Answer) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut all: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for line in &answer.lines {
        if let (Some(id), Some(outcome)) = (line["id"].as_str(), line["outcome"].as_str()) {
            all.entry(outcome).or_default().insert(id);
        }
    }
    all
}

/// Checks, mutations and what they break.
fn mutations() -> Vec<(&'static str, &'static str)> {
    let lines = LIST.lines().filter(|line| !line.starts_with('#'));
    let words = |line: &'static str| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.next()?))
    };
    lines.map(|line| words(line).expect("check and mutation")).collect()
}

#[test]
fn every_check_on_a_gpu_has_a_mutation() {
    let listed: BTreeSet<_> = mutations().into_iter().map(|(check, _)| check).collect();
    for check in CheckId::ALL.iter().filter(|check| check.stage() == Stage::Gpu) {
        let (has, excepted) = (listed.contains(check.as_str()), NO_MUTATION.contains(&check.as_str()));
        assert!(has != excepted, "{check}");
    }
    let names: BTreeSet<_> = mutations().into_iter().map(|(_, mutation)| mutation).collect();
    assert_eq!(names.len(), mutations().len(), "a mutation is listed twice");
}

/// The mistakes that a driver without these rules would hide, and what the fake makes of each.
#[test]
#[ignore = "nightly: needs g++ and compiles each mutation, minutes"]
fn fake_driver_is_as_strict_as_a_real_one() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/python/strict_driver.py");
    let output = Command::new("python3")
        .arg("-B")
        .arg(script)
        .arg(folder().join("driver/libcuda.so.1"))
        .envs([("FAKE_COMPUTE", "1"), ("FAKE_COUNT", "2")])
        .output()
        .expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "memory without a context: 201\n\
         fresh memory is zero: False\n\
         more memory than is free: 2\n\
         beyond the end: 1\n\
         a copy waits for the default stream: True\n\
         a copy waits for another stream: False\n\
         synchronized: True\n\
         a fill and a stream in order: False\n\
         too many threads: 701\n\
         too large a block: 1\n\
         memory of another context: 1\n\
         a kernel of another context: 400\n\
         a stream of another context: 400\n\
         a kernel on memory of another context: 0\n\
         waiting for it: 700\n\
         waiting again: 700\n"
    );
}

#[test]
#[ignore = "nightly: needs g++ and compiles each mutation, minutes"]
fn whole_agent_passes_on_strict_fakes() {
    let answer = full("");
    let found = outcomes(&answer);
    let outcomes: Vec<_> = found.keys().copied().collect();
    assert_eq!(outcomes, ["passed", "skipped"], "{:#?}", answer.lines);
    assert_eq!(found["skipped"], BTreeSet::from(NO_MUTATION), "no framework");
}

#[test]
#[ignore = "nightly: needs g++ and compiles each mutation, minutes"]
fn mutation_of_a_report_changes_its_own_line_alone() {
    let lines = |mutation| {
        let answer = full(mutation);
        let lines = answer.lines.into_iter().filter(|line| line["id"].is_string());
        lines
            .map(|line| (line["outcome"].clone(), line["measured"]["warning"].clone(), line["id"].clone()))
            .collect::<Vec<_>>()
    };
    let healthy = lines("");
    for (check, mutation) in mutations().into_iter().filter(|(check, _)| REPORTS.contains(check)) {
        let found = lines(mutation);
        let changed: Vec<_> =
            found.iter().filter(|line| !healthy.contains(line)).map(|line| &line.2).collect();
        assert_eq!(changed, [check], "{mutation}");
    }
}

/// The mutations of some checks.
fn caught_alone(belongs: impl Fn(&str) -> bool) {
    let all: Vec<_> = mutations().into_iter().filter(|(check, _)| belongs(check)).collect();
    assert!(!all.is_empty());
    for (check, mutation) in all {
        let answer = full(mutation);
        let found = outcomes(&answer);
        let failed: Vec<_> = found.get("failed").into_iter().flatten().copied().collect();
        assert_eq!(failed, [check], "{mutation}: {:#?}", answer.lines);
        assert_eq!(answer.code, 1, "{mutation}");
        // Without a driver nothing else is tried.
        assert!(found.contains_key("errored") == (check == "driver"), "{mutation}");
    }
}

#[test]
#[ignore = "nightly: needs g++ and compiles each mutation, minutes"]
fn mutation_of_driver_and_kernels_is_caught_by_its_own_check_alone() {
    caught_alone(|check| !check.ends_with("-cublas") && !is_library(check) && !REPORTS.contains(&check));
}

#[test]
#[ignore = "nightly: needs g++ and compiles each mutation, minutes"]
fn mutation_of_cublas_is_caught_by_its_own_check_alone() {
    caught_alone(|check| check.ends_with("-cublas"));
}

#[test]
#[ignore = "nightly: needs g++ and compiles each mutation, minutes"]
fn mutation_of_cudnn_and_nccl_is_caught_by_its_own_check_alone() {
    caught_alone(is_library);
}

fn is_library(check: &str) -> bool {
    check.starts_with("conv-cudnn-") || (check.starts_with("nccl-") && !REPORTS.contains(&check))
}

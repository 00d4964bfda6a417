//! `tests/gpu-day.sh`, the hour on a GPU, run as a whole against the fakes: no network, no engine, a Python.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use envforge_protocol::{CheckId, Stage};
use serde_json::Value;

use super::fake_gpu::folder;

/// Steps, exit code, and what each step wrote.
struct Day {
    code: i32,
    said: String,
    out: tempfile::TempDir,
}

impl Day {
    fn run(steps: &[&str], variables: &[(&str, &str)]) -> Self {
        let (fakes, out) = (folder(), tempfile::tempdir().expect("a folder"));
        let driver = format!("{}:{}", fakes.join("driver").display(), fakes.join("nvml").display());
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let output = Command::new("bash")
            .arg(tests.join("gpu-day.sh"))
            .args(steps)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("AGENT", fakes.join("agent"))
            .env("ROOT", fakes.join("root"))
            .env("OUT", out.path())
            .env("LD_LIBRARY_PATH", driver)
            // The fake frameworks.
            .env("PYTHONPATH", tests.join("support/python"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("FAKE_INVISIBLE", r#"{"FAKE_CUINIT":"100"}"#)
            .env("LOOPS", "2")
            .env("SUSTAINED", "20")
            .envs(variables.iter().copied())
            .output()
            .expect("bash runs");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        Self { code: output.status.code().unwrap_or(-1), said, out }
    }

    fn step(&self, name: &str) -> Value {
        let text = fs_err::read_to_string(self.out.path().join(format!("{name}.json")));
        serde_json::from_str(&text.unwrap_or_else(|error| panic!("{error}: {}", self.said))).expect("JSON")
    }
}

/// The checks that these steps ran, in the first run of each command.
fn ran(day: &Day, steps: &[&str]) -> BTreeSet<String> {
    let reports: Vec<_> = steps.iter().map(|step| day.step(step)).collect();
    let runs = reports.iter().flat_map(|report| report["runs"].as_array().expect("runs"));
    let lines = runs.flat_map(|run| run["checks"].as_array().expect("checks"));
    lines.filter_map(|line| line["id"].as_str().map(str::to_owned)).collect()
}

/// The checks of a stage.
fn checks(stage: Stage) -> BTreeSet<String> {
    let of_it = CheckId::ALL.iter().filter(|check| check.stage() == stage);
    of_it.map(|check| check.as_str().to_owned()).collect()
}

/// Names and descriptions.
fn listed() -> Vec<(String, String)> {
    let day = Day::run(&["list"], &[]);
    let split =
        |line: &str| line.split_once(' ').map(|(name, text)| (name.to_owned(), text.trim().to_owned()));
    day.said.lines().map(|line| split(line).unwrap_or_else(|| panic!("no description: {line}"))).collect()
}

/// What the machine of a day may have beside the GPU: compute-sanitizer, here one that watches nothing and says of one tool that
/// it found something; and the stub of libcuda in a toolkit.
fn programs(finds: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let (sanitizer, stubs) = (folder.path().join("compute-sanitizer"), folder.path().join("stubs"));
    let script = format!("#!/bin/sh\n[ \"$2\" = '{finds}' ] && exit \"$4\"\nshift 4\nexec \"$@\"\n");
    fs_err::write(&sanitizer, script).expect("written");
    fs_err::set_permissions(&sanitizer, std::fs::Permissions::from_mode(0o755)).expect("mode");
    fs_err::create_dir(&stubs).expect("made");
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-DCUINIT=34", "-Wno-unknown-pragmas", "-o"])
        .arg(stubs.join("libcuda.so.1"))
        .args(["fake_libcuda.c", "fake_kernels.cpp", "-lstdc++", "-lm"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support"))
        .output();
    assert!(output.expect("a C compiler").status.success());
    (folder, sanitizer, stubs)
}

/// Speeds repeat their work a thousand times: the fakes do not compute then.
const SPEEDS: [&str; 3] = ["perf", "sustained", "perf-five"];

#[test]
fn every_step_but_speeds_is_as_expected_on_the_fakes() {
    let steps = listed();
    let steps: Vec<_> =
        steps.iter().map(|(name, _)| name.as_str()).filter(|step| !SPEEDS.contains(step)).collect();
    assert!(steps.len() >= 9, "{steps:?}");
    let (_folder, sanitizer, stubs) = programs("none");
    let nvrtc = folder().join("root/usr/local/cuda/lib64");
    let [sanitizer, stubs, nvrtc] = [&sanitizer, &stubs, &nvrtc].map(|path| path.to_str().expect("text"));
    let variables = [("FAKE_COMPUTE", "1"), ("SANITIZER", sanitizer), ("STUBS", stubs), ("NVRTC", nvrtc)];
    let day = Day::run(&steps, &variables);
    assert_eq!(day.code, 0, "{}", day.said);
    for step in &steps {
        let report = day.step(step);
        assert_eq!(report["as_expected"], true, "{report:#}");
        assert!(report["runs"].as_array().is_some_and(|runs| !runs.is_empty()), "{report:#}");
    }
    assert_eq!(
        ran(&day, &["inventory", "groups", "new-groups"]),
        checks(Stage::Gpu),
        "every check on a GPU is in a step"
    );
    let count = |step: &str| day.step(step)["runs"].as_array().map_or(0, Vec::len);
    // A copy that flips, a launch that does nothing, and three statuses by the shim; no GPU visible, and the stub.
    assert_eq!(count("negatives"), 7);
    // Four tools over three groups; the kernels by the image's NVRTC, as made ahead, and by one more NVRTC.
    assert_eq!((count("sanitizer"), count("kernels")), (12, 3));
    // As a user without capabilities, once on a root that nobody can write to; beside a program that holds the memory.
    let confined = day.step("confined");
    let runs = confined["runs"].as_array().expect("runs");
    let read_only = runs.iter().any(|run| run["confined"] == "read-only root");
    assert!(read_only || confined["notes"].to_string().contains("read-only root: no root"), "{confined:#}");
    assert!(runs.iter().any(|run| run["command"] == "quick --stage gpu"), "{confined:#}");
    let target = &day.step("kernels")["runs"][1]["checks"];
    assert!(target.to_string().contains("compute_80, made ahead"), "{target:#}");
    // The fake PyTorch, ONNX Runtime and vLLM were asked.
    for (step, check) in [
        ("groups", "framework-autocast"),
        ("frameworks", "framework-matmul"),
        ("new-groups", "framework-generate"),
    ] {
        let report = day.step(step);
        let runs = report["runs"].as_array().expect("runs").iter();
        let lines: Vec<_> = runs.flat_map(|run| run["checks"].as_array().expect("checks")).collect();
        assert!(lines.iter().any(|line| line["id"] == check && line["outcome"] == "passed"), "{report:#}");
    }
}

#[test]
fn speeds_are_measured_and_their_medians_collected() {
    let day = Day::run(&SPEEDS, &[("FAKE_FREE", "256")]);
    assert_eq!(day.code, 0, "{}", day.said);
    assert_eq!(ran(&day, &["perf", "sustained"]), checks(Stage::Perf), "every speed is in a step");
    let medians = &day.step("perf-five")["notes"][0]["medians"];
    assert_eq!(medians["speed-memory"].as_array().map(Vec::len), Some(5), "{medians:#}");
    let sustained = &day.step("sustained")["runs"][0]["checks"][0]["measured"];
    assert!(sustained["first"].is_string() && sustained["celsius_most"] == "41", "{sustained:#}");
}

/// The steps must be able to say no.
#[test]
fn wrong_gpu_and_unreported_fault_are_not_as_expected() {
    let day = Day::run(&["groups"], &[("FAKE_COMPUTE", "1"), ("FAKE_MUTATION", "forward-half-is-wrong")]);
    assert_eq!(day.code, 1, "{}", day.said);
    assert!(
        day.step("groups")["problems"].to_string().contains("conv-cudnn-forward: failed"),
        "{}",
        day.said
    );
    // A GPU that is visible although none should be.
    let day = Day::run(&["negatives"], &[("FAKE_COMPUTE", "1"), ("FAKE_INVISIBLE", "{}")]);
    assert_eq!(day.code, 1, "{}", day.said);
    assert!(day.step("negatives")["problems"].to_string().contains("no GPU visible: driver is passed"));
    let (_folder, sanitizer, _) = programs("racecheck");
    let sanitizer = sanitizer.to_str().expect("text");
    let day = Day::run(&["sanitizer"], &[("FAKE_COMPUTE", "1"), ("SANITIZER", sanitizer)]);
    assert_eq!(day.code, 1, "{}", day.said);
    assert!(day.step("sanitizer")["problems"].to_string().contains("racecheck on gemm-own"), "{}", day.said);
    let day = Day::run(&["frameworks"], &[("FAKE_COMPUTE", "1"), ("FAKE_WRONG", "matmul")]);
    assert_eq!(day.code, 1, "{}", day.said);
    assert_eq!(Day::run(&["sleep"], &[]).code, 1);
}

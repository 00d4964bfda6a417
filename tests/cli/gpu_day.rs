//! `tests/gpu-day.sh`, the hour on a GPU, run as a whole against the fakes: no network, no engine, a Python.

use std::path::Path;
use std::process::Command;

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
        let output = Command::new("bash")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpu-day.sh"))
            .args(steps)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("AGENT", fakes.join("agent"))
            .env("ROOT", fakes.join("root"))
            .env("OUT", out.path())
            .env("LD_LIBRARY_PATH", driver)
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

fn listed() -> Vec<String> {
    let day = Day::run(&["list"], &[]);
    day.said.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Speeds repeat their work a thousand times: the fakes do not compute then.
const SPEEDS: [&str; 3] = ["perf", "sustained", "perf-five"];

#[test]
fn every_step_but_speeds_is_as_expected_on_the_fakes() {
    let steps = listed();
    let steps: Vec<_> = steps.iter().map(String::as_str).filter(|step| !SPEEDS.contains(step)).collect();
    assert!(steps.len() >= 9, "{steps:?}");
    let day = Day::run(&steps, &[("FAKE_COMPUTE", "1")]);
    assert_eq!(day.code, 0, "{}", day.said);
    for step in steps {
        let report = day.step(step);
        assert_eq!(report["as_expected"], true, "{report:#}");
        let empty = report["runs"].as_array().is_none_or(Vec::is_empty);
        assert_eq!(empty, ["sanitizer", "frameworks"].contains(&step), "{report:#}");
    }
    // A copy that flips, a launch that does nothing, and three statuses by the shim; no GPU visible.
    assert_eq!(day.step("negatives")["runs"].as_array().map(Vec::len), Some(6));
    // As a user without capabilities, once on a root that nobody can write to.
    let confined = day.step("confined");
    let read_only = confined["runs"]
        .as_array()
        .is_some_and(|runs| runs.iter().any(|run| run["confined"] == "read-only root"));
    assert!(read_only || confined["notes"].to_string().contains("read-only root: no root"), "{confined:#}");
    let target = &day.step("kernels")["runs"][1]["checks"];
    assert!(target.to_string().contains("compute_80, made ahead"), "{target:#}");
}

#[test]
fn speeds_are_measured_and_their_medians_collected() {
    let day = Day::run(&SPEEDS, &[("FAKE_FREE", "256")]);
    assert_eq!(day.code, 0, "{}", day.said);
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
    assert_eq!(Day::run(&["sleep"], &[]).code, 1);
}

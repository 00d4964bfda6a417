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
        let out = tempfile::tempdir().expect("a folder");
        let output = Self::command(steps, variables, out.path()).output().expect("bash runs");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        Self { code: output.status.code().unwrap_or(-1), said, out }
    }

    fn command(steps: &[&str], variables: &[(&str, &str)], out: &Path) -> Command {
        let fakes = folder();
        let driver = format!("{}:{}", fakes.join("driver").display(), fakes.join("nvml").display());
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let mut command = Command::new("bash");
        command
            .arg(tests.join("gpu-day.sh"))
            .args(steps)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("AGENT", fakes.join("agent"))
            .env("ROOT", fakes.join("root"))
            .env("OUT", out)
            .env("LD_LIBRARY_PATH", driver)
            // The fake frameworks.
            .env("PYTHONPATH", tests.join("support/python"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("FAKE_INVISIBLE", r#"{"FAKE_CUINIT":"100"}"#)
            .env("LOOPS", "2")
            .env("SUSTAINED", "32")
            .envs(variables.iter().copied());
        command
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
    let script = format!(
        "#!/bin/sh\n[ \"$2\" = '{finds}' ] && exit \"$4\"\n[ \"$SHIM\" = stray ] && echo \"$SEES\" && exit \"$4\"\nshift 4\nexec \"$@\"\n"
    );
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

/// What compute-sanitizer says of a kernel that reads elsewhere.
const SEES: &str = "========= Invalid __global__ read of size 4 bytes";

/// Speeds repeat their work a thousand times: the fakes do not compute then.
const SPEEDS: [&str; 3] = ["perf", "sustained", "perf-five"];

#[test]
#[ignore = "needs g++ and python3"]
fn every_step_but_speeds_is_as_expected_on_the_fakes() {
    let steps = listed();
    let steps: Vec<_> =
        steps.iter().map(|(name, _)| name.as_str()).filter(|step| !SPEEDS.contains(step)).collect();
    assert!(steps.len() >= 9, "{steps:?}");
    let (_folder, sanitizer, stubs) = programs("none");
    let nvrtc = folder().join("root/usr/local/cuda/lib64");
    let [sanitizer, stubs, nvrtc] = [&sanitizer, &stubs, &nvrtc].map(|path| path.to_str().expect("text"));
    let variables =
        [("FAKE_COMPUTE", "1"), ("SANITIZER", sanitizer), ("SEES", SEES), ("STUBS", stubs), ("NVRTC", nvrtc)];
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
    // Four tools over three groups, and once a fault that must be found; the kernels as made ahead, by the image's NVRTC, and by one more NVRTC.
    assert_eq!((count("sanitizer"), count("kernels")), (13, 3));
    // As a user without capabilities, once on a root that nobody can write to; beside a program that holds the memory.
    let confined = day.step("confined");
    let runs = confined["runs"].as_array().expect("runs");
    let read_only = runs.iter().any(|run| run["confined"] == "read-only root");
    assert!(read_only || confined["notes"].to_string().contains("read-only root: no root"), "{confined:#}");
    assert!(runs.iter().any(|run| run["command"] == "quick --stage gpu"), "{confined:#}");
    let target = &day.step("kernels")["runs"][0]["checks"];
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
#[ignore = "needs g++ and python3"]
fn speeds_are_measured_and_their_medians_collected() {
    let day = Day::run(&SPEEDS, &[("FAKE_FREE", "64")]);
    assert_eq!(day.code, 0, "{}", day.said);
    assert_eq!(ran(&day, &["perf", "sustained"]), checks(Stage::Perf), "every speed is in a step");
    let medians = &day.step("perf-five")["notes"][0]["medians"];
    assert_eq!(medians["speed-memory"].as_array().map(Vec::len), Some(5), "{medians:#}");
    let sustained = &day.step("sustained")["runs"][0]["checks"][0]["measured"];
    assert!(sustained["first"].is_string() && sustained["celsius_most"] == "41", "{sustained:#}");
}

/// The steps must be able to say no.
#[test]
#[ignore = "needs g++ and python3"]
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
    let problems = day.step("sanitizer")["problems"].to_string();
    assert!(problems.contains("racecheck on gemm-own"), "{problems}");
    // One that sees calls and no kernel: it ends with the code of a finding too.
    assert!(problems.contains("memcheck does not see what a kernel reads"), "{problems}");
    let day = Day::run(&["frameworks"], &[("FAKE_COMPUTE", "1"), ("FAKE_WRONG", "matmul")]);
    assert_eq!(day.code, 1, "{}", day.said);
    assert_eq!(Day::run(&["sleep"], &[]).code, 1);
}

/// The parts that a call of `lent` kept, in their order. What is no whole line is what a kill cut.
fn kept(out: &Path, call: &str) -> Vec<(String, Value)> {
    let text = fs_err::read_to_string(out.join(format!("lent-{call}.jsonl"))).unwrap_or_default();
    let (whole, cut) = text.split_at(text.rfind('\n').map_or(0, |end| end + 1));
    assert!(serde_json::from_str::<Value>(cut).is_err() || cut.is_empty(), "{cut}");
    let records = whole.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let word = |record: &Value, key: &str| record[key].as_str().expect("text").to_owned();
    records.map(|record| (format!("{} {}", word(&record, "step"), word(&record, "part")), record)).collect()
}

fn names(kept: &[(String, Value)]) -> Vec<&str> {
    kept.iter().map(|(name, _)| name.as_str()).collect()
}

/// Two calls on a machine that is lent for minutes: the second does what the first left, in the order of what matters.
#[test]
#[ignore = "needs g++ and python3"]
fn second_call_does_what_the_first_left() {
    let listed = Day::run(&["lent", "list"], &[]).said;
    let listed: Vec<_> = listed.lines().collect();
    let first = [
        "kernels ptx",
        "kernels nvrtc",
        "groups gemm-cublas",
        "groups conv-cudnn",
        "groups nccl",
        "groups memory",
        "quick all",
    ];
    assert!(listed.starts_with(&first), "{listed:?}");
    let place = |begin: &str| listed.iter().position(|part| part.starts_with(begin)).expect("a part");
    assert_eq!(place("negatives "), first.len(), "the shim comes before the frameworks: {listed:?}");
    assert!(listed[place("groups framework-")..].iter().all(|part| !part.starts_with("negatives ")));
    let out = tempfile::tempdir().expect("a folder");
    // What is carried there.
    let bundle = out.path().join("bundle.tar.gz");
    let packed = Day::command(&["bundle", bundle.to_str().expect("text")], &[], out.path()).status();
    assert!(packed.expect("bash runs").success());
    assert!(fs_err::metadata(&bundle).expect("made").len() < 20_000_000);
    let call = |name: &str, seconds: u32| {
        let seconds = seconds.to_string();
        let variables = [("FAKE_COMPUTE", "1"), ("LENT_SECONDS", seconds.as_str())];
        let output = Day::command(&["lent", name], &variables, out.path()).output().expect("bash runs");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{said}");
        (kept(out.path(), name), said)
    };
    // As many seconds as this machine needs for the first parts: one that does other work needs many times as long.
    let finishes = |name: &str| {
        let mut calls = (0..9).map(|doubled| call(name, 2 << doubled));
        calls.find(|(kept, _)| !kept.is_empty()).expect("a part that ends")
    };
    let (first, said) = finishes("A");
    assert!(first.len() < listed.len() && said.contains("out_of_time"), "{said}");
    let (second, _) = finishes("B");
    let done = [names(&first), names(&second)].concat();
    assert_eq!(done, listed[..done.len()], "each part once, in the order of the list");
    // What is carried back: eight files of 16 MB at most, in one folder.
    let entries = fs_err::read_dir(out.path()).expect("readable").map(|entry| entry.expect("an entry"));
    let files: Vec<_> = entries.filter(|entry| entry.path() != bundle).collect();
    assert!(files.len() <= 8, "{files:?}");
    let fits = |size: std::fs::Metadata| size.is_file() && size.len() < 16_000_000;
    assert!(files.iter().all(|file| file.metadata().is_ok_and(fits)), "{files:?}");

    // The first part that was not as expected is tried again, after the others.
    let folder = out.path().join("lent-A.jsonl");
    let text = fs_err::read_to_string(&folder).expect("readable");
    fs_err::write(&folder, text.replacen("\"as_expected\": true", "\"as_expected\": false", 1))
        .expect("written");
    fs_err::remove_file(out.path().join("lent-B.jsonl")).expect("removed");
    let (again, _) = call("C", 2);
    assert!(!names(&again).contains(&listed[0]), "{again:?}");
    assert!(names(&again).first().is_none_or(|name| *name == listed[first.len()]), "{again:?}");
}

/// The machine is taken away at any moment: what was said to be finished is in the folder, and the next call goes on from there.
#[test]
#[ignore = "needs g++ and python3"]
fn killed_call_keeps_what_it_finished() {
    let listed = Day::run(&["lent", "list"], &[]).said;
    let out = tempfile::tempdir().expect("a folder");
    let mut done = Vec::new();
    // Counted in finished parts, not in seconds: a machine that does other work needs many times as long for each.
    for (call, finished) in [("A", 0), ("B", 1), ("C", 2), ("D", 3)] {
        let variables = [("FAKE_COMPUTE", "1")];
        let mut command = Day::command(&["lent", call], &variables, out.path());
        let said = out.path().join("said");
        command.stdout(fs_err::File::create(&said).expect("made").into_parts().0);
        // A group of its own, which is ended as a machine ends it.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().expect("bash runs");
        let began = std::time::Instant::now();
        while kept(out.path(), call).len() < finished {
            assert!(began.elapsed().as_secs() < 600, "{finished} parts are not finished after ten minutes");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        rustix::process::kill_process_group(
            rustix::process::Pid::from_child(&child),
            rustix::process::Signal::KILL,
        )
        .expect("it runs");
        child.wait().expect("a child of ours");
        let kept = kept(out.path(), call);
        let said = fs_err::read_to_string(&said).expect("readable");
        let said: Vec<Value> = said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        assert!(said.len() <= kept.len() && kept.len() <= said.len() + 1, "{said:?}");
        done.extend(names(&kept).into_iter().map(str::to_owned));
    }
    assert!(done.len() >= 6, "{done:?}");
    assert_eq!(done, listed.lines().take(done.len()).collect::<Vec<_>>());
}

/// What two calls left becomes fixtures of the verdict, a file for each step.
#[test]
#[ignore = "needs g++ and python3"]
fn results_become_fixtures_of_a_model() {
    let out = tempfile::tempdir().expect("a folder");
    // As many seconds as this machine needs for both parts of the first step.
    let mut calls = (3..9).map(|doubled| {
        let seconds = 2_u32.pow(doubled).to_string();
        let variables = [("FAKE_COMPUTE", "1"), ("LENT_SECONDS", seconds.as_str())];
        let output = Day::command(&["lent", "A"], &variables, out.path()).output().expect("bash runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        kept(out.path(), "A")
    });
    let kept = calls.find(|kept| kept.len() > 1).expect("two parts that end");
    let copy = out.path().join("tests/gpu-day");
    fs_err::create_dir_all(&copy).expect("made");
    let steps = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpu-day/steps.py");
    fs_err::copy(steps, copy.join("steps.py")).expect("copied");
    let replay = Command::new("python3")
        .arg(copy.join("steps.py"))
        .args(["replay", out.path().to_str().expect("text"), "H100"])
        .env("AGENT", "agent")
        .env("OUT", out.path())
        .output()
        .expect("python3 runs");
    assert!(replay.status.success(), "{}", String::from_utf8_lossy(&replay.stderr));
    let kernels = fs_err::read_to_string(out.path().join("tests/fixtures/gpu/H100/kernels.json"));
    let kernels: Value = serde_json::from_str(&kernels.expect("readable")).expect("JSON");
    assert_eq!(kernels["as_expected"], true, "{kernels:#}");
    let runs: usize = kept
        .iter()
        .filter(|(_, record)| record["step"] == "kernels")
        .map(|(_, record)| record["runs"].as_array().map_or(0, Vec::len))
        .sum();
    assert_eq!(kernels["runs"].as_array().map(Vec::len), Some(runs));
    // A folder without a result is no success.
    let empty = tempfile::tempdir().expect("a folder");
    let nothing = Command::new("python3")
        .arg(copy.join("steps.py"))
        .args(["replay", empty.path().to_str().expect("text"), "H200"])
        .envs([("AGENT", "agent"), ("OUT", "out")])
        .current_dir(empty.path())
        .status();
    assert_eq!(nothing.expect("python3 runs").code(), Some(1));
}

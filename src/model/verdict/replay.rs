//! What `tests/gpu-day.sh` printed on a machine, judged again: by the verdict and by the policy of the tags.
//!
//! `tests/fixtures/gpu/<model>/<step>.json`. `fakes` is the model of the fake libraries; a day on a GPU adds its own.

#![expect(clippy::disallowed_methods, reason = "reads committed files")]

use std::path::Path;

use envforge_protocol::CheckId;
use serde_json::Value;

use super::required_checks::{gpu_checks, static_checks};
use super::tag_policy::{TagStatus, claim};
use super::tests::image;
use super::{ImageExpectations, Verdict, VerdictStatus, judge};
use crate::model::lock::{Lock, LockedWheel, sample};

/// The models and steps that were kept.
fn kept() -> Vec<(String, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/gpu");
    let mut files = Vec::new();
    for model in fs_err::read_dir(root).expect("readable") {
        let model = model.expect("an entry").path();
        if model.is_dir() {
            files.extend(
                fs_err::read_dir(model).expect("readable").map(|entry| entry.expect("an entry").path()),
            );
        }
    }
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let text = fs_err::read_to_string(path).expect("readable");
        (path.display().to_string(), serde_json::from_str(&text).expect("JSON"))
    };
    files.iter().map(read).collect()
}

/// The runs of a step.
fn runs(step: &Value) -> impl Iterator<Item = &Value> {
    step["runs"].as_array().expect("runs").iter()
}

/// The agent's lines of a run, with those of a static stage that passed before.
fn lines(run: &Value, statics: &[String]) -> String {
    let passed = |id: &String| {
        serde_json::json!({
            "id": id, "stage": "static", "outcome": "passed", "detail": "as locked", "measured": {}, "expected": {}, "hint": null,
        })
    };
    // Those of the image's configuration are made by the verdict itself.
    let before = statics.iter().filter(|id| !id.starts_with("image-")).map(passed);
    let own = run["checks"].as_array().expect("checks").iter().cloned();
    let done = serde_json::json!({"done": true, "seconds": run["seconds"]});
    let all = before.chain(own).chain([done]);
    all.fold(String::new(), |text, line| text + &line.to_string() + "\n")
}

/// Judges a run by these required checks: as one of an image of envforge if it had a static stage.
fn judged(run: &Value, required: Vec<String>, statics: &[String]) -> Verdict {
    let end = format!("agent exited with code {}", run["code"]);
    let expected =
        ImageExpectations { required, foreign: statics.is_empty(), ..ImageExpectations::default() };
    judge(&lines(run, statics), &end, &image(), &expected)
}

/// The sample lock with a wheel of each library.
fn lock() -> Lock {
    let mut lock = sample::lock();
    for name in ["nvidia-cublas-cu12", "nvidia-cudnn-cu12", "nvidia-nccl-cu12"] {
        lock.wheels.push(LockedWheel { name: name.to_owned(), ..lock.wheels[0].clone() });
    }
    lock
}

fn ids(run: &Value) -> Vec<String> {
    let checks = run["checks"].as_array().expect("checks").iter();
    checks.filter_map(|line| line["id"].as_str().map(str::to_owned)).collect()
}

#[test]
fn every_step_was_as_expected_and_no_line_is_lost() {
    let kept = kept();
    assert!(kept.len() >= 4, "{}", kept.len());
    for (name, step) in &kept {
        assert_eq!(step["as_expected"], true, "{name}");
        for run in runs(step) {
            let verdict = judged(run, Vec::new(), &[]);
            assert_eq!(verdict.checks.len(), ids(run).len(), "{name}: {}", run["command"]);
            assert!(
                verdict.checks.iter().all(|check| CheckId::parse(&check.id).is_some()),
                "{name}: {}",
                run["command"]
            );
        }
    }
}

/// A required check that was hindered by the host leaves the verdict open; one that failed does not.
#[test]
fn faults_of_a_day_get_their_verdicts() {
    let wanted = [
        ("no GPU visible", "driver", VerdictStatus::Failed),
        ("flip", "memory-copies", VerdictStatus::Failed),
        ("nothing", "gemm-fp32-own", VerdictStatus::Failed),
        ("memory", "gemm-fp32-own", VerdictStatus::Undecided),
        ("taken", "gemm-fp32-own", VerdictStatus::Undecided),
        ("fault", "gemm-fp32-own", VerdictStatus::Failed),
        ("stub", "driver", VerdictStatus::Failed),
    ];
    let mut seen = 0;
    for (name, step) in kept().iter().filter(|(name, _)| name.ends_with("/negatives.json")) {
        for run in runs(step) {
            let fault = run["fault"].as_str().unwrap_or_default();
            let Some((_, check, verdict)) = wanted.iter().find(|(known, ..)| *known == fault) else {
                panic!("{name}: unknown fault {fault}");
            };
            let found = judged(run, vec![(*check).to_owned()], &[]);
            assert_eq!(found.verdict, *verdict, "{name}: {fault}: {found:#?}");
            seen += 1;
        }
    }
    assert!(seen >= wanted.len(), "{seen}");
}

/// A whole run: with a framework it is verified, and without one of its lines, or with another outcome, it is not.
#[test]
fn whole_run_of_a_day_earns_the_tag_that_the_policy_gives() {
    let lock = lock();
    let (statics, required) = (static_checks(&lock), gpu_checks(&lock, true));
    let mut seen = 0;
    for (name, step) in kept().iter().filter(|(name, _)| name.ends_with("/loop.json")) {
        let whole = runs(step).find(|run| run["command"] == "full --stage gpu").expect("a whole run");
        let all = || [statics.clone(), required.clone()].concat();
        let verdict = judged(whole, all(), &statics);
        let is_complete = !whole["checks"].to_string().contains("no supported framework");
        let status = claim(&lock, &verdict);
        assert_eq!(status == TagStatus::Verified, is_complete, "{name}: {status:?}");
        // The framework's lines are those of no image on the fakes.
        let mut complete = whole.clone();
        for line in complete["checks"].as_array_mut().expect("checks") {
            if line["id"].as_str().is_some_and(|id| id.starts_with("framework-")) {
                line["outcome"] = "passed".into();
                line["skip"] = Value::Null;
                line["measured"] = whole["checks"][0]["measured"].clone();
            }
        }
        assert_eq!(claim(&lock, &judged(&complete, all(), &statics)), TagStatus::Verified, "{name}");
        for (id, outcome) in [("gemm-large", "failed"), ("conv-own", "errored")] {
            let mut broken = complete.clone();
            let lines = broken["checks"].as_array_mut().expect("checks");
            lines.iter_mut().find(|line| line["id"] == id).expect("a line")["outcome"] = outcome.into();
            assert_eq!(claim(&lock, &judged(&broken, all(), &statics)), TagStatus::Failed, "{name}: {id}");
        }
        let mut short = complete.clone();
        short["checks"].as_array_mut().expect("checks").retain(|line| line["id"] != "memory-pattern");
        assert_ne!(claim(&lock, &judged(&short, all(), &statics)), TagStatus::Verified, "{name}");
        seen += 1;
    }
    assert!(seen > 0);
}

/// The documents say what has run on a GPU, and so do the checks: a day on a real one changes both.
#[test]
fn documents_and_checks_say_what_has_run_on_a_gpu() {
    let real: Vec<_> = kept().into_iter().filter(|(name, _)| !name.contains("/gpu/fakes/")).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (file, sentence) in [
        ("README.md", "No check has run on a real GPU yet"),
        ("docs/src/introduction.md", "No check has run on a real GPU yet"),
        ("docs/src/how-to/verify.md", "No check has run on a real GPU yet"),
        ("kernels/README.md", "**Not run on a GPU yet:** everything of this table"),
    ] {
        let text = fs_err::read_to_string(root.join(file)).expect("readable");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            text.contains(sentence),
            real.is_empty(),
            "{file}: {} steps of real GPUs are kept",
            real.len()
        );
    }
    for check in CheckId::ALL {
        let is_named = check.proves().contains("not run on a GPU yet");
        assert_eq!(is_named, check.is_unproven(), "{check}: its row in kernels/README.md");
        let has_passed = real.iter().any(|(_, step)| {
            let lines = runs(step).flat_map(|run| run["checks"].as_array().expect("checks"));
            lines.filter(|line| line["id"] == check.as_str()).any(|line| line["outcome"] == "passed")
        });
        assert!(!(has_passed && check.is_unproven()), "{check} has passed on a GPU: give it its requirement");
    }
}

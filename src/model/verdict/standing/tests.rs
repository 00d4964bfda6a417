//! Orders of reports, and what they prove.

use super::*;
use crate::model::verdict::tag_policy::tests::{check, lock, report};
use crate::model::verdict::{Outcome, SkipReason};

const H200: &str = "NVIDIA H200 (sm_90)";
const V100: &str = "NVIDIA V100 (sm_70)";

/// A run of all required checks at level full, or of the static ones.
fn run(gpu: Option<&str>, driver: &str) -> Verdict {
    let mut run = report(&lock(&[]), gpu);
    if let Some(check) = run.checks.iter_mut().find(|check| check.id == "device") {
        check.measured.insert("driver".to_owned(), driver.to_owned());
    }
    let status = if gpu.is_some() { VerdictStatus::Passed } else { VerdictStatus::StaticOnly };
    let level = if gpu.is_some() { "full" } else { "static" }.to_owned();
    Verdict { verdict: status, gpus: gpu.iter().map(|gpu| (*gpu).to_owned()).collect(), level, ..run }
}

fn at(level: &str, run: Verdict) -> Verdict {
    Verdict { level: level.to_owned(), ..run }
}

fn failed(id: &str, mut run: Verdict) -> Verdict {
    run.checks.iter_mut().find(|check| check.id == id).expect("in the report").outcome = Outcome::Failed;
    Verdict { verdict: VerdictStatus::Failed, ..run }
}

fn undecided(mut run: Verdict) -> Verdict {
    let large = run.checks.iter_mut().find(|check| check.id == "gemm-large").expect("in the report");
    (large.outcome, large.skip) = (Outcome::Skipped, Some(SkipReason::HostBusy));
    Verdict { verdict: VerdictStatus::Undecided, executed: false, gpus: Vec::new(), ..run }
}

/// The reports in the order in which they were made.
fn kept(runs: &[Verdict]) -> ImageReports {
    let numbered = (1..).zip(runs.iter().cloned());
    let mut all: Vec<KeptReport> = Vec::new();
    for (number, report) in numbered {
        // As the store keeps them.
        let new = KeptReport { schema: 1, number, withdrawn: false, conditions: None, report };
        let withdrawn = ImageReports::new(all.clone(), Vec::new()).withdrawn_by(&new);
        for old in &mut all {
            old.withdrawn |= withdrawn.iter().any(|other| other.number == old.number);
        }
        all.push(new);
    }
    ImageReports::new(all, Vec::new())
}

fn withdrawn(runs: &[Verdict], failure: &Verdict) -> usize {
    let new =
        KeptReport { schema: 1, number: 99, withdrawn: false, conditions: None, report: failure.clone() };
    kept(runs).withdrawn_by(&new).len()
}

fn state(runs: &[Verdict]) -> ImageState {
    let reports = kept(runs);
    let lock = lock(&[]);
    let state = reports.proven(Some(&lock)).state;
    let tags = reports.tag_status(&lock);
    assert_eq!(state == ImageState::Verified, tags == Some(TagStatus::Verified), "{state:?} {tags:?}");
    state
}

#[test]
fn later_report_of_a_lower_level_or_without_a_gpu_changes_nothing() {
    use ImageState::{Failed, NotChecked, Passed, StaticOnly, Verified};
    let (full, quick) = (run(Some(H200), "580.1"), at("quick", run(Some(H200), "580.1")));
    let (static_only, busy) = (run(None, ""), undecided(run(Some(H200), "580.1")));
    let quick = Verdict {
        checks: quick.checks.into_iter().filter(|check| check.id != "framework-ddp").collect(),
        ..quick
    };
    for (runs, expected) in [
        (vec![], NotChecked),
        (vec![busy.clone()], NotChecked),
        (vec![static_only.clone()], StaticOnly),
        (vec![quick.clone()], Passed),
        (vec![quick.clone(), static_only.clone()], Passed),
        (vec![full.clone()], Verified),
        (vec![full.clone(), quick.clone()], Verified),
        (vec![full.clone(), static_only.clone()], Verified),
        (vec![full.clone(), busy.clone()], Verified),
        (vec![static_only.clone(), full.clone(), quick.clone(), static_only, busy.clone()], Verified),
        (vec![failed("gemm-large", full.clone()), busy], Failed),
    ] {
        assert_eq!(state(&runs), expected, "{:?}", runs.iter().map(|run| &run.level).collect::<Vec<_>>());
    }
}

#[test]
fn failure_withdraws_what_stood_for_its_gpu_until_a_run_there_passes() {
    use ImageState::{Failed, Verified};
    let full = || run(Some(H200), "580.1");
    let other = || run(Some(V100), "580.1");
    let quick_failed = || failed("gemm-large", at("quick", full()));
    for (runs, expected, why) in [
        (vec![full(), failed("gemm-large", full())], Failed, "the same level"),
        (vec![full(), quick_failed()], Failed, "a lower level"),
        (vec![full(), quick_failed(), full()], Verified, "a later pass"),
        (vec![other(), failed("gemm-large", full())], Verified, "another GPU stands"),
        (vec![other(), failed("pip-check", full())], Failed, "a check that needs no GPU"),
        (vec![full(), failed("pip-check", run(None, ""))], Failed, "a static run"),
        (vec![full(), failed("pip-check", run(None, "")), full()], Verified, "settled on a GPU"),
        (vec![full(), failed("driver", full())], Failed, "the driver"),
        (vec![failed("gemm-large", full()), run(None, "")], Failed, "a static pass settles nothing"),
        (
            vec![full(), failed("pip-check", run(None, "")), run(None, "")],
            ImageState::StaticOnly,
            "what was withdrawn does not come back without a GPU",
        ),
        (
            vec![full(), quick_failed(), at("quick", full())],
            ImageState::Passed,
            "what was withdrawn does not come back at a lower level",
        ),
    ] {
        assert_eq!(state(&runs), expected, "{why}");
    }
    // No check of the failed run could name its GPU.
    let mut unknown = failed("driver", full());
    for check in &mut unknown.checks {
        check.measured.clear();
    }
    unknown.gpus.clear();
    assert_eq!(state(&[full(), other(), unknown.clone()]), Failed);
    assert_eq!(withdrawn(&[full(), other()], &unknown), 2);
    assert_eq!(withdrawn(&[full(), other()], &failed("gemm-large", full())), 1);
    assert_eq!(withdrawn(&[full()], &run(None, "")), 0, "a pass withdraws nothing");
}

#[test]
fn failure_with_another_driver_is_shown_beside_what_stands() {
    let lock = lock(&[]);
    let old = failed("gemm-large", run(Some(H200), "535.1"));
    let reports = kept(&[run(Some(H200), "580.1"), old, run(Some(H200), "580.1")]);
    let proven = reports.proven(Some(&lock));
    assert_eq!(proven.state, ImageState::Verified);
    assert_eq!(proven.failed[0].driver.as_deref(), Some("535.1"));
    let text = proven.to_string();
    assert!(text.starts_with("verified at level full on NVIDIA H200 (sm_90), driver 580.1"), "{text}");
    assert!(text.contains("; failed at level full on NVIDIA H200 (sm_90), driver 535.1"), "{text}");
}

#[test]
fn newer_driver_outranks_the_failure_of_an_older_one() {
    let old = failed("gemm-large", run(Some(H200), "535.1"));
    let quick = at("quick", run(Some(H200), "580.1"));
    assert_eq!(state(&[old.clone(), quick]), ImageState::Failed, "of a lower level it does not");
    let proven = kept(&[old, run(Some(H200), "580.1")]).proven(None);
    assert_eq!((proven.state, proven.failed.len()), (ImageState::Passed, 1));
}

#[test]
fn run_that_was_ended_on_one_gpu_says_nothing_of_another() {
    let mut ended = run(Some(V100), "580.1");
    ended.checks.retain(|check| check.id != "gemm-large");
    let agent = |id: &str, stage: &str| Check { outcome: Outcome::Errored, ..check(id, stage, None) };
    ended.checks.extend([agent("agent", "static"), agent("gemm-large", "gpu")]);
    ended.verdict = VerdictStatus::Failed;
    assert_eq!(state(&[run(Some(H200), "580.1"), ended]), ImageState::Verified);
}

#[test]
fn report_without_a_lock_is_no_verified_tag() {
    let proven = kept(&[run(Some(H200), "580.1")]).proven(None);
    assert_eq!(proven.state, ImageState::Passed);
    assert!(proven.to_string().starts_with("not verified: passed at level full on"), "{proven}");
}

#[test]
fn shown_report_is_the_best_that_stands_or_a_later_failure() {
    let lock = lock(&[]);
    let shown = |runs: &[Verdict]| kept(runs).shown(Some(&lock)).cloned();
    let full = || run(Some(H200), "580.1");
    let broken = failed("gemm-large", full());
    assert_eq!(shown(&[full(), run(None, "")]), Some(full()));
    assert_eq!(shown(&[full(), broken.clone()]), Some(broken.clone()));
    assert_eq!(shown(&[broken, full()]), Some(full()));
    assert_eq!(shown(&[undecided(full())]), Some(undecided(full())));
    assert_eq!(shown(&[]), None);
}

#[test]
fn state_folder_of_another_machine_names_its_gpu_and_date() {
    let mut theirs = run(Some(V100), "470.1");
    "2026-01-02T03:04:05Z".clone_into(&mut theirs.checked);
    let text = kept(&[theirs]).proven(Some(&lock(&[]))).to_string();
    assert_eq!(text, "verified at level full on NVIDIA V100 (sm_70), driver 470.1, 2026-01-02");
}

#[test]
fn report_of_earlier_versions_has_no_driver() {
    let mut old = run(Some(H200), "");
    old.checks.retain(|check| check.id != "device");
    old.checks.push(check("device", "gpu", Some(H200)));
    let text = kept(&[old]).proven(Some(&lock(&[]))).to_string();
    assert!(text.contains("driver not recorded, date not recorded"), "{text}");
}

#[test]
fn report_stands_in_place_of_a_run_under_its_own_conditions_until_something_fails() {
    let (full, static_only) = (run(Some(H200), "580.1"), run(None, ""));
    let under = |reports: &[Verdict], conditions: &str| {
        let mut all = kept(reports);
        for (kept, digest) in all.kept.iter_mut().rev().zip(["a", "b", "c"]) {
            kept.conditions = Some(digest.to_owned());
        }
        all.made_under(conditions).map(|report| report.level.clone())
    };
    let both = [static_only.clone(), full.clone()];
    assert_eq!(under(&both, "a").as_deref(), Some("static"));
    assert_eq!(under(&both, "b").as_deref(), Some("full"));
    assert_eq!(under(&both, "d"), None);
    assert_eq!(kept(&both).made_under("a"), None, "conditions that are not known are not equal");
    let failed = [static_only, full.clone(), failed("gemm-large", at("quick", full.clone()))];
    assert_eq!((under(&failed, "a"), under(&failed, "b")), (None, None));
    assert_eq!(under(&[undecided(full)], "a"), None, "a host that was busy decided nothing");
}

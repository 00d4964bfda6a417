//! The policy as a table: reports and the tags that they allow.

use std::collections::BTreeMap;

use super::*;
use crate::model::lock::{LockedWheel, sample};
use crate::model::target::{Target, TargetGpu, TargetSource};
use crate::model::verdict::{Check, SkipReason, VerdictStatus};

const H200: &str = "NVIDIA H200 (sm_90)";

/// A lock for `any` machine (code for 7.0 and 9.0), or for the named GPUs, with wheels of the libraries.
pub(in crate::model::verdict) fn lock(target: &[&str]) -> Lock {
    let mut lock = sample::lock();
    for name in ["nvidia-cublas-cu12", "nvidia-cudnn-cu12", "nvidia-nccl-cu12"] {
        lock.wheels.push(LockedWheel { name: name.to_owned(), ..lock.wheels[0].clone() });
    }
    lock.stack.requires.gpu = ["7.0", "9.0"].map(|text| text.parse().expect("a capability")).to_vec();
    let machine = lock.stack.machine;
    let gpu = |text: &&str| TargetGpu { name: None, compute_capability: text.parse().expect("a capability") };
    let gpus: Vec<_> = target.iter().map(gpu).collect();
    let source = if gpus.is_empty() { TargetSource::Any } else { TargetSource::Named };
    lock.stack.target = Target { source, driver: None, gpus, machine };
    lock
}

pub(in crate::model::verdict) fn check(id: &str, stage: &str, gpu: Option<&str>) -> Check {
    Check {
        id: id.to_owned(),
        stage: stage.to_owned(),
        required: true,
        outcome: Outcome::Passed,
        detail: "exact".to_owned(),
        measured: gpu.iter().map(|gpu| ("gpu.0".to_owned(), (*gpu).to_owned())).collect(),
        expected: BTreeMap::new(),
        hint: None,
        skip: None,
    }
}

/// The report of a whole run on that GPU, or of a static one.
pub(in crate::model::verdict) fn report(lock: &Lock, gpu: Option<&str>) -> Verdict {
    let mut checks: Vec<_> = static_checks(lock).iter().map(|id| check(id, "static", None)).collect();
    if gpu.is_some() {
        checks.extend(gpu_checks(lock, true).iter().map(|id| check(id, "gpu", gpu)));
    }
    Verdict {
        schema: 1,
        image: "sha256:1".into(),
        executed: gpu.is_some(),
        verdict: VerdictStatus::Passed,
        checks,
        gpus: vec![],
        versions: BTreeMap::new(),
        seconds: 1.0,
        name: "x".into(),
        digests: vec![],
        level: "full".into(),
        not_proven: vec![],
        checked: String::new(),
        engine: None,
        lock: None,
        sandboxed: false,
        conditions: None,
    }
}

/// Changes a complete report on an H200.
type Change = fn(&mut Verdict);

fn set(verdict: &mut Verdict, id: &str, outcome: Outcome, detail: &str) {
    let check = verdict.checks.iter_mut().find(|check| check.id == id).expect("in the report");
    check.outcome = outcome;
    detail.clone_into(&mut check.detail);
    check.measured.clear();
}

fn skip(verdict: &mut Verdict, id: &str, reason: Option<SkipReason>) {
    set(verdict, id, Outcome::Skipped, "one GPU");
    verdict.checks.iter_mut().find(|check| check.id == id).expect("in the report").skip = reason;
}

const VERIFIED: &str = "verified";
const FAILED: &str = "failed";

fn word(claim: &TagStatus) -> String {
    match claim {
        TagStatus::Verified => VERIFIED.to_owned(),
        TagStatus::Failed => FAILED.to_owned(),
        TagStatus::Unverified { because } => because.clone(),
    }
}

#[test]
fn only_target_gpus_count() {
    let rows: &[(&[&str], Option<&str>, &str)] = &[
        (&[], Some(H200), VERIFIED),
        (&["9.0"], Some(H200), VERIFIED),
        (&["8.0", "9.0"], Some(H200), VERIFIED),
        (&["8.0"], Some(H200), "checks ran on NVIDIA H200 (sm_90), the image targets 8.0"),
        (&[], Some("NVIDIA GeForce RTX 5090 (sm_120)"), "the image targets 7.0 9.0"),
        (&[], Some("a GPU without capability"), "the image targets 7.0 9.0"),
        (&[], None, "nothing ran on a GPU"),
        (&["9.0"], None, "nothing ran on a GPU"),
    ];
    for (target, gpu, wanted) in rows {
        let lock = lock(target);
        let found = word(&claim(&lock, &report(&lock, *gpu)));
        assert!(found.ends_with(wanted), "{target:?} on {gpu:?}: {found}");
    }
}

/// A host with an H200 and a display card: what ran only on the card proves nothing for an image that targets the H200.
#[test]
fn every_required_check_names_a_gpu_that_counts() {
    const CARD: &str = "NVIDIA RTX A4000 (sm_86)";
    let lock = lock(&["9.0"]);
    let both = |verdict: &mut Verdict, id: &str, labels: [&str; 2]| {
        let check = verdict.checks.iter_mut().find(|check| check.id == id).expect("in the report");
        check.measured = labels
            .iter()
            .filter(|label| !label.is_empty())
            .enumerate()
            .map(|(at, label)| (format!("gpu.{at}"), (*label).to_owned()))
            .collect();
    };
    for id in ["gemm-large", "conv-own", "nccl-all-reduce", "framework-matmul", "framework-ddp"] {
        let mut verdict = report(&lock, Some(H200));
        both(&mut verdict, id, [CARD, H200]);
        assert_eq!(word(&claim(&lock, &verdict)), VERIFIED, "{id}");
        let because = format!("the required check `{id}` ran on no GPU that counts for the image");
        both(&mut verdict, id, [CARD, ""]);
        assert_eq!(word(&claim(&lock, &verdict)), because);
        both(&mut verdict, id, ["", ""]);
        assert_eq!(word(&claim(&lock, &verdict)), because, "a check that names no GPU");
    }
    let mut verdict = report(&lock, Some(H200));
    both(&mut verdict, "driver", [CARD, ""]);
    assert_eq!(word(&claim(&lock, &verdict)), VERIFIED, "the driver's group runs no kernel");
}

type Texts = &'static [&'static str];

/// PyTorch 2.8 has code for 8.6, which an L4, L40S or RTX 4090 (8.9) runs.
#[test]
fn gpus_that_run_the_code_count() {
    // Machine code, PTX, named target; the GPU, the answer, and the GPUs that stay unproven.
    let rows: &[([Texts; 3], &str, &str, Texts)] = &[
        ([&["8.0", "8.6", "9.0"], &[], &[]], "NVIDIA L4 (sm_89)", VERIFIED, &["8.0", "9.0"]),
        ([&["8.6"], &[], &[]], "NVIDIA A100 (sm_80)", "the image targets 8.6", &["8.6"]),
        ([&["8.6"], &[], &[]], "NVIDIA H200 (sm_90)", "the image targets 8.6", &["8.6"]),
        ([&["9.0"], &["9.0"], &[]], "NVIDIA B200 (sm_100)", VERIFIED, &[]),
        ([&["9.0"], &["9.0"], &[]], "NVIDIA L4 (sm_89)", "the image targets 9.0", &["9.0"]),
        ([&["8.6"], &[], &["8.9"]], "NVIDIA L4 (sm_89)", VERIFIED, &[]),
        ([&["8.6"], &[], &["8.6"]], "NVIDIA L4 (sm_89)", "the image targets 8.6", &["8.6"]),
        ([&["8.0"], &[], &["9.0"]], "NVIDIA H200 (sm_90)", "the image targets 9.0", &[]),
        ([&[], &[], &["9.0"]], "NVIDIA H200 (sm_90)", VERIFIED, &[]),
        ([&[], &[], &[]], "NVIDIA H200 (sm_90)", "the image targets ", &[]),
    ];
    let parsed = |texts: &[&str]| texts.iter().map(|text| text.parse().expect("a capability")).collect();
    for ([cubins, ptx, target], gpu, wanted, unproven) in rows {
        let mut lock = lock(target);
        (lock.stack.requires.gpu, lock.stack.requires.ptx) = (parsed(cubins), parsed(ptx));
        let verdict = report(&lock, Some(gpu));
        let found = word(&claim(&lock, &verdict));
        assert!(found.ends_with(wanted), "{cubins:?} {ptx:?} for {target:?} on {gpu}: {found}");
        let left: Vec<_> = not_proven(&lock, &verdict).iter().map(|it| it.dotted()).collect();
        assert_eq!(left, *unproven, "{cubins:?} {ptx:?} for {target:?} on {gpu}");
    }
}

#[test]
fn every_required_check_must_run() {
    let rows: &[(&str, Change, &str)] = &[
        ("a whole run", |_| {}, VERIFIED),
        ("wrong result", |v| set(v, "gemm-fp16-own", Outcome::Failed, "wrong"), FAILED),
        ("required check errored", |v| set(v, "conv-own", Outcome::Errored, "hang"), FAILED),
        ("static check failed", |v| set(v, "pip-check", Outcome::Failed, "x"), FAILED),
        ("static check skipped", |v| skip(v, "pip-check", Some(SkipReason::OneGpu)), FAILED),
        ("skip for the GPU count", |v| skip(v, "nccl-all-gather", Some(SkipReason::OneGpu)), VERIFIED),
        (
            "skip for the capability",
            |v| skip(v, "gemm-bf16-own", Some(SkipReason::ComputeCapability)),
            VERIFIED,
        ),
        (
            "skip for a missing library",
            |v| skip(v, "conv-cudnn-forward", Some(SkipReason::NotInImage)),
            FAILED,
        ),
        ("busy host", |v| skip(v, "gemm-large", Some(SkipReason::HostBusy)), "the host is busy: one GPU"),
        ("skip without reason", |v| skip(v, "gemm-large", None), FAILED),
        (
            "optional check failed",
            |v| {
                v.checks.push(Check {
                    required: false,
                    outcome: Outcome::Failed,
                    ..check("extra", "gpu", None)
                });
            },
            FAILED,
        ),
        (
            "optional check errored",
            |v| {
                v.checks.push(Check {
                    required: false,
                    outcome: Outcome::Errored,
                    ..check("extra", "gpu", None)
                });
            },
            FAILED,
        ),
        (
            "optional check skipped",
            |v| {
                v.checks.push(Check {
                    required: false,
                    outcome: Outcome::Skipped,
                    ..check("extra", "gpu", None)
                });
            },
            VERIFIED,
        ),
        (
            "slow only warns",
            |v| {
                v.checks.push(Check {
                    detail: "slow".into(),
                    required: false,
                    ..check("speed", "perf", Some(H200))
                });
            },
            VERIFIED,
        ),
        (
            "required check absent",
            |v| v.checks.retain(|c| c.id != "framework-ddp"),
            "the required check `framework-ddp` was not executed at level full",
        ),
        (
            "static check absent",
            |v| v.checks.retain(|c| c.id != "secrets"),
            "the required check `secrets` did not run",
        ),
        ("static run only", |v| v.checks.retain(|c| c.stage == "static"), "nothing ran on a GPU"),
        (
            "driver and device alone",
            |v| v.checks.retain(|c| c.stage == "static" || c.id == "driver" || c.id == "device"),
            "nothing ran on a GPU",
        ),
    ];
    for (name, change, wanted) in rows {
        let lock = lock(&[]);
        let mut verdict = report(&lock, Some(H200));
        change(&mut verdict);
        assert_eq!(word(&claim(&lock, &verdict)), *wanted, "{name}");
    }
}

#[test]
fn unproven_gpus_are_listed() {
    let dotted = |lock: &Lock, verdict: &Verdict| -> Vec<String> {
        not_proven(lock, verdict).iter().map(|capability| capability.dotted()).collect()
    };
    let any = lock(&[]);
    assert_eq!(dotted(&any, &report(&any, Some(H200))), ["7.0"]);
    assert_eq!(dotted(&any, &report(&any, None)), ["7.0", "9.0"]);
    let named = lock(&["8.0", "9.0"]);
    assert_eq!(dotted(&named, &report(&named, Some(H200))), ["8.0"]);
}

#[test]
fn unverified_build_never_moves_a_verified_tag() {
    let wanted = ["pytorch-cuda:2.8.0-cu128-py3.11".to_owned(), "host:5000/team/torch".to_owned()];
    let unproven = TagStatus::Unverified { because: "nothing ran on a GPU".into() };
    let tags = tags_for(&unproven, &wanted);
    assert_eq!(
        tags,
        ["pytorch-cuda:2.8.0-cu128-py3.11-unverified", "host:5000/team/torch:latest-unverified"]
    );
    assert!(tags.iter().all(|tag| !wanted.contains(tag)));
    assert_eq!(tags_for(&TagStatus::Verified, &wanted), wanted);
    assert!(tags_for(&TagStatus::Failed, &wanted).is_empty());
}

#[test]
fn verified_image_earns_each_tag_once() {
    let tags = ["a:1-unverified", "a:1", "b:2-unverified", "c:3"].map(str::to_owned);
    assert_eq!(verified_tags(&tags), ["b:2"]);
}

/// An image that is verified late must not take the tag back from a newer one.
#[test]
fn tags_of_a_project_move_so_that_a_late_verification_moves_none_back() {
    let current = "envforge/vision-ft:current";
    assert_eq!(moving_tags(current, false), ["envforge/vision-ft:current-unverified"]);
    let verified = moving_tags(current, true);
    assert_eq!(verified, [current, "envforge/vision-ft:current-unverified"]);
    assert!(verified_tags(&verified).is_empty());
    let older = ["envforge/vision-ft:0123456789ab-unverified".to_owned()];
    assert_eq!(verified_tags(&older), ["envforge/vision-ft:0123456789ab"]);
    assert_eq!(main_tag(&verified).map(String::as_str), Some(current));
}

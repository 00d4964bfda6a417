//! The whole policy as a table: which report earns which tag.

use std::collections::BTreeMap;

use super::*;
use crate::lock::sample;
use crate::target::{Target, TargetGpu, TargetSource};
use crate::verdict::{Check, Word};

const H200: &str = "NVIDIA H200 (sm_90)";

/// A lock for `any` machine (code for 7.0 and 9.0), or for the named GPUs.
fn lock(target: &[&str]) -> Lock {
    let mut lock = sample::lock();
    lock.stack.requires.gpu = ["7.0", "9.0"].map(|text| text.parse().expect("a capability")).to_vec();
    let machine = lock.stack.machine;
    let gpu = |text: &&str| TargetGpu { name: None, compute_capability: text.parse().expect("a capability") };
    let gpus: Vec<_> = target.iter().map(gpu).collect();
    let source = if gpus.is_empty() { TargetSource::Any } else { TargetSource::Named };
    lock.stack.target = Target { source, driver: None, gpus, machine };
    lock
}

fn check(id: &str, stage: &str, gpu: Option<&str>) -> Check {
    Check {
        id: id.to_owned(),
        stage: stage.to_owned(),
        required: true,
        outcome: Outcome::Passed,
        detail: "exact".to_owned(),
        measured: gpu.iter().map(|gpu| ("gpu.0".to_owned(), (*gpu).to_owned())).collect(),
        expected: BTreeMap::new(),
        hint: None,
    }
}

/// The report of a whole run on that GPU, or of a static one.
fn report(lock: &Lock, gpu: Option<&str>) -> Verdict {
    let mut checks: Vec<_> = static_checks(lock).iter().map(|id| check(id, "static", None)).collect();
    if gpu.is_some() {
        checks.extend(gpu_checks(&lock.stack, true).iter().map(|id| check(id, "gpu", gpu)));
    }
    Verdict {
        schema: 1,
        image: "sha256:1".into(),
        executed: gpu.is_some(),
        verdict: Word::Passed,
        checks,
        gpus: vec![],
        versions: BTreeMap::new(),
        seconds: 1.0,
        name: "x".into(),
        digests: vec![],
        level: "full".into(),
        not_proven: vec![],
        checked: String::new(),
    }
}

/// What a row changes in a whole report on an H200.
type Change = fn(&mut Verdict);

fn set(verdict: &mut Verdict, id: &str, outcome: Outcome, detail: &str) {
    let check = verdict.checks.iter_mut().find(|check| check.id == id).expect("in the report");
    check.outcome = outcome;
    detail.clone_into(&mut check.detail);
    check.measured.clear();
}

const VERIFIED: &str = "verified";
const FAILED: &str = "failed";

fn word(claim: &Claim) -> String {
    match claim {
        Claim::Verified => VERIFIED.to_owned(),
        Claim::Failed => FAILED.to_owned(),
        Claim::Unverified { because } => because.clone(),
    }
}

#[test]
fn a_gpu_counts_if_the_image_is_for_it() {
    let rows: &[(&[&str], Option<&str>, &str)] = &[
        (&[], Some(H200), VERIFIED),
        (&["9.0"], Some(H200), VERIFIED),
        (&["8.0", "9.0"], Some(H200), VERIFIED),
        (&["8.0"], Some(H200), "it ran on NVIDIA H200 (sm_90), and the image is for 8.0"),
        (&[], Some("NVIDIA GeForce RTX 5090 (sm_120)"), "and the image is for 7.0 9.0"),
        (&[], Some("a GPU without capability"), "and the image is for 7.0 9.0"),
        (&[], None, "nothing ran on a GPU"),
        (&["9.0"], None, "nothing ran on a GPU"),
    ];
    for (target, gpu, wanted) in rows {
        let lock = lock(target);
        let found = word(&claim(&lock, &report(&lock, *gpu)));
        assert!(found.ends_with(wanted), "{target:?} on {gpu:?}: {found}");
    }
}

#[test]
fn every_required_check_must_have_run() {
    let rows: &[(&str, Change, &str)] = &[
        ("a whole run", |_| {}, VERIFIED),
        ("wrong result", |v| set(v, "gemm-fp16-own", Outcome::Failed, "wrong"), FAILED),
        ("required check errored", |v| set(v, "conv-own", Outcome::Errored, "hang"), FAILED),
        ("static check failed", |v| set(v, "pip-check", Outcome::Failed, "x"), FAILED),
        ("static check skipped", |v| set(v, "pip-check", Outcome::Skipped, "one GPU"), FAILED),
        ("skip for the GPU count", |v| set(v, "nccl-all-gather", Outcome::Skipped, "one GPU"), VERIFIED),
        (
            "skip for the capability",
            |v| set(v, "gemm-bf16-own", Outcome::Skipped, "needs compute capability 8.0"),
            VERIFIED,
        ),
        (
            "skip for a missing library",
            |v| set(v, "conv-cudnn-forward", Outcome::Skipped, "libcudnn is not in the image"),
            FAILED,
        ),
        ("skip without reason", |v| set(v, "gemm-large", Outcome::Skipped, ""), FAILED),
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
fn what_was_not_proven_is_listed() {
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
fn an_unverified_build_never_moves_a_verified_tag() {
    let wanted = ["pytorch-cuda:2.8.0-cu128-py3.11".to_owned(), "host:5000/team/torch".to_owned()];
    let unproven = Claim::Unverified { because: "nothing ran on a GPU".into() };
    let tags = tags_for(&unproven, &wanted);
    assert_eq!(
        tags,
        ["pytorch-cuda:2.8.0-cu128-py3.11-unverified", "host:5000/team/torch:latest-unverified"]
    );
    assert!(tags.iter().all(|tag| !wanted.contains(tag)));
    assert_eq!(tags_for(&Claim::Verified, &wanted), wanted);
    assert!(tags_for(&Claim::Failed, &wanted).is_empty());
}

#[test]
fn a_verified_image_earns_the_tags_without_suffix_once() {
    let tags = ["a:1-unverified", "a:1", "b:2-unverified", "c:3"].map(str::to_owned);
    assert_eq!(promoted(&tags), ["b:2"]);
}

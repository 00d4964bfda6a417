//! `plan --json` for both answers.

use super::{spec, x86};
use crate::matrix::Matrix;
use crate::resolve::{ResolveOptions, plan_report, resolve};
use crate::target::Target;

fn report(text: &str, target: &Target) -> serde_json::Value {
    let asked = spec(text);
    let answer = resolve(&asked, target, Matrix::embedded(), &ResolveOptions::default());
    serde_json::to_value(plan_report(text, &asked, target, "auto", &answer)).expect("plain data")
}

#[test]
fn a_plan_has_every_documented_field() {
    let value = report("pytorch-cuda:2.8-cu128-py311", &x86(&[], None));
    insta::assert_json_snapshot!("plan", value);
}

#[test]
fn unsatisfiable_plan_has_the_same_fields_with_nulls() {
    let value = report("pytorch-cuda:2.9-cu118", &x86(&["sm_90"], Some("535.104.05")));
    let whole = report("pytorch-cuda:2.8-cu128-py311", &x86(&[], None));
    let keys =
        |value: &serde_json::Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&value), keys(&whole));
    assert_eq!(value["verdict"], "impossible");
    for absent in ["name", "channel", "stack", "requires", "base"] {
        assert!(value[absent].is_null(), "{absent}");
    }
    assert_eq!(value["target"]["driver"], "535.104.05");
    assert_eq!(value["target"]["gpus"][0]["compute_capability"], "9.0");
    assert_eq!(value["refusals"][0]["rule"], "variant-unpublished");
    assert_eq!(value["alternatives"][0]["command"], "envforge build pytorch-cuda:2.9.1-cu126");
}

#[test]
fn absent_facts_are_null() {
    let value = report("pytorch-cuda:2.15-cu130", &x86(&[], None));
    assert!(value["stack"]["cudnn"].is_null() && value["stack"]["nccl"].is_null());
    assert!(value["stack"]["torchaudio"].is_null());
    assert!(value["target"]["driver"].is_null());
}

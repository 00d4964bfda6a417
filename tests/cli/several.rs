//! Several specs in one build, as far as no engine is needed.

use crate::{assert_message, envforge, said};

#[test]
fn every_refusal_is_reported_and_the_table_comes_last() {
    let run = envforge(&["build", "pytorch-cuda:2.9-cu118", "pytorch-cuda:9.9-cu128"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(
        run.stderr.contains("variant-unpublished") && run.stderr.contains("unknown-version"),
        "{}",
        run.stderr
    );
    let lines: Vec<_> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", run.stdout);
    assert!(lines.iter().all(|line| line.starts_with("refused ")), "{}", run.stdout);
}

#[test]
fn json_is_one_object_for_all_specs() {
    let run = envforge(&["build", "--json", "pytorch-cuda:2.9-cu118", "nonsense:1"]);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("one JSON object");
    let builds = report["builds"].as_array().expect("a list");
    assert_eq!(builds.len(), 2);
    assert_eq!((report["schema"].as_u64(), builds[0]["exit"].as_u64()), (Some(1), Some(1)));
    assert_eq!(builds[0]["spec"], "pytorch-cuda:2.9-cu118");
    assert!(builds[0]["error"].as_str().is_some_and(|text| text.contains("variant-unpublished")));
}

#[test]
fn tag_option_requires_one_spec() {
    let run = envforge(&["build", "pytorch-cuda:2.8", "pytorch-cuda:2.9", "-t", "mine:1"]);
    assert_message(&run, 2, &["--tag", "got 2"]);
}

#[test]
fn filter_without_match_is_explained() {
    insta::assert_snapshot!(said(&["build", "--all-supported", "pytorch-cuda:2.9-cu118"]));
}

#[test]
fn build_without_spec_is_a_usage_error() {
    assert_message(&envforge(&["build"]), 2, &["SPEC"]);
}

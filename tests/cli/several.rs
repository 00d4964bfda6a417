//! Several specs in one build, as far as no engine is needed.

use crate::{assert_message, envforge, said};

#[test]
fn each_refusal_is_told_and_the_table_closes() {
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
fn programs_get_one_object_for_all() {
    let run = envforge(&["build", "--json", "pytorch-cuda:2.9-cu118", "nonsense:1"]);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("one JSON object");
    let builds = report["builds"].as_array().expect("a list");
    assert_eq!(builds.len(), 2);
    assert_eq!((report["schema"].as_u64(), builds[0]["exit"].as_u64()), (Some(1), Some(1)));
    assert_eq!(builds[0]["spec"], "pytorch-cuda:2.9-cu118");
    assert!(builds[0]["error"].as_str().is_some_and(|text| text.contains("variant-unpublished")));
}

#[test]
fn a_tag_is_for_one_image() {
    let run = envforge(&["build", "pytorch-cuda:2.8", "pytorch-cuda:2.9", "-t", "mine:1"]);
    assert_message(&run, 2, &["--tag", "got 2"]);
}

#[test]
fn a_filter_that_covers_nothing_says_why() {
    insta::assert_snapshot!(said(&["build", "--all-supported", "pytorch-cuda:2.9-cu118"]));
}

#[test]
fn a_build_of_nothing_is_a_wrong_call() {
    assert_message(&envforge(&["build"]), 2, &["SPEC"]);
}

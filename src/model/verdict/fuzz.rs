//! Malformed lines never end the program and never make an image pass.

use proptest::prelude::*;

use super::tests::image;
use super::*;

/// Ids that the verdict treats specially, and others.
const IDS: [&str; 8] =
    ["one", "two", "image-user", "image-addresses", "agent", "driver", "gemm-large", "x-version"];
const STAGES: [&str; 4] = ["static", "gpu", "perf", "dream"];
const OUTCOMES: [&str; 5] = ["passed", "failed", "skipped", "errored", "splendid"];
const KEYS: [&str; 5] = ["gpu.0", "gpu.x", "gpu.", "value", ""];

/// A well-formed line with values of any kind.
fn shaped() -> impl Strategy<Value = String> {
    let pick = |all: &'static [&'static str]| prop::sample::select(all);
    (pick(&IDS), pick(&STAGES), pick(&OUTCOMES), pick(&KEYS), ".{0,30}", any::<bool>()).prop_map(
        |(id, stage, outcome, key, text, required)| {
            serde_json::json!({
                "id": id, "stage": stage, "outcome": outcome, "detail": text, "required": required,
                "measured": { key: text }, "expected": {}, "hint": text, "skip": text,
            })
            .to_string()
        },
    )
}

fn any_lines() -> impl Strategy<Value = String> {
    let done = Just("{\"done\":true,\"seconds\":1e308}".to_owned());
    let line = prop_oneof![4 => shaped(), 2 => ".{0,80}", 1 => done, 1 => Just("[".repeat(300))];
    prop::collection::vec(line, 0..20).prop_map(|lines| lines.join("\n"))
}

/// A complete report of a kernel that ran.
const WHOLE: &str = r#"{"schema":1,"agent":"envforge-agent"}
{"id":"one","stage":"static","outcome":"passed","detail":"fine"}
{"id":"gemm-large","stage":"gpu","outcome":"passed","detail":"exact","measured":{"gpu.0":"NVIDIA H200 (sm_90)"}}
{"done":true,"seconds":1.25}"#;

fn expected() -> ImageExpectations {
    ImageExpectations {
        required: ["one", "gemm-large"].map(str::to_owned).to_vec(),
        ..ImageExpectations::default()
    }
}

#[test]
fn complete_report_passes() {
    assert_eq!(
        judge(WHOLE, "agent exited with code 0", &image(), &expected()).verdict,
        VerdictStatus::Passed
    );
}

proptest! {
    #[test]
    fn report_without_a_required_check_never_passes(
        lines in any_lines(), code in any::<i64>(), foreign in any::<bool>()
    ) {
        let required = vec!["never-said".to_owned()];
        let verdict = judge(&lines, &format!("agent exited with code {code}"), &image(), &ImageExpectations { required, foreign, ..ImageExpectations::default() });
        prop_assert_eq!(verdict.verdict, VerdictStatus::Failed);
        let text = junit(&[&verdict]) + &verdict_text(&verdict, Detail::Everything);
        prop_assert!(!text.is_empty());
        let written = serde_json::to_string(&verdict).expect("a verdict serialises");
        let read: Verdict = serde_json::from_str(&written).expect("and is read again");
        prop_assert_eq!(read.checks.len(), verdict.checks.len());
    }

    #[test]
    fn failed_line_always_fails_the_report(lines in any_lines()) {
        let failed = "\n{\"id\":\"one\",\"stage\":\"gpu\",\"outcome\":\"failed\",\"detail\":\"wrong\"}";
        let verdict = judge(&(lines + failed), "agent exited with code 0", &image(), &ImageExpectations { foreign: true, ..ImageExpectations::default() });
        prop_assert_eq!(verdict.verdict, VerdictStatus::Failed);
    }

    #[test]
    fn truncated_report_never_passes(at in 0..WHOLE.len()) {
        let verdict = judge(&WHOLE[..at], "agent exited with code 0", &image(), &expected());
        prop_assert_eq!(verdict.verdict, VerdictStatus::Failed);
    }
}

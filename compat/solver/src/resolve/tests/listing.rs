//! The listing against the repository's matrix.

use super::{spec, x86};
use crate::matrix::Matrix;
use crate::resolve::{ListEntry, ListReport, ResolveOptions, Rule, entries, list_text, products_text};
use crate::target::Target;

fn listed(filter: Option<&str>, target: &Target) -> Vec<ListEntry> {
    let filter = filter.map(spec);
    entries(Matrix::embedded(), filter.as_ref(), target, &ResolveOptions::default())
}

#[test]
fn filter_keeps_matches_newest_first() {
    let specs: Vec<_> =
        listed(Some("pytorch-cuda:2.8"), &x86(&[], None)).iter().map(|e| e.spec.to_string()).collect();
    // The last is unpublished and built from source.
    let cudas: Vec<_> = specs.iter().filter_map(|spec| spec.strip_prefix("pytorch-cuda:2.8.0-")).collect();
    assert_eq!(cudas, ["cu129", "cu128", "cu126", "cu118"]);
    assert!(listed(Some("pytorch-cuda:9"), &x86(&[], None)).is_empty());
    assert!(listed(Some("nothing-cuda"), &x86(&[], None)).is_empty());
}

#[test]
fn unconfirmed_publications_are_listed_only_on_request() {
    let has = |filter| {
        listed(Some(filter), &x86(&[], None)).iter().any(|e| e.spec.to_string().ends_with("2.15.0-cu130"))
    };
    assert!(!has("pytorch-cuda:2.15"));
    assert!(has("pytorch-cuda:2.15-cu130"));
}

#[test]
fn runs_here_is_null_without_a_target_and_has_reasons_with_one() {
    assert!(listed(None, &x86(&[], None)).iter().all(|entry| entry.runs_here.is_none()));
    let pascal = listed(Some("pytorch-cuda:2.8"), &x86(&["sm_61"], Some("580.65.06")));
    let of = |cuda: &str| pascal.iter().find(|entry| entry.spec.to_string().ends_with(cuda)).expect(cuda);
    assert_eq!((of("cu126").runs_here, of("cu126").why_not.as_slice()), (Some(true), [].as_slice()));
    assert_eq!(
        (of("cu128").runs_here, of("cu128").why_not.as_slice()),
        (Some(false), [Rule::GpuNotInBinary].as_slice())
    );
}

#[test]
fn the_object_has_the_documented_fields() {
    let report = ListReport::new(listed(Some("pytorch-cuda:2.8-cu128"), &x86(&["sm_90"], None)));
    let value = serde_json::to_value(&report).expect("plain data");
    assert_eq!(value["schema"], 1);
    let entry = &value["entries"][0];
    assert_eq!(entry["spec"], "pytorch-cuda:2.8.0-cu128");
    assert_eq!(entry["channel"], "default");
    assert_eq!(entry["driver"], ">=525.60.13");
    assert_eq!(entry["runs_here"], true);
    assert_eq!(entry["gpu"][0], "7.0");
    assert_eq!(entry["why_not"], serde_json::json!([]));
    assert_eq!(entry["ptx"], serde_json::json!([]));
    assert!(entry["python"].is_array() && entry["cudnn"].is_string() && entry["nccl"].is_string());
}

#[test]
fn the_table_fits_80_columns() {
    let text = list_text(&listed(None, &x86(&["sm_61"], Some("580.65.06"))));
    assert!(text.lines().count() > 80);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert_eq!(list_text(&[]), "no matching variants in the matrix\n");
}

#[test]
fn products_have_a_line_each_with_the_newest_that_can_run() {
    let matrix = Matrix::embedded();
    let line = |target: &Target, product: &str| {
        let text = products_text(&listed(None, target), matrix);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let of_product: Vec<_> = text.lines().filter(|line| line.starts_with(product)).collect();
        assert_eq!(of_product.len(), 1, "{text}");
        of_product[0].split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let any = x86(&[], None);
    let torch = line(&any, "pytorch-cuda:");
    let all = listed(Some("pytorch-cuda"), &any);
    let newest = all[0].spec.to_string();
    assert_eq!((&torch[0], torch[4].as_str(), torch[5].as_str()), (&newest, "amd64,arm64", "-"));
    let versions: std::collections::BTreeSet<_> =
        all.iter().filter_map(|entry| entry.spec.version.as_ref()).map(ToString::to_string).collect();
    assert_eq!(torch[1], versions.len().to_string());
    // An old GPU: not the newest of all, and none of another product.
    let old = x86(&["sm_61"], Some("580.65.06"));
    let torch = line(&old, "pytorch-cuda:");
    assert!(torch[0] != newest && torch[5] == "yes", "{torch:?}");
    // A release whose GPU code is unknown is not taken for one that runs.
    let vllm = line(&old, "vllm-cuda:");
    assert!(vllm[0] == listed(Some("vllm-cuda"), &old)[0].spec.to_string() && vllm[5] == "no", "{vllm:?}");
    let runs = listed(Some("cudf-cuda"), &old).iter().any(|entry| entry.runs_here != Some(false));
    assert_eq!(line(&old, "cudf-cuda:")[5] == "no", !runs);
    assert_eq!(products_text(&[], matrix), "no matching variants in the matrix\n");
}

//! Spellings, errors and round trips of specs.
use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::versions::{CudaVariant, PythonVersion, ToolkitVersion};

#[rstest]
#[case("pytorch-cuda", "pytorch-cuda")]
#[case("pytorch-cuda:latest", "pytorch-cuda")]
#[case("pytorch-cuda:2", "pytorch-cuda:2")]
#[case("pytorch-cuda:2.8", "pytorch-cuda:2.8")]
#[case("pytorch-cuda:v2.8", "pytorch-cuda:2.8")]
#[case("PyTorch-CUDA:2.8-CU128", "pytorch-cuda:2.8-cu128")]
#[case("pytorch-cuda:2.8.0+cu128", "pytorch-cuda:2.8.0-cu128")]
#[case("pytorch-cuda:2.8.0+cu128-cu128", "pytorch-cuda:2.8.0-cu128")]
#[case("pytorch-cuda:v2.8.0+corp1", "pytorch-cuda:2.8.0+corp1")]
#[case("pytorch-cuda:2.8+corp1.2-cu128-py3.12", "pytorch-cuda:2.8+corp1.2-cu128-py3.12")]
#[case("pytorch-cuda:2.8-cu12.8", "pytorch-cuda:2.8-cu128")]
#[case("pytorch-cuda:2.8-cuda12.8", "pytorch-cuda:2.8-cu128")]
#[case("pytorch-cuda:2.8-cuda12.8.1", "pytorch-cuda:2.8-cuda12.8.1")]
#[case("pytorch-cuda:2.8-cu12", "pytorch-cuda:2.8-cu12")]
#[case("pytorch-cuda:2.8-cuda12", "pytorch-cuda:2.8-cu12")]
#[case("pytorch-cuda-cu128", "pytorch-cuda-cu128")]
#[case("pytorch-cuda-py311-devel", "pytorch-cuda-py3.11-devel")]
#[case("pytorch-cuda:2.8-py39", "pytorch-cuda:2.8-py3.9")]
#[case("pytorch-cuda:2.8-cu128-py3.11-runtime", "pytorch-cuda:2.8-cu128-py3.11")]
#[case("pytorch-cuda:latest-cu128-devel", "pytorch-cuda-cu128-devel")]
#[case("cuda:12.8", "cuda:12.8")]
#[case("jax-cuda:0.4.38-cu12", "jax-cuda:0.4.38-cu12")]
fn spellings_have_one_canonical_form(#[case] typed: &str, #[case] printed: &str) {
    assert_eq!(typed.parse::<Spec>().expect(typed).to_string(), printed);
}

#[rstest]
#[case("", "^")]
#[case("pytorch cuda:2.8", "       ^")]
#[case(":2.8", "^")]
#[case("pytorch-cuda:", "             ^")]
#[case("pytorch-cuda:two", "             ^^^")]
#[case("pytorch-cuda:2.8-cux28", "                 ^^^^^")]
#[case("pytorch-cuda:2.8-", "                 ^")]
#[case("pytorch-cuda:2.8-py3", "                 ^^^")]
#[case("pytorch-cuda:2.8-cu128-cu126", "                       ^^^^^")]
#[case("pytorch-cuda:2.8.0+cpu", "                   ^^^")]
#[case("pytorch-cuda:2.8.0+cu128-cu126", "                         ^^^^^")]
#[case("pytorch-cuda:2.8-devl", "                 ^^^^")]
#[case("pytorch-cuda:2.8:3", "                ^")]
#[case("pytorch-cuda:2.8-cuda12.8.1.3", "                 ^^^^^^^^^^^^")]
#[case("pytorch-cuda:2.8-cu12345", "                 ^^^^^^^")]
#[case("pytorch-cuda:99999999999", "             ^^^^^^^^^^^")]
fn errors_point_at_the_invalid_part(#[case] typed: &str, #[case] caret: &str) {
    let error = typed.parse::<Spec>().expect_err(typed);
    let drawn = error.snippet();
    let marks: String = drawn.lines().nth(1).expect("a caret line").chars().skip(4).collect();
    assert_eq!(marks, caret, "{typed}: {error}");
}

#[rstest]
#[case("pytorch-cuda:2.8-devl", "pytorch-cuda:2.8-devel")]
#[case("pytorch-cuda:2.8-runtme", "pytorch-cuda:2.8-runtime")]
#[case("pytorch-cuda:2.8-128", "pytorch-cuda:2.8-cu128")]
#[case("pytorch-cuda:2.8-12.8", "pytorch-cuda:2.8-cu12.8")]
#[case("pytorch-cuda:2.8-python3.11", "pytorch-cuda:2.8-py3.11")]
#[case("pytorch-cuda:2.8-3.11", "pytorch-cuda:2.8-py3.11")]
#[case("pytorch-cuda==2.8", "pytorch-cuda:2.8")]
#[case("pytorch-cuda:latst", "pytorch-cuda:latest")]
fn a_near_miss_gets_a_suggestion(#[case] typed: &str, #[case] meant: &str) {
    let error = typed.parse::<Spec>().expect_err(typed);
    assert_eq!(error.hints(), vec![format!("did you mean `{meant}`?")]);
}

#[test]
fn a_spec_is_text_in_serde() {
    let spec: Spec = serde_json::from_str(r#""pytorch-cuda:v2.8-cuda12.8""#).expect("a spec");
    assert_eq!(serde_json::to_string(&spec).expect("text"), r#""pytorch-cuda:2.8-cu128""#);
    let error = serde_json::from_str::<Spec>(r#""pytorch-cuda:x""#).expect_err("not a version");
    assert!(error.to_string().contains("`x`"), "{error}");
}

#[test]
fn unverified_is_stripped_only_at_the_end() {
    assert_eq!(strip_unverified("pytorch-cuda:2.8-unverified"), ("pytorch-cuda:2.8", true));
    assert_eq!(strip_unverified("pytorch-cuda:2.8"), ("pytorch-cuda:2.8", false));
    assert!("pytorch-cuda:2.8-unverified".parse::<Spec>().is_err());
}

#[test]
fn a_request_covers_its_omitted_parts() {
    let toolkit: ToolkitVersion = "12.8.1".parse().expect("a toolkit");
    let variant: CudaVariant = "cu128".parse().expect("a variant");
    let request = |text: &str| format!("p:1-{text}").parse::<Spec>().expect(text).cuda.expect(text);
    for yes in ["cu12", "cu128", "cuda12.8.1"] {
        assert!(request(yes).covers(variant, &toolkit), "{yes}");
    }
    for no in ["cu11", "cu126", "cuda12.8.0", "cuda12.8.2"] {
        assert!(!request(no).covers(variant, &toolkit), "{no}");
    }
}

prop_compose! {
    fn any_request()(major in 7u8..30, minor in proptest::option::of(0u8..100), patch in proptest::option::of(0u8..100)) -> CudaRequest {
        let minor = if major < 10 { Some(minor.unwrap_or(0)) } else { minor };
        CudaRequest { major, minor, patch: minor.and(patch) }
    }
}

prop_compose! {
    fn any_spec()(
        name in "[a-z]{2,8}(-cuda)?",
        version in proptest::option::of("[0-9]{1,3}(\\.[0-9]{1,3}){0,3}"),
        cuda in proptest::option::of(any_request()),
        python in proptest::option::of((2u8..4, 0u8..30)),
        devel in any::<bool>(),
    ) -> Spec {
        Spec {
            name,
            version: version.map(|text| text.parse().expect("generated to parse")),
            cuda,
            python: python.map(|(major, minor)| PythonVersion { major, minor }),
            flavour: if devel { Flavour::Devel } else { Flavour::Runtime },
        }
    }
}

proptest! {
    #[test]
    fn printed_specs_parse_back(spec in any_spec()) {
        let printed = spec.to_string();
        let parsed: Spec = printed.parse().expect("printed specs parse");
        prop_assert_eq!(parsed.to_string(), printed);
        prop_assert_eq!(parsed, spec);
    }

    #[test]
    fn no_text_panics_and_every_span_is_inside(text in "\\PC{0,40}") {
        if let Err(error) = text.parse::<Spec>() {
            prop_assert!(error.span.end <= text.len() && text.get(error.span.clone()).is_some());
            prop_assert!(!error.snippet().is_empty());
        }
    }
}

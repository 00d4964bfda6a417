//! Order, spellings and round trips of versions.

use std::fmt;
use std::str::FromStr;

use super::*;

fn sorted<T: FromStr + Ord + fmt::Display>(texts: &[&str]) -> Vec<String>
where
    T::Err: fmt::Debug,
{
    let mut all: Vec<T> = texts.iter().map(|text| text.parse().unwrap()).collect();
    all.sort();
    all.iter().map(ToString::to_string).collect()
}

#[test]
fn versions_are_ordered_by_number_not_by_text() {
    assert_eq!(sorted::<DriverVersion>(&["570.9", "570.124.06", "99.1"]), ["99.1", "570.9", "570.124.06"]);
    assert_eq!(sorted::<FrameworkVersion>(&["2.10.0", "2.9.1", "2.9"]), ["2.9", "2.9.1", "2.10.0"]);
    assert_eq!(sorted::<CudaVariant>(&["cu130", "cu128", "cu12"]), ["cu12", "cu128", "cu130"]);
    assert_eq!(sorted::<ComputeCapability>(&["10.0", "9.0", "sm_120"]), ["sm_90", "sm_100", "sm_120"]);
    assert_eq!(sorted::<PythonVersion>(&["3.10", "3.9"]), ["3.9", "3.10"]);
}

#[test]
fn trailing_zeros_make_no_difference_but_the_spelling_stays() {
    let (short, long): (ToolkitVersion, ToolkitVersion) =
        ("12.8".parse().unwrap(), "12.8.0".parse().unwrap());
    assert_eq!(short, long);
    assert_eq!((short.to_string(), long.to_string()), ("12.8".to_owned(), "12.8.0".to_owned()));
    assert_eq!((short.parts(), long.parts()), ([12, 8].as_slice(), [12, 8, 0].as_slice()));
    let hash = |version: &ToolkitVersion| {
        use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
        BuildHasherDefault::<DefaultHasher>::default().hash_one(version)
    };
    assert_eq!(hash(&short), hash(&long));
    assert_eq!("570.124.06".parse::<DriverVersion>().unwrap(), "570.124.6".parse().unwrap());
}

#[test]
fn post_release_is_newer_than_its_release() {
    let sorted = sorted::<LibraryVersion>(&["2.25.1.post1", "2.25.2", "2.25.1"]);
    assert_eq!(sorted, ["2.25.1", "2.25.1.post1", "2.25.2"]);
    assert!("12.8.post1".parse::<ToolkitVersion>().is_err());
    assert!("2.25.post1.2".parse::<LibraryVersion>().is_err());
    assert!("2.25.postx".parse::<LibraryVersion>().is_err());
}

#[test]
fn invalid_version_is_rejected_with_the_expected_kind() {
    for text in ["", ".", "570.", ".1", "570.124.06.1", "v570", "5 70", "570.-1", "4294967296", "57O.1"] {
        let error = text.parse::<DriverVersion>().unwrap_err();
        assert_eq!(error.found, text);
        assert!(error.to_string().ends_with("is not a driver version such as `570.124.06`"), "{error}");
    }
    assert!("12".parse::<ToolkitVersion>().is_err());
    assert!("12.8.1".parse::<CudaApiVersion>().is_err());
    assert!("3".parse::<PythonVersion>().is_err());
    assert!("3.11.2".parse::<PythonVersion>().is_err());
    assert!("3.256".parse::<PythonVersion>().is_err());
}

#[test]
fn prefix_covers_its_numbers() {
    let version: FrameworkVersion = "2.10.1".parse().unwrap();
    let covers = |prefix: &str| version.starts_with(&prefix.parse().unwrap());
    assert!(covers("2") && covers("2.10") && covers("2.10.1"));
    assert!(!covers("2.1") && !covers("2.10.0") && !covers("3"));
}

#[test]
fn capabilities_are_parsed_in_every_spelling() {
    for text in ["8.9", "sm_89", "sm89", "SM_89"] {
        assert_eq!(
            text.parse::<ComputeCapability>().unwrap(),
            ComputeCapability { major: 8, minor: 9 },
            "{text}"
        );
    }
    assert_eq!("sm_121".parse::<ComputeCapability>().unwrap().dotted(), "12.1");
    for text in
        ["", "sm_", "sm_9", "sm_1210", "9", "9.10", "100.0", "sm_9a", "9.0a", "compute_90", "8.9.0", "sm_+9"]
    {
        assert!(text.parse::<ComputeCapability>().is_err(), "{text}");
    }
}

#[test]
fn a_cubin_runs_upward_within_its_major() {
    let cc = |text: &str| text.parse::<ComputeCapability>().unwrap();
    assert!(cc("8.0").cubin_runs_on(cc("8.9")));
    assert!(!cc("8.9").cubin_runs_on(cc("8.6")));
    assert!(!cc("8.0").cubin_runs_on(cc("9.0")));
    assert!(!cc("8.6").cubin_runs_on(cc("8.7")), "Orin runs its own code only");
}

#[test]
fn variants_are_parsed_from_tags() {
    let read = |text: &str| text.parse::<CudaVariant>().unwrap();
    assert_eq!(read("cu128"), CudaVariant { major: 12, minor: Some(8) });
    assert_eq!(read("cu12"), CudaVariant { major: 12, minor: None });
    assert_eq!(read("cu1210").minor, Some(10));
    assert_eq!((read("cu128").dotted(), read("cu12").dotted()), ("12.8".to_owned(), "12".to_owned()));
    for text in ["", "cu", "cu1", "cu12810", "128", "cuda128", "cu12.8", "cu1x", "CU128"] {
        assert!(text.parse::<CudaVariant>().is_err(), "{text}");
    }
}

#[test]
fn text_and_compact_form_round_trip() {
    type All = (DriverVersion, LibraryVersion, ComputeCapability, CudaVariant, PythonVersion, Machine);
    let all: All = (
        "570.124.06".parse().unwrap(),
        "2.25.1.post1".parse().unwrap(),
        "9.0".parse().unwrap(),
        "cu12".parse().unwrap(),
        "3.11".parse().unwrap(),
        Machine::Aarch64,
    );
    let json = serde_json::to_string(&all).unwrap();
    assert_eq!(json, r#"["570.124.06","2.25.1.post1","9.0","cu12","3.11","aarch64"]"#);
    assert_eq!(serde_json::from_str::<All>(&json).unwrap(), all);
    let bytes = postcard::to_stdvec(&all).unwrap();
    assert_eq!(postcard::from_bytes::<All>(&bytes).unwrap(), all);
    assert!(serde_json::from_str::<PythonVersion>("\"three\"").is_err());
}

#[test]
fn own_build_follows_its_release_and_is_meant_by_its_label_alone() {
    let version = |text: &str| text.parse::<FrameworkVersion>().unwrap();
    let own = version("2.8.0+corp1");
    assert!(own > version("2.8.0") && own < version("2.8.1") && own != version("2.8.0+corp2"));
    assert_eq!(
        (own.to_string().as_str(), own.label(), own.public()),
        ("2.8.0+corp1", "corp1", version("2.8.0"))
    );
    for (asked, means) in
        [("2.8.0+corp1", true), ("2.8+corp1", true), ("2.8.0", false), ("2.8", false), ("2.8.0+corp2", false)]
    {
        assert_eq!(own.is_meant_by(&version(asked)), means, "{asked}");
    }
    assert!(!version("2.8.0").is_meant_by(&own));
    assert!(own.starts_with(&version("2.8")), "what is known of 2.8 is known of it");
}

#[test]
fn version_is_named_number_by_number() {
    let version = |text: &str| text.parse::<FrameworkVersion>().unwrap();
    for (found, asked, named) in [
        ("0.12.0", "0.12.0", true),
        ("0.12.0.1", "0.12.0", false),
        ("0.12.0", "0.12", false),
        ("0.5.6.post1", "0.5.6", false),
        ("2.8.0+corp1", "2.8.0", false),
    ] {
        assert_eq!(version(found).is_named_by(&version(asked)), named, "{found} {asked}");
    }
}

#[test]
fn accelerator_in_a_version_is_no_label() {
    for local in [
        "cu128",
        "cpu",
        "rocm6.3",
        "xpu",
        "pt27cu126",
        "cu12torch2.8",
        "corp.cu128",
        "",
        "Corp",
        "corp-1",
        "1",
    ] {
        assert!(format!("2.8.0+{local}").parse::<FrameworkVersion>().is_err(), "{local}");
    }
    for label in ["corp1", "corp.1", "custom", "pt"] {
        assert!(format!("2.8.0+{label}").parse::<FrameworkVersion>().is_ok(), "{label}");
    }
    assert!("12.8+corp1".parse::<ToolkitVersion>().is_err());
}

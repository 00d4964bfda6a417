//! `compat refresh` against an index of the test, and the matrix against the real one.

use std::process::Command;

use serde_json::Value;

use crate::index::{Fault, Index};
use crate::program::{Program, Run};
use crate::wheels::WheelSpec;
use crate::{AMBIENT, envforge};

const TOKEN: &str = "planted-token-77b0";

fn against(index: &Index, args: &[&str]) -> Run {
    let program =
        Program::new(&AMBIENT).with("ENVFORGE_INDEX", format!("{}/simple", index.url_with("someone", TOKEN)));
    let run = program.run(&[&["compat", "refresh"], args].concat());
    assert!(!run.stdout.contains(TOKEN) && !run.stderr.contains(TOKEN), "{}{}", run.stdout, run.stderr);
    run
}

#[test]
fn refresh_reports_only_differences_and_new_releases() {
    let wheel = |version: &str, cudart: &str| {
        let spec = WheelSpec::new("onnxruntime-gpu", version)
            .requires(&format!("nvidia-cuda-runtime-cu12=={cudart}"));
        spec.tag("cp311-cp311-manylinux_2_27_x86_64").build()
    };
    let index = Index::local(vec![
        wheel("1.22.0", "12.9.79"),
        wheel("99.0.0", "14.0.1"),
        wheel("99.1.0rc1", "14.0.1"),
    ]);
    let run = against(&index, &["onnxruntime", "--json"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let value: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let findings = value["findings"].as_array().expect("a list");
    let new: Vec<_> = findings.iter().filter(|one| one["kind"] == "new").collect();
    assert_eq!(new.len(), 1, "{new:#?}");
    assert_eq!(
        (&new[0]["version"], &new[0]["pins"]["nvidia-cuda-runtime-cu12"]),
        (&"99.0.0".into(), &"14.0.1".into())
    );
    let of = |version: &str| {
        let row = format!("variant onnxruntime {version} ");
        findings
            .iter()
            .filter(|one| one["row"].as_str().is_some_and(|text| text.starts_with(&row)))
            .collect::<Vec<_>>()
    };
    assert!(
        of("1.22.0").iter().all(|one| one["field"] == "python"),
        "only other Pythons lack: {:#?}",
        of("1.22.0")
    );
    assert!(of("1.23.2").iter().any(|one| one["index_says"] == "no such release"), "{:#?}", of("1.23.2"));

    let one = against(&index, &["onnxruntime", "--release", "1.22.0", "--architectures", "--json"]);
    assert!(!one.stdout.contains("99.0.0") && !one.stdout.contains("1.23.2"), "{}", one.stdout);
    assert!(one.stderr.contains("cannot read the GPU architectures of"), "{}", one.stderr);
    let none = against(&index, &["onnxruntime", "--release", "98.0"]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("onnxruntime 98.0 is not in the default channel"), "{}", none.stderr);

    let text = against(&index, &["onnxruntime"]).stdout;
    assert!(text.contains("\n+ version = no such release    # the project's page"), "{text}");
    assert!(
        text.contains(
            "new: onnxruntime-gpu 99.0.0\n+ x86_64: cp311-cp311\n+ nvidia-cuda-runtime-cu12 = 14.0.1"
        ),
        "{text}"
    );
    assert!(text.trim_end().ends_with(" 1 new releases"), "{text}");
}

#[test]
fn write_appends_drafts_of_new_releases_only() {
    let wheel = |version: &str| {
        let spec = WheelSpec::new("cupy-cuda13x", version).requires("nvidia-cuda-runtime==13.0.96");
        spec.tag("cp311-cp311-manylinux2014_x86_64").build()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("cupy.toml");
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    std::fs::write(&file, "schema = 1\nchecked = \"2026-11-20\"\n").expect("written");
    let half = Index::local(vec![wheel("13.6.0"), wheel("99.0.0")]);
    let run = against(&half, &["cupy", "--write", &path]);
    assert!(run.stderr.contains("no rows are written from it"), "{}", run.stderr);
    let text = std::fs::read_to_string(&file).expect("read");
    assert!(!text.contains("99.0.0"), "half an answer is no source: {text}");
    let all = ["13.6.0", "14.0.0", "14.0.1", "14.1.0", "14.1.1", "14.2.0", "99.0.0"];
    let index = Index::local(all.iter().map(|version| wheel(version)).collect());
    let run = against(&index, &["cupy", "--write", &path]);
    assert!(run.stderr.contains("drafts for review in"), "{}{}", run.stdout, run.stderr);
    let text = std::fs::read_to_string(&file).expect("read");
    assert!(text.contains("# version = \"99.0.0\"") && text.contains("# python = [\"3.11\"]"), "{text}");
    assert!(text.contains("to be filled in: released, status"), "{text}");
    assert!(!text.contains("14.2.0"), "known releases have rows: {text}");

    let again = against(&index, &["cupy", "--write", &path]);
    assert!(again.stderr.contains("already drafted in"), "{}", again.stderr);
    assert!(again.stderr.contains("cupy-cuda13x 99.0.0 for x86_64"), "{}", again.stderr);
    assert!(!again.stderr.contains("drafts for review"), "{}", again.stderr);
    assert_eq!(std::fs::read_to_string(&file).expect("read"), text, "nothing is written twice");
}

/// The page's first wheel of a release may be for a Python that no row has: the pins are read from one that fits.
#[test]
fn incompatible_wheel_does_not_hide_pins_of_another() {
    let wheel = |python: &str, cudnn: &str| {
        let spec =
            WheelSpec::new("onnxruntime-gpu", "1.22.0").requires(&format!("nvidia-cudnn-cu12=={cudnn}"));
        spec.tag(&format!("{python}-{python}-manylinux_2_27_x86_64")).build()
    };
    let index = Index::local(vec![wheel("cp36", "8.0.0.1"), wheel("cp311", "9.0.0.1")]);
    let run = against(&index, &["onnxruntime", "--release", "1.22.0", "--json"]);
    let value: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let says = |field: &str| {
        let findings = value["findings"].as_array().expect("a list").iter();
        findings.filter(|one| one["field"] == field).map(|one| one["index_says"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(says("cudnn"), ["9.0.0.1"], "{}", run.stdout);
}

#[test]
fn failing_index_is_an_error_and_not_a_difference() {
    let index = Index::local(Vec::new());
    index.serve("/simple/onnxruntime-gpu/", b"\x00\xff<html>no links".to_vec());
    let broken = against(&index, &["onnxruntime"]);
    assert_eq!(broken.code, 3, "{}", broken.stderr);
    assert!(broken.stderr.contains("lists no wheel") && broken.stdout.is_empty(), "{}", broken.stderr);
    for (fault, words) in [(Fault::Status(500), "cannot reach"), (Fault::Status(403), "denied")] {
        index.fail("/simple/onnxruntime-gpu/", fault);
        let run = against(&index, &["onnxruntime"]);
        assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{}", run.stderr);
        assert!(run.stderr.contains(words) && !run.stderr.contains(&index.url()), "{}", run.stderr);
        index.heal();
    }
    let none = envforge(&["compat", "refresh"]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("ENVFORGE_INDEX"), "{}", none.stderr);
    let other = envforge(&["compat", "refresh", "caffe"]);
    assert_eq!(other.code, 2);
    assert!(other.stderr.contains("`caffe`") && other.stderr.contains("pytorch"), "{}", other.stderr);
}

/// The address of the index that this machine's pip asks by default.
fn pips_default() -> Option<String> {
    let set = std::env::var("ENVFORGE_INDEX").or_else(|_| std::env::var("PIP_INDEX_URL"));
    set.ok().or_else(|| {
        let code = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)";
        let said =
            Command::new("python3").args(["-c", code]).output().ok().filter(|said| said.status.success())?;
        Some(String::from_utf8(said.stdout).ok()?.trim().to_owned())
    })
}

/// Every row of the default channel. Newer releases are no fault of the matrix.
#[test]
#[ignore = "needs the live package index: cargo test --test cli -- --ignored live_index"]
fn matrix_agrees_with_the_live_index() {
    let index = pips_default().expect("an index that pip asks: set ENVFORGE_INDEX");
    let bundle =
        std::env::var("SSL_CERT_FILE").unwrap_or_else(|_| "/etc/ssl/certs/ca-certificates.crt".to_owned());
    let mut program = Program::new(&AMBIENT).with("ENVFORGE_INDEX", index).with("ENVFORGE_CA_BUNDLE", bundle);
    for name in ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"] {
        if let Ok(value) = std::env::var(name) {
            program.set(name, value);
        }
    }
    let run = program.run(&["compat", "refresh", "--json"]);
    assert_ne!(run.code, 3, "the index is out of reach: {}", run.stderr);
    let value: Value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}{}", run.stdout, run.stderr));
    let differ: Vec<_> =
        value["findings"].as_array().expect("a list").iter().filter(|one| one["kind"] != "new").collect();
    assert!(value["rows"].as_u64() > Some(300), "{}", value["rows"]);
    assert!(differ.is_empty(), "{differ:#?}");
}

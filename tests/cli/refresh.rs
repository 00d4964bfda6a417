//! `maintain refresh` against an index of the test, and the matrix against the real one.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::index::{Fault, Index};
use crate::program::{Program, Run};
use crate::wheels::WheelSpec;
use crate::{AMBIENT, maintain, program};

const TOKEN: &str = "planted-token-77b0";

fn against(index: &Index, args: &[&str]) -> Run {
    let program =
        Program::new(&AMBIENT).with("ENVFORGE_INDEX", format!("{}/simple", index.url_with("someone", TOKEN)));
    let run = maintain(&program, &[&["refresh"], args].concat());
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
    let fields = ["edition", "findings", "rows", "schema"].map(str::to_owned).into();
    assert_eq!(value.as_object().expect("an object").keys().cloned().collect::<BTreeSet<_>>(), fields);
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
    assert!(text.trim_end().ends_with(" 1 new release"), "{text}");
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

#[test]
fn index_that_goes_down_in_between_leaves_no_drafts() {
    let wheel = |package: &str, version: &str| {
        WheelSpec::new(package, version).tag("cp311-cp311-manylinux2014_x86_64").build()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("cupy.toml");
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    let before = "schema = 1\nchecked = \"2026-11-20\"\n";
    std::fs::write(&file, before).expect("written");
    let index = Index::local(vec![wheel("cupy-cuda117", "10.6.0"), wheel("cupy-cuda117", "99.0.0")]);
    // A package that is asked about later.
    index.fail("/simple/cupy-cuda13x/", Fault::Status(500));
    let run = against(&index, &["cupy", "--write", &path]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert_eq!(std::fs::read_to_string(&file).expect("read"), before);
    index.heal();
    let run = against(&index, &["cupy", "--write", &path]);
    assert!(run.stderr.contains("1 drafts for review in"), "{}{}", run.stdout, run.stderr);
    assert!(std::fs::read_to_string(&file).expect("read").contains("99.0.0"));
}

/// The page of an index in its JSON form, with that upload day for each file.
fn uploads(files: &[(&str, &str)]) -> Vec<u8> {
    let file = |(name, day): &(&str, &str)| serde_json::json!({ "filename": name, "url": name, "hashes": {}, "upload-time": format!("{day}T10:00:00Z") });
    let files: Vec<_> = files.iter().map(file).collect();
    serde_json::json!({ "meta": { "api-version": "1.1" }, "name": "x", "files": files })
        .to_string()
        .into_bytes()
}

#[test]
fn draft_has_the_day_of_the_first_upload() {
    let wheel = |version: &str, python: &str| {
        let spec = WheelSpec::new("cupy-cuda13x", version).requires("nvidia-cuda-runtime==13.0.96");
        spec.tag(&format!("{python}-{python}-manylinux2014_x86_64")).build()
    };
    let known = ["13.6.0", "14.0.0", "14.0.1", "14.1.0", "14.1.1", "14.2.0"];
    let mut wheels: Vec<_> = known.iter().map(|version| wheel(version, "cp311")).collect();
    wheels.extend([wheel("99.0.0", "cp311"), wheel("99.0.0", "cp312")]);
    let files: Vec<_> = wheels.iter().map(|wheel| wheel.file.clone()).collect();
    let [.., first, second] = files.as_slice() else { panic!("{files:?}") };
    let index = Index::local(wheels.clone());
    index.serve(
        "/simple/cupy-cuda13x/#json",
        uploads(&[(first, "2026-11-24"), (second, "2026-11-23"), ("other.whl", "2026-01-01")]),
    );
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    std::fs::write(folder.path().join("cupy.toml"), "schema = 1\n").expect("ours");
    against(&index, &["cupy", "--write", &path]);
    let text = std::fs::read_to_string(folder.path().join("cupy.toml")).expect("read");
    assert!(text.contains("# released = \"2026-11-23\""), "{text}");
    assert!(text.contains("to be filled in: status.") || text.contains("to be filled in: status,"), "{text}");
}

#[test]
fn new_release_of_a_companion_is_drafted_with_its_requirement() {
    let wheel = |version: &str, torch: &str| {
        let spec = WheelSpec::new("sglang-kernel", version).requires(torch);
        spec.tag("cp310-abi3-manylinux2014_x86_64").build()
    };
    let known = [
        "0.4.0",
        "0.4.1",
        "0.4.1.post1",
        "0.4.2",
        "0.4.2.post1",
        "0.4.2.post2",
        "0.4.3",
        "0.4.4",
        "0.4.5",
        "0.4.6",
        "0.4.6.post1",
        "0.4.7",
        "0.4.8",
        "0.4.9",
        "0.4.10",
    ];
    let mut wheels: Vec<_> = known.iter().map(|version| wheel(version, "torch==2.13.0")).collect();
    wheels.push(wheel("0.4.99", "torch==2.16.0"));
    let file = wheels.last().expect("the newest").file.clone();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    let text = || std::fs::read_to_string(folder.path().join("companions.toml")).expect("read");
    for name in ["companions.toml", "pytorch.toml"] {
        std::fs::write(folder.path().join(name), "schema = 1\n").expect("ours");
    }
    // An index that lacks known releases gave half an answer.
    let half = Index::local(wheels[1..].to_vec());
    let run = against(&half, &["pytorch", "--write", &path]);
    assert!(run.stderr.contains("lacks 1 known releases of `sglang-kernel`"), "{}", run.stderr);
    assert_eq!(text(), "schema = 1\n");

    let index = Index::local(wheels);
    index.serve("/simple/sglang-kernel/#json", uploads(&[(&file, "2026-11-24")]));
    against(&index, &["pytorch", "--write", &path]);
    let drafted = text();
    for line in [
        "[[coupled_release]]",
        "package = \"sglang-kernel\"",
        "versions = [\"0.4.99\"]",
        "released = \"2026-11-24\"",
        "torch = \"==2.16.0\"",
        "abi = \"pinned\"",
        "python_from = \"3.10\"",
        "machine = \"x86_64\"",
    ] {
        assert!(drafted.lines().any(|one| one == line), "{line} is not in {drafted}");
    }
    assert!(!drafted.contains("loads") && !drafted.contains("0.4.10\""), "{drafted}");
    against(&index, &["pytorch", "--write", &path]);
    assert_eq!(text(), drafted, "nothing is written twice");
}

/// A wheel whose name lies: METADATA of the same file says another release.
#[test]
fn wheel_whose_name_contradicts_its_metadata_is_reported() {
    let wheel = WheelSpec::new("onnxruntime-gpu", "99.0.0").tag("cp311-cp311-manylinux_2_27_x86_64").build();
    let file = wheel.file.clone();
    let index = Index::local(vec![wheel]);
    let honest = against(&index, &["onnxruntime", "--json"]);
    assert!(!honest.stdout.contains("METADATA of the same wheel"), "{}", honest.stdout);
    let lie = b"Metadata-Version: 2.1\nName: onnxruntime-gpu\nVersion: 98.7.0\n\n".to_vec();
    index.serve(&format!("/files/{file}.metadata"), lie);
    let run = against(&index, &["onnxruntime", "--json"]);
    let value: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let findings = value["findings"].as_array().expect("a list").iter();
    let found: Vec<_> = findings.filter(|one| one["from"] == "METADATA of the same wheel").collect();
    assert_eq!(found.len(), 1, "{found:#?}");
    let says =
        ["row", "field", "row_says", "index_says"].map(|name| found[0][name].as_str().unwrap_or_default());
    assert_eq!(says, [file.as_str(), "version", "99.0.0", "98.7.0"]);
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
    // An answer that ends in the middle is none, however many links its first half has.
    let half = Index::local(
        (0..40).map(|n| WheelSpec::new("onnxruntime-gpu", &format!("1.{n}.0")).build()).collect(),
    );
    half.fail("/simple/onnxruntime-gpu/", Fault::CutAlways);
    let cut = against(&half, &["onnxruntime"]);
    assert_eq!((cut.code, cut.stdout.as_str()), (3, ""), "{}", cut.stderr);
    for (fault, words) in [(Fault::Status(500), "cannot reach"), (Fault::Status(403), "denied")] {
        index.fail("/simple/onnxruntime-gpu/", fault);
        let run = against(&index, &["onnxruntime"]);
        assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{}", run.stderr);
        assert!(run.stderr.contains(words) && !run.stderr.contains(&index.url()), "{}", run.stderr);
        index.heal();
    }
    let none = maintain(&program(), &["refresh"]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("ENVFORGE_INDEX"), "{}", none.stderr);
    let other = maintain(&program(), &["refresh", "caffe"]);
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

/// Every row of the default channel has the values of the index, and every release of the index has a row or a reason. Newer releases
/// are no fault of the matrix.
#[test]
#[ignore = "nightly: needs the live package index"]
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
    let run = maintain(&program, &["refresh", "--json"]);
    assert_ne!(run.code, 3, "the index is out of reach: {}", run.stderr);
    let value: Value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}{}", run.stdout, run.stderr));
    let all = value["findings"].as_array().expect("a list");
    let differ: Vec<_> = all
        .iter()
        .filter(|one| !["new", "unlisted"].contains(&one["kind"].as_str().expect("a kind")))
        .collect();
    // Wheels for aarch64 of cuDF, cuML, SGLang and vLLM whose code was not read yet: this number may only shrink.
    let unread = all.iter().filter(|one| one["kind"] == "unlisted").count();
    assert!(unread <= 64, "{unread} releases have wheels for a processor without a row");
    assert!(value["rows"].as_u64() > Some(300), "{}", value["rows"]);
    assert!(differ.is_empty(), "{differ:#?}");
    assert!(!run.stderr.contains("pins are not compared"), "{}", run.stderr);
}

/// Releases without a row are found as wheels and as sources, also those of packages that carry no row at all.
#[test]
fn release_without_row_or_reason_is_missing() {
    let wheel = |package: &str, version: &str| {
        WheelSpec::new(package, version).tag("cp311-cp311-manylinux2014_x86_64").build()
    };
    let index = Index::local(vec![
        wheel("cupy-cuda13x", "13.6.0"),
        wheel("cupy-cuda13x", "13.7.5"),
        wheel("cupy-cuda115", "10.5.0"),
        wheel("cupy-cuda115", "10.6.7"),
    ]);
    index.serve(
        "/simple/cupy/",
        b"<a href='cupy-10.4.0.tar.gz'>a</a><a href='cupy-12.9.9.tar.gz'>b</a>".to_vec(),
    );
    let run = against(&index, &["cupy", "--json"]);
    let value: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
    let findings = value["findings"].as_array().expect("a list").iter();
    let missing: Vec<_> = findings
        .filter(|one| one["kind"] == "missing")
        .map(|one| format!("{} {}", one["package"], one["version"]).replace('"', ""))
        .collect();
    assert_eq!(missing, ["cupy-cuda13x 13.7.5", "cupy 12.9.9", "cupy-cuda115 10.6.7"]);
    index.serve("/simple/cupy/", b"<html>nothing".to_vec());
    let run = against(&index, &["cupy"]);
    assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{}", run.stderr);
    assert!(run.stderr.contains("lists no wheel"), "{}", run.stderr);
}

/// The daily job passes on what the commands say: something to review is no failure, a failing index ends it.
#[test]
fn daily_job_lints_what_was_drafted_and_keeps_the_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
        std::fs::write(&path, text).expect("ours");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    };
    let job = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/.ci/refresh")).expect("the job");
    script("of/.ci/refresh", &job);
    script("bin/git", "#!/bin/sh\necho \"git $*\"\n");
    // The program's own answers: `refresh` ends with 1 where it found something, with 3 where the index failed.
    script(
        "bin/cargo",
        "#!/bin/sh\necho \"cargo $*\"\ncase \"$*\" in *'maintain -- refresh'*) exit \"$ANSWER\" ;; esac\n",
    );
    let path = format!("{}:/usr/bin:/bin", folder.path().join("bin").display());
    for (answer, code, lines) in [("0", 0, 3), ("1", 1, 3), ("3", 3, 1)] {
        let mut command = Command::new(folder.path().join("of/.ci/refresh"));
        let run = Run::of(&command.env("PATH", &path).env("ANSWER", answer).output().expect("a shell"));
        assert_eq!((run.code, run.stdout.lines().count()), (code, lines), "{}{}", run.stdout, run.stderr);
        assert!(
            run.stdout.starts_with(
                "cargo run --release --quiet --features maintain --bin maintain -- refresh --write compat\n"
            ),
            "{}",
            run.stdout
        );
        assert_eq!(
            run.stdout.contains("-- compat lint compat\ngit --no-pager diff"),
            lines == 3,
            "{}",
            run.stdout
        );
    }
}

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
    assert!(text.contains("to be filled in: released.\n"), "{text}");
    for line in [
        "# cuda = \"cu13\"",
        "# toolkit = \"13.0.3\"",
        "# status = \"stable\"",
        "# package = \"cupy-cuda13x\"",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is not in {text}");
    }
    assert!(
        run.stdout.contains(
            "| cupy-cuda13x 99.0.0 cu13 for x86_64 | cupy.toml | a comment: nothing says released |"
        ),
        "{}",
        run.stdout
    );
    assert!(!text.contains("version = \"14.2.0\""), "known releases have rows: {text}");

    let again = against(&index, &["cupy", "--write", &path]);
    assert!(again.stderr.contains("already drafted in"), "{}", again.stderr);
    assert!(again.stderr.contains("cupy-cuda13x 99.0.0 cu13 for x86_64"), "{}", again.stderr);
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
    // Nothing lacks: it is a row.
    let table: toml::Table = text.parse().unwrap_or_else(|why| panic!("{why}: {text}"));
    let row = &table["variant"][0];
    let says = ["version", "released", "install"].map(|field| row[field].to_string());
    assert_eq!(&says[..2], ["\"99.0.0\"", "\"2026-11-23\""]);
    assert!(says[2].contains("\"cupy-cuda13x==99.0.0\""), "our choice beside it stands: {}", says[2]);
    assert_eq!(row["python"].to_string(), "[\"3.11\", \"3.12\"]");
    assert!(!text.contains("to be filled in"), "{text}");
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

/// A program that asks this machine's index.
fn live() -> Program {
    let index = pips_default().expect("an index that pip asks: set ENVFORGE_INDEX");
    let bundle =
        std::env::var("SSL_CERT_FILE").unwrap_or_else(|_| "/etc/ssl/certs/ca-certificates.crt".to_owned());
    let mut program = Program::new(&AMBIENT).with("ENVFORGE_INDEX", index).with("ENVFORGE_CA_BUNDLE", bundle);
    for name in ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"] {
        if let Ok(value) = std::env::var(name) {
            program.set(name, value);
        }
    }
    program
}

/// Every row of the default channel has the values of the index, and every release of the index has a row or a reason. Newer releases
/// are no fault of the matrix.
#[test]
#[ignore = "nightly: needs the live package index"]
fn matrix_agrees_with_the_live_index() {
    let run = maintain(&live(), &["refresh", "--json"]);
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

/// The rows of a file of `compat/`, each with its text; the head is first and has none.
fn rows_of(text: &str) -> Vec<(String, Option<(String, toml::Table)>)> {
    let mut parts = text.split("\n[[");
    let head = parts.next().unwrap_or_default().to_owned();
    let row = |part: &str| {
        let whole = format!("\n[[{part}");
        let table: toml::Table = whole.parse().unwrap_or_else(|why| panic!("{why}: {whole}"));
        let (name, rows) = table.into_iter().next().expect("a table");
        let row = rows.as_array().and_then(|rows| rows[0].as_table()).expect("a row").clone();
        (whole, Some((name, row)))
    };
    std::iter::once((head, None)).chain(parts.map(row)).collect()
}

/// The day of a row that a refresh would find as a new release.
fn day_of((name, row): &(String, toml::Table)) -> Option<&str> {
    let field = match name.as_str() {
        "variant" => "channel",
        "coupled_release" => "place",
        _ => return None,
    };
    row.get("released").filter(|_| row.get(field).and_then(toml::Value::as_str) == Some("default"))?.as_str()
}

/// The fields in which a row that was written differs from the one that was there.
fn differing(was: &toml::Table, is: &toml::Table) -> Vec<String> {
    // Words of people, and what a row may know beyond the one that was there: it was read.
    let words = ["notes", "source", "evidence", "versions", "released"];
    let more = ["python", "python_from", "machine", "ptx_cuda"];
    let unread = was.contains_key("unknown_ptx") && is.contains_key("ptx");
    let says =
        |table: &toml::Table, field: &str| table.get(field).map_or("nothing".to_owned(), ToString::to_string);
    let fields: BTreeSet<_> = was.keys().chain(is.keys()).map(String::as_str).collect();
    let differs = |field: &&str| {
        let is_read = unread && ["ptx", "unknown_ptx"].contains(field);
        let is_more = more.contains(field) && !was.contains_key(*field);
        !words.contains(field) && !is_read && !is_more && was.get(*field) != is.get(*field)
    };
    let all = fields.into_iter().filter(differs);
    all.map(|field| format!("{field}: {} was {}", says(is, field), says(was, field))).collect()
}

/// The newest rows, taken out of a copy of `compat/`, come back by `refresh --write`: as rows, with the same fields.
#[test]
#[ignore = "nightly: needs the live package index"]
#[expect(clippy::print_stdout, reason = "the figures of the run")]
fn aged_rows_come_back_from_the_live_index() {
    const AGED: usize = 46;
    const LEAST: usize = 40;
    let compat = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/compat"));
    let files = std::fs::read_dir(compat).expect("rows").map(|entry| entry.expect("a file").path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    let files: Vec<_> = files
        .iter()
        .map(|path| {
            (path.file_name().expect("a name"), rows_of(&std::fs::read_to_string(path).expect("text")))
        })
        .collect();
    let days = files.iter().flat_map(|(_, rows)| rows.iter().filter_map(|(_, row)| day_of(row.as_ref()?)));
    let mut days: Vec<_> = days.collect();
    days.sort_unstable();
    let first = days[days.len() - AGED].to_owned();
    let folder = tempfile::tempdir().expect("a folder");
    let mut aged = Vec::new();
    for (name, rows) in &files {
        let (taken, kept): (Vec<_>, Vec<_>) = rows
            .iter()
            .partition(|(_, row)| row.as_ref().and_then(day_of).is_some_and(|day| day >= first.as_str()));
        let text: String = kept.iter().map(|(text, _)| text.as_str()).collect();
        std::fs::write(folder.path().join(name), text).expect("ours");
        aged.extend(taken.into_iter().filter_map(|(_, row)| row.clone()));
    }
    let path = folder.path().to_str().expect("UTF-8");
    let program = live();
    let lint = || program.run(&["compat", "lint", path]);
    let before = lint();
    let start = std::time::Instant::now();
    let run = maintain(&program, &["refresh", "--rows", path, "--write", path]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    println!("{}\n{} s for {} rows since {first}", run.stdout, start.elapsed().as_secs(), aged.len());
    let read =
        |name: &&std::ffi::OsStr| rows_of(&std::fs::read_to_string(folder.path().join(name)).expect("text"));
    let now: Vec<_> = files.iter().flat_map(|(name, _)| read(name)).filter_map(|(_, row)| row).collect();
    let mut back = 0;
    for (table, was) in &aged {
        let keys: &[&str] = match table.as_str() {
            "variant" => &["framework", "version", "cuda", "machine", "package"],
            _ => &["package", "place"],
        };
        let versions = |row: &toml::Table| {
            row.get("versions").and_then(toml::Value::as_array).cloned().unwrap_or_default()
        };
        let is_it = |row: &toml::Table| {
            let common =
                versions(was).is_empty() || versions(row).iter().any(|one| versions(was).contains(one));
            common && keys.iter().all(|key| row.get(*key) == was.get(*key))
        };
        let found: Vec<_> = now.iter().filter(|(name, row)| name == table && is_it(row)).collect();
        let wanted = versions(was).len().max(1);
        let mut differs: Vec<_> = found.iter().flat_map(|(_, is)| differing(was, is)).collect();
        if found.len() != wanted {
            differs.push(format!("{} of {wanted} rows", found.len()));
        }
        back += usize::from(differs.is_empty());
        if !differs.is_empty() {
            let label: Vec<_> = keys.iter().filter_map(|key| Some(was.get(*key)?.to_string())).collect();
            println!("{}: {}", label.join(" "), differs.join("; "));
        }
    }
    println!("{back} of {} rows came back", aged.len());
    assert!(back * AGED >= LEAST * aged.len(), "{back} of {}", aged.len());
    // What it wrote is no fault that was not there.
    let faults =
        |run: &Run| run.stdout.lines().chain(run.stderr.lines()).map(str::to_owned).collect::<BTreeSet<_>>();
    let new: Vec<_> = faults(&lint()).difference(&faults(&before)).cloned().collect();
    let own: Vec<_> =
        new.iter().filter(|line| line.contains("variant ") || line.contains("coupled_release ")).collect();
    assert!(own.is_empty(), "{own:#?}");
}

/// Random questions to the matrix, which uv answers too. The last run's numbers go to the page of the matrix.
#[test]
#[ignore = "nightly: needs the live package index"]
#[expect(clippy::print_stdout, reason = "the figures of the run")]
fn random_draws_agree_with_the_live_index() {
    let root = env!("CARGO_MANIFEST_DIR");
    let mut command = Command::new("python3");
    command.current_dir(root).args(["tests/live/draws.py", "--record", "docs/live-check.json", "--program"]);
    let run = Run::of(&command.arg(env!("CARGO_BIN_EXE_envforge")).output().expect("python3"));
    println!("{}", run.stdout);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
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

/// The daily job passes on what the commands say: something to review is a commit and no failure, a failing index ends it.
#[test]
fn daily_job_commits_what_was_written_and_keeps_the_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
        std::fs::write(&path, text).expect("ours");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    };
    let job = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/.ci/refresh")).expect("the job");
    script("of/.ci/refresh", &job);
    script(
        "bin/git",
        "#!/bin/sh\ncase \"$*\" in\n'status --porcelain') echo \"$OTHERS\" ;;\n\
         'status --porcelain -- compat') [ \"$ANSWER\" = 0 ] || echo ' M compat/jax.toml' ;;\n*) echo \"git $*\" ;;\nesac\n",
    );
    // The program's own answers: `refresh` ends with 1 where it found something, with 3 where the index failed.
    script(
        "bin/cargo",
        "#!/bin/sh\necho \"cargo $*\"\ncase \"$*\" in *'maintain -- refresh'*) exit \"$ANSWER\" ;; \
         *'compat lint'*) exit \"$LINT\" ;; 'test '*) echo 'test a::b ... FAILED'; exit 101 ;; esac\n",
    );
    let path = format!("{}:/usr/bin:/bin", folder.path().join("bin").display());
    let run = |answer: &str, lint: &str, others: &str| {
        let mut command = Command::new(folder.path().join("of/.ci/refresh"));
        command.env("PATH", &path).env("ANSWER", answer).env("LINT", lint).env("OTHERS", others);
        Run::of(&command.output().expect("a shell"))
    };
    let refresh =
        "cargo run --release --quiet --features maintain --bin maintain -- refresh --write compat\n";
    for (answer, lint, code, lines) in
        [("0", "0", 0, 2), ("1", "0", 1, 7), ("1", "1", 3, 3), ("3", "0", 3, 1)]
    {
        let run = run(answer, lint, "");
        assert_eq!((run.code, run.stdout.lines().count()), (code, lines), "{}{}", run.stdout, run.stderr);
        assert!(run.stdout.starts_with(refresh), "{}", run.stdout);
        let is_whole = lines == 7;
        assert_eq!(run.stdout.contains("-- docs docs/src/reference\n"), is_whole, "{}", run.stdout);
        assert_eq!(run.stdout.contains("git commit --quiet"), is_whole, "{}", run.stdout);
    }
    let message =
        std::fs::read_to_string(folder.path().join("of/target/ci/refresh-message.txt")).expect("a message");
    assert!(message.starts_with("Rows of new releases, 2"), "{message}");
    assert!(
        message.contains(refresh) && message.contains("\ntest that fails with them: a::b\n"),
        "{message}"
    );
    // A commit of somebody else's changes would be a lie.
    let other = run("1", "0", " M src/lib.rs");
    assert_eq!((other.code, other.stdout.as_str()), (2, ""), "{}", other.stderr);
}

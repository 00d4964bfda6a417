//! `compat`, and the documents made of the matrix.

use serde_json::Value;

use crate::matrix::matrix_archive;
use crate::program::{Program, Run};
use crate::{AMBIENT, assert_message, envforge, maintain, program};

#[test]
fn built_in_matrix_and_its_files_have_no_faults() {
    let run = envforge(&["compat", "lint"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    assert!(run.stdout.ends_with(" 0 faults\n"), "{}", run.stdout);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/compat");
    let files = envforge(&["compat", "lint", folder, "--json"]);
    let value: Value = serde_json::from_str(&files.stdout).expect("JSON");
    assert_eq!(value["faults"], serde_json::json!([]));
    assert!(run.stdout.contains(value["edition"].as_str().expect("a text")), "{}", run.stdout);
}

#[test]
fn lint_reports_faults_by_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "schema = 1\nchecked = \"2026-11-20\"\n[[toolkit]]\ncuda = \"12.8.1\"\nbranch = 570\n\
                min_driver = \"525.60.13\"\nsource = \"\"\n";
    std::fs::write(folder.path().join("driver.toml"), text).expect("written");
    let run = envforge(&["compat", "lint", folder.path().to_str().expect("UTF-8")]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("driver.toml: toolkit 12.8.1: missing source"), "{}", run.stdout);
    std::fs::write(folder.path().join("driver.toml"), "schema = ").expect("written");
    let run = envforge(&["compat", "lint", folder.path().to_str().expect("UTF-8")]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("`driver.toml` line 1"), "{}", run.stderr);
}

/// Lints the committed files with one text of one file replaced.
fn lint_with(file: &str, text: &str, other: &str) -> Run {
    let folder = tempfile::tempdir().expect("a folder");
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/compat")).expect("the files") {
        let path = entry.expect("a file").path();
        if path.is_file() {
            std::fs::copy(&path, folder.path().join(path.file_name().expect("a name"))).expect("ours");
        }
    }
    let path = folder.path().join(file);
    let before = std::fs::read_to_string(&path).expect("a file");
    assert!(before.contains(text), "`{text}` is not in {file}");
    std::fs::write(&path, before.replacen(text, other, 1)).expect("ours");
    envforge(&["compat", "lint", folder.path().to_str().expect("UTF-8")])
}

/// Every fault of a row has its file and the row, in lint and so in the build.
#[test]
fn lint_reports_malformed_contradicting_and_circular_rows_with_file_and_row() {
    let mamba = "package = \"mamba-ssm\"\nversions = [\"2.2.3.post2\", \"2.2.4\", \"2.2.6.post2\"]";
    let torch = "companions = { torchvision = \"0.26.0\", torchaudio = \"2.11.0\" }";
    for (file, text, other, code, words) in [
        ("jit.toml", "[[jit]]", "[[jit]]\nfastest = true", 2, "`jit.toml` line"),
        ("vllm.toml", "toolkit = \"13.0.3\"", "toolkit = \"13\"", 2, "`vllm.toml` line"),
        (
            "vllm.toml",
            "last = \"0.1.3\"",
            "last = \"0.3.3\"",
            1,
            "vllm.toml: known_version vllm 0.0.1 to 0.3.3: contradiction: no row here, a row in vllm.toml: variant vllm",
        ),
        (
            "vllm.toml",
            "last = \"0.1.3\"",
            "last = \"0.1.4\"",
            1,
            "vllm.toml: known_version vllm 0.1.4: contradiction: a reason for 0.1.4 here, another one in vllm.toml: \
             known_version vllm 0.0.1 to 0.1.4",
        ),
        (
            "pytorch.toml",
            torch,
            "companions = { torchvision = \"0.26.0\", torchaudio = \"2.11.0\", vllm = \"0.20.0\" }",
            1,
            "vllm.toml: variant vllm 0.20.0 cu130 x86_64: its companions require each other in a circle",
        ),
        (
            "companions.toml",
            mamba,
            "package = \"mamba-ssm\"\ntorch = \"==2.9.0\"\nversions = [\"2.2.3.post2\", \"2.2.4\", \"2.2.6.post2\"]",
            1,
            "companions.toml: coupled_release mamba-ssm 2.2.3.post2 page: contradiction: built for torch",
        ),
    ] {
        let run = lint_with(file, text, other);
        let said = format!("{}{}", run.stdout, run.stderr);
        assert_eq!(run.code, code, "{said}");
        assert!(said.contains(words), "`{words}` is not in: {said}");
    }
}

#[test]
fn show_prints_a_row_with_its_source() {
    let run = envforge(&["compat", "show", "variant jax 0.8.0 cu12 x86_64"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("jax.toml: variant jax 0.8.0 cu12 x86_64\n"), "{}", run.stdout);
    assert!(
        run.stdout.contains("toolkit = \"12.9.1\"") && run.stdout.contains("source = "),
        "{}",
        run.stdout
    );
    assert_eq!(envforge(&["compat", "show", "variant caffe"]).code, 1);
}

/// Rows that are being written can be tried before they are complete.
#[test]
fn folder_that_the_lint_refuses_is_planned_with_its_faults() {
    let program = program();
    std::fs::create_dir(program.path("rows")).expect("ours");
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/compat")).expect("the matrix") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            std::fs::copy(&path, program.path("rows").join(path.file_name().expect("a name"))).expect("ours");
        }
    }
    let file = program.path("rows/pytorch.toml");
    let rows = std::fs::read_to_string(&file).expect("rows");
    let version = "version = \"2.8.0\"\n";
    assert!(rows.contains(version), "the row is spelled otherwise");
    std::fs::write(&file, rows.replace(version, "version = \"2.8.99\"\n")).expect("ours");
    assert_eq!(program.run(&["compat", "lint", "rows"]).code, 1, "the lint refuses it");
    let run = maintain(&program, &["plan", "rows", "pytorch-cuda:2.8.99-cu128", "--target", "any"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("pytorch-cuda:2.8.99-cu128-py3"), "{}", run.stdout);
    assert!(run.stderr.contains("warning: "), "{}", run.stderr);
    let run = maintain(&program, &["plan", "rows", "pytorch-cuda:2.8.0-cu128", "--target", "any"]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
}

#[test]
fn committed_support_table_matches_the_matrix() {
    let run = maintain(&program(), &["support"]);
    let kept = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/src/reference/matrix.md"));
    let kept = kept.expect("the page of the matrix");
    assert!(
        run.stdout == kept,
        "matrix.md is old: `cargo run --features maintain --bin maintain -- docs docs/src/reference`"
    );
    assert!(maintain(&program(), &["rules"]).stdout.contains("## gpu-not-in-binary"));
}

#[test]
fn matrix_archive_requires_its_hash_and_no_faults() {
    let program = Program::new(&AMBIENT);
    let path = |name: &str| program.path(name).to_string_lossy().into_owned();
    let in_force = || {
        let run = program.run(&["plan", "pytorch-cuda:2.8-cu128", "--json"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let lint: Value =
            serde_json::from_str(&program.run(&["compat", "lint", "--json"]).stdout).expect("JSON");
        (lint["edition"].as_str().expect("a text").to_owned(), run.stderr)
    };
    let (own, _) = in_force();
    let pytorch =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/compat/pytorch.toml")).expect("a file");
    let good =
        matrix_archive(&program, "good.tar.gz", &[("pytorch.toml", &format!("{pytorch}\n# read again\n"))]);

    let other = program.run(&["compat", "use", &path("good.tar.gz"), "--sha256", &"0".repeat(64)]);
    assert_eq!(other.code, 2);
    assert!(other.stderr.contains(&good), "{}", other.stderr);
    let faulty = "schema = 1\nchecked = \"2026-11-20\"\n[[variant]]\n";
    let newer = pytorch.replacen("schema = 1", "schema = 2", 1);
    for (name, text, words) in [("faulty.tar", faulty, "pytorch.toml"), ("newer.tar", &newer, "schema 2")] {
        let hash = matrix_archive(&program, name, &[("pytorch.toml", text)]);
        let run = program.run(&["compat", "use", &path(name), "--sha256", &hash]);
        assert_eq!(run.code, 2, "{name}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{name}: {}", run.stderr);
    }
    assert_eq!(in_force(), (own.clone(), String::new()), "nothing of that is in force");

    let used = program.run(&["compat", "use", &path("good.tar.gz"), "--sha256", &good]);
    assert_eq!(used.code, 0, "{}", used.stderr);
    let (chosen, said) = in_force();
    assert_ne!(chosen, own);
    assert!(used.stdout.contains(&chosen) && said.is_empty(), "{}{said}", used.stdout);

    // What another release kept is told, and not used.
    std::fs::write(program.path("state/edition"), "\x02x y").expect("a file of ours");
    let (found, said) = in_force();
    assert_eq!(found, own);
    assert!(said.contains("installed by another envforge version") && said.contains("--builtin"), "{said}");
    assert_eq!(program.run(&["compat", "use", "--builtin"]).code, 0);
    assert_eq!(in_force(), (own, String::new()));
}

/// The row of torch 2.8.0+cu128 in another version, as a file of a team's own.
fn local_file(program: &Program, name: &str, version: &str) -> String {
    let shown = program.run(&["compat", "show", "variant pytorch 2.8.0 cu128 x86_64", "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let fields = shown["rows"][0]["fields"].as_str().expect("a text");
    let fields = fields.replacen("version = \"2.8.0\"", &format!("version = \"{version}\""), 1);
    let fields = fields.replace("[companions]", "[variant.companions]");
    let text = format!("schema = 1\nchecked = \"2026-11-20\"\n[[variant]]\n{fields}");
    std::fs::write(program.path(name), text).expect("a file of ours");
    program.path(name).to_string_lossy().into_owned()
}

fn configure(program: &Program, text: &str) {
    let folder = program.path("home/.config/envforge");
    std::fs::create_dir_all(&folder).expect("ours");
    std::fs::write(folder.join("config.toml"), text).expect("ours");
}

#[test]
fn configured_matrix_replaces_the_built_in_one_by_its_hash() {
    let program = Program::new(&AMBIENT).with("DOCKER_HOST", "unix:///nonexistent.sock");
    let pytorch =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/compat/pytorch.toml")).expect("a file");
    let hash = matrix_archive(&program, "site.tar", &[("pytorch.toml", &format!("{pytorch}\n# a site's\n"))]);
    let file = program.path("site.tar").to_string_lossy().into_owned();
    let lint = || program.run(&["compat", "lint"]);
    let built_in = lint().stdout;
    configure(&program, &format!("[matrix]\nfile = '{file}'\nsha256 = '{hash}'\n"));
    let first = lint();
    assert!(first.code == 0 && first.stdout != built_in && first.stderr.is_empty(), "{first:?}");
    // What was kept of it is read the next time, and is the same.
    assert!(program.path("state/configured-matrix").is_file());
    assert_eq!(lint().stdout, first.stdout);
    let doctor = program.run(&["doctor", "-v"]).stdout.replace("\n         ", " ");
    let edition = first.stdout.split(&[' ', ':'][..]).nth(1).expect("an edition");
    assert!(doctor.contains(&format!("matrix {edition}: {file}")), "{doctor}");
    let used = program.run(&["compat", "use", &file, "--sha256", &hash]);
    assert_message(&used, 2, &["`compat use` has no effect", "sets `[matrix] file`", &file]);
    // Another file under the name, whatever was kept.
    let other = "0".repeat(64);
    configure(&program, &format!("[matrix]\nfile = '{file}'\nsha256 = '{other}'\n"));
    assert_message(&lint(), 2, &["SHA-256 mismatch", &file, &hash, &other]);
    configure(&program, &format!("[matrix]\nfile = '{file}'\n"));
    assert_message(&lint(), 2, &["`[matrix] file` requires `[matrix] sha256`"]);
}

#[test]
fn local_row_is_chosen_by_its_label_and_marked() {
    let program = Program::new(&AMBIENT).with("DOCKER_HOST", "unix:///nonexistent.sock");
    let file = local_file(&program, "local.toml", "2.8.0+corp1");
    let plan = |spec: &str| program.run(&["plan", spec, "--gpu", "sm_90", "--driver", "580", "--json"]);
    let unknown = plan("pytorch-cuda:2.8.0+corp1");
    assert_eq!(unknown.code, 1, "not in the built-in matrix: {unknown:?}");
    let public = plan("pytorch-cuda:2.8");
    configure(&program, &format!("[matrix]\nlocal = '{file}'\n"));
    let json = |run: &Run| serde_json::from_str::<Value>(&run.stdout).expect("JSON");
    // Kept the second time.
    for _ in 0..2 {
        let own = plan("pytorch-cuda:2.8+corp1");
        assert_eq!(own.code, 0, "{own:?}");
        let own = json(&own);
        assert_eq!(own["local"], true);
        assert_eq!(own["stack"]["framework"]["version"], "2.8.0+corp1");
        assert_eq!(own["name"], "pytorch-cuda:2.8.0+corp1-cu128-py3.11");
    }
    let text = program.run(&["plan", "pytorch-cuda:2.8.0+corp1-cu128", "--gpu", "sm_90", "--driver", "580"]);
    assert!(text.stdout.contains("2.8.0+corp1 (the default package index, local)"), "{}", text.stdout);
    // Without its label nothing changes.
    let same = json(&plan("pytorch-cuda:2.8"));
    assert_eq!((&same["name"], &same["local"]), (&json(&public)["name"], &Value::Bool(false)));
    let doctor = program.run(&["doctor", "-v"]).stdout.replace("\n         ", " ");
    assert!(doctor.contains(&format!("1 row of {file}")), "{doctor}");
    let shown = program.run(&["compat", "show", "variant pytorch 2.8.0+corp1"]);
    assert!(shown.stdout.starts_with(&file), "{}", shown.stdout);

    let twice = local_file(&program, "twice.toml", "2.8.0");
    configure(&program, &format!("[matrix]\nlocal = '{twice}'\n"));
    let both =
        ["variant pytorch 2.8.0 cu128 x86_64", &twice, "pytorch.toml: variant pytorch 2.8.0 cu128 x86_64"];
    assert_message(&plan("pytorch-cuda:2.8"), 2, &both);
}

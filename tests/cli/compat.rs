//! `compat`, and the documents made of the matrix.

use serde_json::Value;

use crate::envforge;

#[test]
fn the_matrix_of_the_program_and_its_files_have_no_fault() {
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
fn a_faulty_folder_is_named_row_by_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "schema = 1\nchecked = \"2026-11-20\"\n[[toolkit]]\ncuda = \"12.8.1\"\nbranch = 570\n\
                min_driver = \"525.60.13\"\nsource = \"\"\n";
    std::fs::write(folder.path().join("driver.toml"), text).expect("written");
    let run = envforge(&["compat", "lint", folder.path().to_str().expect("UTF-8")]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("driver.toml: toolkit 12.8.1: it has no source"), "{}", run.stdout);
    std::fs::write(folder.path().join("driver.toml"), "schema = ").expect("written");
    let run = envforge(&["compat", "lint", folder.path().to_str().expect("UTF-8")]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("`driver.toml` line 1"), "{}", run.stderr);
}

#[test]
fn a_row_is_shown_with_its_source() {
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

#[test]
fn the_support_table_beside_the_matrix_is_the_one_made_of_it() {
    let run = envforge(&["generate", "support"]);
    let kept = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/compat/SUPPORT.md"));
    let kept = kept.expect("compat/SUPPORT.md");
    assert!(run.stdout == kept, "compat/SUPPORT.md is old: `envforge generate support > compat/SUPPORT.md`");
    assert!(envforge(&["generate", "rules"]).stdout.contains("## gpu-not-in-binary"));
}

#![expect(clippy::disallowed_methods, reason = "reads the case folders, which are tests' own files")]
//! Cases as folders: `tests/fixtures/{ok,impossible}/<case>/case.toml` with the expected answer. A new folder is a test.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::naive;
use crate::matrix::Matrix;
use crate::resolve::{ResolveOptions, plan_text, refusal_text, resolve};
use crate::versions::Machine;
use crate::wrap::{Width, wrapped};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    spec: String,
    #[serde(default)]
    gpu: Vec<String>,
    driver: Option<String>,
    machine: Option<Machine>,
    base: Option<String>,
    #[serde(default)]
    forward_compat: bool,
    #[serde(default)]
    without_vendor_repository: bool,
}

fn folders(verdict: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(verdict);
    let entries = std::fs::read_dir(&root).expect("the fixtures folder");
    let mut all: Vec<_> = entries.map(|entry| entry.expect("a case").path()).collect();
    all.sort();
    assert!(all.len() >= 12, "only {} cases in {}", all.len(), root.display());
    all
}

fn check(folder: &Path, wanted_ok: bool) {
    let text = std::fs::read_to_string(folder.join("case.toml")).expect("case.toml");
    let case: Case = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let gpus: Vec<_> = case.gpu.iter().map(String::as_str).collect();
    let target = super::target(&gpus, case.driver.as_deref(), case.machine.unwrap_or(Machine::X86_64));
    let mut options = ResolveOptions { base: case.base, ..ResolveOptions::default() };
    options.forward_compat = case.forward_compat;
    options.toolkit.vendor = !case.without_vendor_repository;
    let spec = super::spec(&case.spec);
    let answer = match resolve(&spec, &target, Matrix::embedded(), &options) {
        Ok(stack) => {
            assert!(wanted_ok, "{}: {} resolves", folder.display(), case.spec);
            assert_eq!(naive::objections(&spec, &stack, Matrix::embedded()), Vec::<String>::new());
            plan_text(&stack, Matrix::embedded())
        }
        Err(refusal) => {
            let text = refusal_text(&refusal, &target);
            assert!(!wanted_ok, "{}: refused\n{text}", folder.display());
            text
        }
    };
    assert!(answer.lines().all(|line| !line.starts_with("      ")), "one line for each thing: {answer}");
    // As a terminal shows it.
    let answer = wrapped(&answer, Width::of_terminal(80));
    let too_wide: Vec<_> = answer.lines().filter(|line| line.chars().count() > 80).collect();
    let addresses = |line: &&str| line.split_whitespace().any(|word| word.len() > 60);
    assert!(too_wide.iter().all(addresses), "wider than 80 columns: {too_wide:?}");
    // Any new fact changes the edition, but no answer.
    let answer = answer.replace(&Matrix::embedded().edition, "EDITION");
    insta::with_settings!({
        snapshot_path => folder, prepend_module_to_snapshot => false, omit_expression => true,
    }, { insta::assert_snapshot!("answer", answer) });
}

#[test]
fn every_possible_case_gets_its_plan() {
    for folder in folders("ok") {
        check(&folder, true);
    }
}

#[test]
fn every_impossible_case_gets_its_refusal() {
    for folder in folders("impossible") {
        check(&folder, false);
    }
}

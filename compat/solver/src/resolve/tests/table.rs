#![expect(clippy::disallowed_methods, reason = "reads the table of cases, which is tests' own")]
//! The table of combinations with a verdict from another source: `tests/fixtures/table/{ok,impossible}/cases.toml`.

use std::path::Path;

use serde::Deserialize;

use crate::matrix::Matrix;
use crate::resolve::{ResolveOptions, Rule, resolve};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    spec: String,
    gpu: Option<String>,
    driver: Option<String>,
    /// A prefix of the result's name.
    chosen: Option<String>,
    /// Rules that must be among the refusals.
    #[serde(default)]
    rules: Vec<Rule>,
    /// The source of the verdict.
    from: String,
}

fn cases(verdict: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/table")
        .join(verdict)
        .join("cases.toml");
    let text = std::fs::read_to_string(&path).expect("the table");
    let table: Table = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    table.case
}

/// Returns the objection to the answer of a case; `None` if it is correct.
fn objection(case: &Case, possible: bool) -> Option<String> {
    assert!(!case.from.is_empty(), "{}: a case without its source", case.spec);
    let gpus: Vec<_> = case.gpu.as_deref().into_iter().collect();
    let target = super::x86(&gpus, case.driver.as_deref());
    let answer = resolve(&super::spec(&case.spec), &target, Matrix::embedded(), &ResolveOptions::default());
    let at = format!("{} on {:?}, driver {:?}", case.spec, case.gpu, case.driver);
    match answer {
        Ok(stack) if !possible => Some(format!("{at}: resolves to {}", stack.name)),
        Ok(stack) => {
            let begins = case.chosen.as_ref().is_none_or(|chosen| stack.name.starts_with(chosen));
            (!begins).then(|| format!("{at}: gives {}", stack.name))
        }
        Err(refusal) => {
            let shown: Vec<_> = refusal.refusals.iter().map(|refused| refused.rule).collect();
            let all = case.rules.iter().all(|rule| shown.contains(rule));
            (possible || !all).then(|| format!("{at}: refused by {shown:?}"))
        }
    }
}

#[test]
fn combinations_have_their_recorded_verdict() {
    let (possible, impossible) = (cases("ok"), cases("impossible"));
    assert!(possible.len() + impossible.len() >= 150, "{} and {}", possible.len(), impossible.len());
    assert!(impossible.iter().all(|case| !case.rules.is_empty()), "a refusal without its rule");
    let wrong: Vec<_> = possible
        .iter()
        .filter_map(|case| objection(case, true))
        .chain(impossible.iter().filter_map(|case| objection(case, false)))
        .collect();
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

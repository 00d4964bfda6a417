#![expect(clippy::disallowed_methods, reason = "reads the cases, which are tests' own files")]
//! Classes of questions with their answer: `tests/fixtures/classes/<class>.toml`, at least ten cases each.

use std::path::Path;

use serde::Deserialize;

use crate::matrix::Matrix;
use crate::resolve::{
    CompanionRequest, ResolveOptions, Rule, companions, companions_text, plan_text, refusal_text, resolve,
};
use crate::versions::Machine;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Class {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    spec: String,
    #[serde(default)]
    gpu: Vec<String>,
    driver: Option<String>,
    machine: Option<Machine>,
    base: Option<String>,
    as_of: Option<String>,
    /// Requested packages.
    #[serde(default)]
    with: Vec<String>,
    #[serde(default)]
    allow_source: Vec<String>,
    #[serde(default)]
    forward_compat: bool,
    /// A prefix of the result's name; absent: refused.
    chosen: Option<String>,
    /// Rules that must be among the refusals.
    #[serde(default)]
    rules: Vec<Rule>,
    /// Texts of the plan or the refusal, whatever its line breaks.
    #[serde(default)]
    says: Vec<String>,
    /// Texts that must be missing.
    #[serde(default)]
    omits: Vec<String>,
    /// The source of the verdict.
    from: String,
}

/// Returns the objections to the answer of a case.
fn objections(case: &Case) -> Vec<String> {
    assert!(!case.from.is_empty(), "{}: a case without its source", case.spec);
    assert_ne!(case.chosen.is_some(), !case.rules.is_empty(), "{}: either chosen or rules", case.spec);
    let gpus: Vec<_> = case.gpu.iter().map(String::as_str).collect();
    let target = super::target(&gpus, case.driver.as_deref(), case.machine.unwrap_or(Machine::X86_64));
    let mut options =
        ResolveOptions { base: case.base.clone(), as_of: case.as_of.clone(), ..ResolveOptions::default() };
    options.forward_compat = case.forward_compat;
    let (spec, matrix) = (super::spec(&case.spec), Matrix::embedded());
    let answer = resolve(&spec, &target, matrix, &options).and_then(|stack| {
        let (requirements, allow_source) = (&case.with, &case.allow_source);
        let request = CompanionRequest { spec: &spec, matrix, options: &options, requirements, allow_source };
        companions(request, &stack).map(|chosen| (stack, chosen)).map_err(|refusal| *refusal)
    });
    let (name, rules, text) = match &answer {
        Ok((stack, chosen)) => {
            (Some(stack.name.clone()), Vec::new(), plan_text(stack, matrix) + &companions_text(chosen))
        }
        Err(refusal) => {
            let rules = refusal.refusals.iter().map(|refused| refused.rule).collect();
            (None, rules, refusal_text(refusal, &target))
        }
    };
    let mut wrong = Vec::new();
    let begins = match (&case.chosen, &name) {
        (Some(wanted), Some(name)) => name.starts_with(wanted),
        (wanted, name) => wanted.is_none() == name.is_none(),
    };
    if !begins {
        wrong.push(format!("gives {name:?} {rules:?}, not {:?}", case.chosen));
    }
    wrong.extend(
        case.rules.iter().filter(|rule| !rules.contains(rule)).map(|rule| format!("no {rule} in {rules:?}")),
    );
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    wrong.extend(
        case.says.iter().filter(|said| !flat.contains(*said)).map(|said| format!("no `{said}` in: {flat}")),
    );
    wrong.extend(
        case.omits.iter().filter(|said| flat.contains(*said)).map(|said| format!("`{said}` in: {flat}")),
    );
    wrong
        .iter()
        .map(|wrong| format!("{} on {:?}, driver {:?}: {wrong}", case.spec, case.gpu, case.driver))
        .collect()
}

#[test]
fn every_class_has_ten_cases_with_their_answers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/classes");
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("the classes") {
        let path = entry.expect("a class").path();
        let text = std::fs::read_to_string(&path).expect("a class");
        let class: Class =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(class.case.len() >= 10, "{}: only {} cases", path.display(), class.case.len());
        wrong.extend(class.case.iter().flat_map(objections));
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

//! An unsatisfiable request: every violated rule, and the alternatives.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::branch_advice::DriverAdvice;
use super::rule::Rule;
use crate::spec::Spec;

/// A violated rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleViolation {
    /// The rule.
    pub rule: Rule,
    /// The problem, with the row, and a value that would be correct.
    pub text: String,
    /// Where the row comes from.
    pub source: String,
}

impl RuleViolation {
    pub(crate) fn new(rule: Rule, text: String, source: &str) -> Self {
        Self { rule, text, source: source.to_owned() }
    }
}

/// A spec that does resolve on the same target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternative {
    /// The spec, pinned.
    pub spec: Spec,
    /// The command to run: `envforge build pytorch-cuda:2.7.1-cu118`.
    pub command: String,
    /// The distance from the request: smaller is nearer.
    pub distance: u32,
}

/// The reasons why a spec cannot be resolved for a target.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot resolve `{spec}`: {}", rule_ids(.refusals))]
pub struct Unsatisfiable {
    /// The request.
    pub spec: Box<Spec>,
    /// Every violated rule.
    pub refusals: Vec<RuleViolation>,
    /// At most three specs that resolve, closest match first.
    pub alternatives: Vec<Alternative>,
    /// The driver that would open the request, if the target's is the reason.
    pub driver: Option<Box<DriverAdvice>>,
}

impl Unsatisfiable {
    /// What a person can do about it, one imperative per line.
    pub fn hints(&self) -> Vec<String> {
        self.alternatives.iter().map(|alternative| format!("run `{}`", alternative.command)).collect()
    }
}

fn rule_ids(refusals: &[RuleViolation]) -> String {
    refusals.iter().map(|refused| refused.rule.id()).collect::<Vec<_>>().join(", ")
}

//! The answer no: every rule that said it, and what can be had instead.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::rule::Rule;
use crate::spec::Spec;

/// One rule's no.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The rule.
    pub rule: Rule,
    /// What is wrong, naming the row, and what would be right.
    pub text: String,
    /// Where the row comes from.
    pub source: String,
}

impl Refused {
    pub(crate) fn new(rule: Rule, text: String, source: &str) -> Self {
        Self { rule, text, source: source.to_owned() }
    }
}

/// A spec that does resolve on the same target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternative {
    /// The spec, pinned.
    pub spec: Spec,
    /// What to paste: `envforge build pytorch-cuda:2.7.1-cu118`.
    pub command: String,
    /// How far it is from what was asked; see `distance`.
    pub distance: u32,
}

/// Why a spec cannot be had on a target.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{spec}` is impossible: {}", rule_ids(.refusals))]
pub struct Refusal {
    /// What was asked.
    pub spec: Box<Spec>,
    /// Every rule that said no.
    pub refusals: Vec<Refused>,
    /// At most three specs that work, nearest first.
    pub alternatives: Vec<Alternative>,
}

fn rule_ids(refusals: &[Refused]) -> String {
    refusals.iter().map(|refused| refused.rule.id()).collect::<Vec<_>>().join(", ")
}

impl Refusal {
    /// What the user can do: the alternatives as commands.
    pub fn hints(&self) -> Vec<String> {
        self.alternatives.iter().map(|alternative| format!("run `{}`", alternative.command)).collect()
    }

    /// It worked and the answer is no: 1.
    pub fn exit_code(&self) -> u8 {
        1
    }
}

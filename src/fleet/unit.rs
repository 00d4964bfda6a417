//! Nodes as verdicts of their own, for `JUnit`: one suite for each node.

use super::merge::Fleet;
use super::row::{NodeRow, NodeState};
use crate::model::verdict::{Check, Outcome, Verdict, VerdictStatus};

/// Returns a verdict for each node, named for it; one without a report has one check, `node`.
pub fn verdicts(fleet: &Fleet) -> Vec<Verdict> {
    fleet.rows.iter().map(verdict).collect()
}

fn verdict(row: &NodeRow) -> Verdict {
    let why = if row.why.is_empty() { "fit".to_owned() } else { row.why.join("; ") };
    let (outcome, required) = match row.state {
        NodeState::NoReport => (Outcome::Errored, true),
        NodeState::NotRun => (Outcome::Skipped, false),
        NodeState::Failed | NodeState::Slow | NodeState::Different | NodeState::Ok => {
            (Outcome::Passed, false)
        }
    };
    let of_node = Check {
        id: "node".to_owned(),
        stage: "static".to_owned(),
        required,
        outcome,
        detail: format!("{}: {why}", row.state.as_str()),
        measured: std::collections::BTreeMap::new(),
        expected: std::collections::BTreeMap::new(),
        hint: None,
        skip: None,
    };
    match &row.verdict {
        Some(verdict) => {
            let mut verdict = verdict.clone();
            verdict.name.clone_from(&row.node);
            verdict.checks.insert(0, of_node);
            verdict
        }
        None => Verdict {
            schema: 1,
            image: String::new(),
            executed: false,
            verdict: VerdictStatus::Undecided,
            checks: vec![of_node],
            gpus: Vec::new(),
            versions: std::collections::BTreeMap::new(),
            seconds: row.facts.seconds.unwrap_or_default(),
            name: row.node.clone(),
            digests: Vec::new(),
            level: String::new(),
            not_proven: Vec::new(),
            checked: String::new(),
            engine: None,
            lock: None,
            sandboxed: true,
            conditions: None,
        },
    }
}

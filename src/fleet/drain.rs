//! Which nodes to drain: those whose fault was found twice, and never many.

use super::merge::Fleet;
use super::row::{Action, NodeRow};

/// Nodes that may be drained in any case, and the part of all that may be.
const FEW: usize = 2;
const PART: usize = 10;

/// A node to drain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drain {
    /// Its name.
    pub node: String,
    /// Our own short reason; nothing of what a node printed is in it.
    pub reason: String,
}

impl Drain {
    /// The scheduler's command, word by word.
    pub fn command(&self) -> [String; 5] {
        [
            "scontrol".to_owned(),
            "update".to_owned(),
            format!("NodeName={}", self.node),
            "State=DRAIN".to_owned(),
            format!("Reason={}", self.reason),
        ]
    }
}

/// The nodes with a fault of their own, which are asked again.
pub fn suspects(fleet: &Fleet) -> Vec<String> {
    fleet.rows.iter().filter(|row| row.action == Action::Drain).map(|row| row.node.clone()).collect()
}

/// The most nodes that are drained of so many.
pub fn most_drained(nodes: usize) -> usize {
    FEW.max(nodes / PART)
}

/// Compares two answers: a node stays one to drain if the same fault was found twice; any other is only watched. Returns the nodes to
/// drain.
pub fn confirm(first: &mut Fleet, second: &Fleet) -> Vec<Drain> {
    let mut drains = Vec::new();
    for row in first.rows.iter_mut().filter(|row| row.action == Action::Drain) {
        let again = second.rows.iter().find(|again| again.node == row.node);
        if let Some(fault) = again.and_then(|again| common_fault(row, again)) {
            let reason = format!("envforge: {fault} failed twice");
            drains.push(Drain { node: row.node.clone(), reason });
        } else {
            row.action = Action::Watch;
            let word = again.map_or("not asked", |again| again.state.as_str());
            row.why.push(format!("when asked again: {word}"));
        }
    }
    drains
}

fn common_fault<'a>(first: &'a NodeRow, second: &NodeRow) -> Option<&'a String> {
    first.faults.iter().find(|fault| second.action == Action::Drain && second.faults.contains(fault))
}

//! Checks by groups of nodes alike: a row for each check that is not ok everywhere, a column for each group.

use std::collections::{BTreeMap, BTreeSet};

use super::merge::Fleet;
use crate::model::verdict::outcome_word;

/// Where a node has no line of a check.
const ABSENT: &str = "-";

/// The matrix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matrix {
    /// The nodes of each column; those with the most checks that are not ok come first.
    pub groups: Vec<Vec<String>>,
    /// Each check with its outcome in each column.
    pub rows: Vec<(String, Vec<&'static str>)>,
}

/// Makes the matrix of all nodes that gave a report.
pub fn matrix(fleet: &Fleet) -> Matrix {
    let nodes: Vec<(&str, BTreeMap<&str, &'static str>)> = fleet
        .rows
        .iter()
        .filter_map(|row| {
            let verdict = row.verdict.as_ref()?;
            Some((
                row.node.as_str(),
                verdict.checks.iter().map(|check| (check.id.as_str(), outcome_word(check))).collect(),
            ))
        })
        .collect();
    let ids: BTreeSet<&str> = nodes.iter().flat_map(|(_, outcomes)| outcomes.keys().copied()).collect();
    let is_listed = |id: &&str| {
        let mut words = nodes.iter().map(|(_, outcomes)| outcomes.get(id).copied().unwrap_or(ABSENT));
        let first = words.next();
        // A skip on every node, for a reason that holds on every node, says nothing.
        words.any(|word| Some(word) != first) || !matches!(first, Some("ok" | "skipped"))
    };
    let ids: Vec<&str> = ids.into_iter().filter(is_listed).collect();
    let mut groups: BTreeMap<Vec<&'static str>, Vec<String>> = BTreeMap::new();
    for (name, outcomes) in &nodes {
        let column = ids.iter().map(|id| outcomes.get(id).copied().unwrap_or(ABSENT)).collect();
        groups.entry(column).or_default().push((*name).to_owned());
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    let bad = |column: &[&str]| column.iter().filter(|word| ["failed", "error"].contains(word)).count();
    groups.sort_by_key(|(column, nodes)| (std::cmp::Reverse(bad(column)), nodes.len()));
    let rows = ids
        .iter()
        .enumerate()
        .map(|(at, id)| ((*id).to_owned(), groups.iter().map(|(column, _)| column[at]).collect()));
    let rows = rows.collect();
    Matrix { groups: groups.into_iter().map(|(_, nodes)| nodes).collect(), rows }
}

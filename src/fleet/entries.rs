//! What the reports of nodes prove of the image, as entries of evidence.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::merge::Fleet;
use super::row::NodeRow;
use crate::evidence::{AttestedNodes, Entry};
use crate::model::verdict::{Outcome, VerdictStatus};

/// What a fleet proves of its image: an entry for each GPU model, driver branch and level.
///
/// A node that fails where others pass has a fault of its own and takes nothing back. A model and branch on which every report fails is
/// withdrawn, and so is one with a check that fails on more than half of those with a report. `agent`: SHA-256 of the agent that the nodes ran;
/// `now`: the one clock that dates all of them. `with_nodes`: whether the nodes that passed are named.
pub fn entries(fleet: &Fleet, agent: &str, now: Timestamp, with_nodes: bool) -> Vec<Entry> {
    let mut of_key = BTreeMap::<_, Vec<(Entry, bool)>>::new();
    for (row, verdict) in fleet.rows.iter().filter_map(|row| Some((row, row.verdict.as_ref()?))) {
        let is_failed = |id: &String| {
            verdict.checks.iter().any(|check| check.id == *id && check.outcome == Outcome::Failed)
        };
        let is_widespread =
            verdict.verdict == VerdictStatus::Failed && fleet.widespread.iter().any(is_failed);
        for entry in Entry::of_report(verdict, agent) {
            let is_named = with_nodes && entry.stands();
            let nodes = if is_named { named(row, &entry.gpu) } else { AttestedNodes::new() };
            let entry = Entry { checked: now, nodes, ..entry };
            let key = (entry.gpu.clone(), entry.branch(), entry.level.as_str());
            of_key.entry(key).or_default().push((entry, is_widespread));
        }
    }
    of_key.into_values().filter_map(settled).collect()
}

/// The one entry for all reports of a model, branch and level.
fn settled(all: Vec<(Entry, bool)>) -> Option<Entry> {
    let is_withdrawn =
        all.iter().any(|(_, is_widespread)| *is_widespread) || all.iter().all(|(entry, _)| !entry.stands());
    let counted = all.into_iter().map(|(entry, _)| entry).filter(|entry| entry.stands() != is_withdrawn);
    let counted: Vec<Entry> = counted.collect();
    let nodes = counted.iter().flat_map(|entry| entry.nodes.clone()).collect();
    let most = counted.into_iter().max_by_key(|entry| (entry.nccl, entry.count))?;
    Some(Entry { nodes, ..most })
}

/// The node of a row with the UUIDs of its GPUs of that model. A host of ssh is named without its user.
fn named(row: &NodeRow, gpu: &str) -> AttestedNodes {
    let name = row.node.rsplit('@').next().unwrap_or_default().to_owned();
    let of_model = row.facts.gpus.iter().filter(|one| one.name == gpu);
    let uuids: BTreeSet<String> = of_model.map(|one| one.uuid.clone()).collect();
    AttestedNodes::from([(name, uuids)])
}

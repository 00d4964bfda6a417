//! The nodes of a Slurm cluster as `sinfo` prints them: which can be asked, and why the others cannot.

use std::collections::{BTreeMap, BTreeSet};

use super::heard::{Heard, Outcome};
use super::hosts::{HostListError, is_host, unfold};
use crate::model::visible::visible_line_within;

/// The format of `sinfo`: node, partition (the default one ends in `*`), state, generic resources, then who drained it, when, and why,
/// which may hold anything.
pub const SINFO_FORMAT: &str = "%N|%P|%T|%G|%u|%H|%E";
/// The most nodes of one job: larger ones were seen to fail.
const MOST_OF_A_JOB: usize = 128;

/// A node in one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlurmNode {
    /// Its name.
    pub name: String,
    /// The partition.
    pub partition: String,
    /// Whether that is the default one.
    pub is_default: bool,
    /// `idle`, `drained`, `mixed`; flags such as `*` are part of it.
    pub state: String,
    /// The number of its GPUs, as configured.
    pub gpus: usize,
    /// Why it is drained or down, with who said so and when; empty: it is neither.
    pub reason: String,
}

/// Reads the output of `sinfo --Node`. Lines of another form are left out.
pub fn read_sinfo(output: &str) -> Vec<SlurmNode> {
    output.lines().filter_map(read_line).collect()
}

fn read_line(line: &str) -> Option<SlurmNode> {
    let fields: Vec<&str> = line.splitn(7, '|').collect();
    let [name, partition, state, gres, user, since, reason] = fields.as_slice() else { return None };
    let (name, partition) = (name.trim(), partition.trim());
    let bare = partition.trim_end_matches('*');
    if !is_host(name) || !is_host(bare) {
        return None;
    }
    let reason = match reason.trim() {
        "" | "none" | "Unknown" => String::new(),
        reason => format!("{} ({}, {})", visible_line_within(reason, 80), shown(user), shown(since)),
    };
    Some(SlurmNode {
        name: name.to_owned(),
        partition: bare.to_owned(),
        is_default: bare.len() < partition.len(),
        state: shown(state),
        gpus: gpus(gres),
        reason,
    })
}

fn shown(text: &str) -> String {
    visible_line_within(text.trim(), 40)
}

/// The number of GPUs of `gpu:h200:8(S:0-1),nic:1`.
fn gpus(gres: &str) -> usize {
    let mut depth = 0_usize;
    let outside: String = gres
        .chars()
        .filter(|character| {
            depth = match character {
                '(' => depth + 1,
                ')' => depth.saturating_sub(1),
                _ => depth,
            };
            depth == 0 && *character != ')'
        })
        .collect();
    let counts = outside.split(',').filter_map(|resource| {
        let mut fields = resource.split(':');
        (fields.next()?.trim() == "gpu").then(|| fields.next_back()?.trim().parse::<usize>().ok())?
    });
    counts.sum()
}

/// The nodes that are asked, and what is known of the others at once.
#[derive(Debug, Default)]
pub struct Selection {
    /// Nodes that can be asked: idle, or so by the call's choice.
    pub idle: Vec<SlurmNode>,
    /// Those that cannot be asked.
    pub others: Vec<Heard>,
    /// Whether nodes were named one by one.
    pub is_named: bool,
}

/// Which nodes can be asked, besides those that are idle.
#[derive(Debug, Clone, Copy, Default)]
pub struct Askable {
    /// Those that run jobs: the call waits for them.
    pub busy: bool,
    /// Reserved ones: the call brings its reservation.
    pub reserved: bool,
}

impl Askable {
    fn has(self, state: &str) -> bool {
        state == "idle"
            || (self.reserved && ["reserved", "maint", "planned"].contains(&state))
            || (self.busy && (BUSY.contains(&state) || state == "planned"))
    }
}

/// The states of nodes that run jobs.
const BUSY: [&str; 3] = ["allocated", "mixed", "completing"];

/// Selects nodes: those of a partition, those of a list, or all. `needs_gpu`: nodes without GPUs cannot be asked, unless Slurm knows of no
/// GPU at all.
pub fn select(
    nodes: Vec<SlurmNode>,
    wanted: Option<&str>,
    needs_gpu: bool,
    askable: Askable,
) -> Result<Selection, HostListError> {
    let is_partition = wanted.is_some_and(|wanted| nodes.iter().any(|node| node.partition == wanted));
    let names: Option<BTreeSet<String>> = match wanted {
        Some(list) if !is_partition => Some(unfold(list)?.into_iter().collect()),
        _ => None,
    };
    let mut chosen: BTreeMap<String, SlurmNode> = BTreeMap::new();
    for node in nodes {
        let is_wanted = match (&names, wanted) {
            (Some(names), _) => names.contains(&node.name),
            (None, Some(partition)) => node.partition == partition,
            (None, None) => true,
        };
        // A node of several partitions is asked in the default one.
        if is_wanted && (node.is_default || !chosen.contains_key(&node.name)) {
            chosen.insert(node.name.clone(), node);
        }
    }
    let mut selection = Selection { is_named: names.is_some(), ..Selection::default() };
    let not_run = |node: &str, why: String| Heard {
        asked: Some(node.to_owned()),
        source: String::new(),
        gpus: None,
        outcome: Outcome::NotRun { why },
    };
    for name in names.iter().flatten().filter(|name| !chosen.contains_key(*name)) {
        selection.others.push(not_run(name, "not a node of this cluster".to_owned()));
    }
    let knows_gpus = chosen.values().any(|node| node.gpus > 0);
    for node in chosen.into_values() {
        let can_run = askable.has(&node.state);
        if can_run && needs_gpu && knows_gpus && node.gpus == 0 {
            selection.others.push(not_run(&node.name, "Slurm knows of no GPU there".to_owned()));
        } else if can_run {
            selection.idle.push(node);
        } else {
            let why = match (node.state.as_str(), node.reason.as_str()) {
                (state, _) if BUSY.contains(&state) => format!("busy: {state}"),
                (state, "") => state.to_owned(),
                (state, reason) => format!("{state}: {reason}"),
            };
            selection.others.push(not_run(&node.name, why));
        }
    }
    Ok(selection)
}

/// The idle nodes as jobs: of one partition and with as many GPUs each, at most so many of them.
pub fn idle_groups(idle: &[SlurmNode], most: usize) -> Vec<Vec<SlurmNode>> {
    let mut alike: BTreeMap<(&str, usize), Vec<SlurmNode>> = BTreeMap::new();
    for node in idle {
        alike.entry((&node.partition, node.gpus)).or_default().push(node.clone());
    }
    let most = most.clamp(1, MOST_OF_A_JOB);
    alike
        .into_values()
        .flat_map(|nodes| nodes.chunks(most).map(<[SlurmNode]>::to_vec).collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "node1|gpu*|idle|gpu:h200:8(S:0-1),nic:1|Unknown|Unknown|none\n\
                          node1|all|idle|gpu:h200:8(S:0-1),nic:1|Unknown|Unknown|none\n\
                          node2|gpu*|drained|gpu:h200:8|root|2026-11-22T10:00:00|Xid 79 | seen\u{1b}[2J\n\
                          node3|gpu*|mixed|gpu:h200:8|Unknown|Unknown|none\n\
                          node4|gpu*|idle*|gpu:8|Unknown|Unknown|Not responding\n\
                          node5|gpu*|idle|gpu:8|Unknown|Unknown|none\n\
                          cpu1|all|idle|(null)|Unknown|Unknown|none\n\
                          maint1|all|reserved|gpu:a100:4,gpu:a100:4|Unknown|Unknown|none\n\
                          -w|all|idle|gpu:8|||\nPARTITION\n";

    const RESERVED: Askable = Askable { reserved: true, busy: false };

    fn why(selection: &Selection) -> Vec<String> {
        let shown = |heard: &Heard| match &heard.outcome {
            Outcome::NotRun { why } => format!("{}: {why}", heard.asked.as_deref().unwrap_or_default()),
            other => panic!("{other:?}"),
        };
        selection.others.iter().map(shown).collect()
    }

    fn names(nodes: &[SlurmNode]) -> Vec<&str> {
        nodes.iter().map(|node| node.name.as_str()).collect()
    }

    #[test]
    fn nodes_that_cannot_be_asked_have_their_reason_at_once() {
        let selection = select(read_sinfo(OUTPUT), None, true, Askable::default()).expect("selected");
        assert_eq!(names(&selection.idle), ["node1", "node5"]);
        assert_eq!(
            why(&selection),
            [
                "cpu1: Slurm knows of no GPU there",
                "maint1: reserved",
                "node2: drained: Xid 79 | seen\\u{1b}[2J (root, 2026-11-22T10:00:00)",
                "node3: busy: mixed",
                "node4: idle*: Not responding (Unknown, Unknown)",
            ]
        );
        assert!(!selection.is_named);
    }

    #[test]
    fn busy_nodes_are_asked_where_the_call_waits_for_them() {
        let busy = Askable { busy: true, reserved: false };
        let selection = select(read_sinfo(OUTPUT), Some("gpu"), true, busy).expect("selected");
        assert_eq!(names(&selection.idle), ["node1", "node3", "node5"]);
        assert_eq!(
            why(&selection),
            [
                "node2: drained: Xid 79 | seen\\u{1b}[2J (root, 2026-11-22T10:00:00)",
                "node4: idle*: Not responding (Unknown, Unknown)",
            ]
        );
    }

    #[test]
    fn partition_list_and_reservation_select() {
        let nodes = || read_sinfo(OUTPUT);
        let all = select(nodes(), Some("all"), true, RESERVED).expect("selected");
        assert_eq!((names(&all.idle), all.is_named), (vec!["maint1", "node1"], false));
        let list = select(nodes(), Some("node[1,9]"), true, Askable::default()).expect("selected");
        assert_eq!((names(&list.idle), list.is_named), (vec!["node1"], true));
        assert_eq!(why(&list), ["node9: not a node of this cluster"]);
        let statics = select(nodes(), Some("cpu1"), false, Askable::default()).expect("selected");
        assert_eq!(names(&statics.idle), ["cpu1"]);
        // Slurm that knows of no GPU says nothing about them.
        let without = OUTPUT.replace("gpu:", "nic:");
        let without =
            select(read_sinfo(&without), Some("node5"), true, Askable::default()).expect("selected");
        assert_eq!(names(&without.idle), ["node5"]);
        assert!(select(nodes(), Some("node["), true, Askable::default()).is_err());
    }

    #[test]
    fn gpus_are_counted_over_types() {
        for (gres, count) in
            [("gpu:8", 8), ("gpu:h200:8(S:0-1),nic:1", 8), ("gpu:a:2,gpu:b:3", 5), ("(null)", 0), ("gpu", 0)]
        {
            assert_eq!(gpus(gres), count, "{gres}");
        }
    }

    #[test]
    fn jobs_are_of_nodes_alike() {
        let selection = select(read_sinfo(OUTPUT), None, true, RESERVED).expect("selected");
        let groups = |most| -> Vec<Vec<String>> {
            let groups = idle_groups(&selection.idle, most);
            groups.iter().map(|nodes| names(nodes).into_iter().map(str::to_owned).collect()).collect()
        };
        assert_eq!(groups(128), [vec!["maint1"], vec!["node1", "node5"]]);
        assert_eq!(groups(1).len(), 3);
        assert_eq!(groups(0).len(), 3);
    }
}

//! What was heard of many nodes, as a row for each: the newest report counts, and one that cannot be of its node does not.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use envforge_protocol::CheckId;
use jiff::Timestamp;

use super::differences::differences;
use super::heard::{Heard, Outcome};
use super::hosts::is_host;
use super::node_line::{NodeReport, Stage};
use super::row::{Action, NodeFacts, NodeRow, NodeState};
use super::slow::slow;
use crate::failure::Exit;
use crate::model::counted::counted;
use crate::model::diagnosis::diagnose;
use crate::model::verdict::{self, Check, Verdict, VerdictStatus, labels, model_of};
use crate::model::visible::visible_line_within;

/// The most characters of one reason, and the most reasons of a node.
const LONGEST_REASON: usize = 160;
const MOST_REASONS: usize = 4;
/// The known error of a reader that lacks the compression of a file.
const COMPRESSION: &str = "squashfs-compression";
/// What `timeout` ends with, and what it ends with where it had to kill.
const TIMED_OUT: [u32; 2] = [124, 137];

/// The rows of all nodes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fleet {
    /// Gravest first, then by name.
    pub rows: Vec<NodeRow>,
    /// Checks that fail on more than half of the nodes that gave a report: the image may be at fault.
    pub widespread: Vec<String>,
    /// Whether the nodes were named one by one, so that one that could not be asked counts.
    pub is_named: bool,
}

impl Fleet {
    /// How many nodes are in that state.
    pub fn count(&self, state: NodeState) -> usize {
        self.rows.iter().filter(|row| row.state == state).count()
    }

    /// Why no node was asked, each reason once, the most frequent first; empty: one was.
    pub fn refusals(&self) -> Vec<&str> {
        let was_asked = |row: &NodeRow| row.state != NodeState::NotRun || row.verdict.is_some();
        if self.rows.iter().any(was_asked) {
            return Vec::new();
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for why in self.rows.iter().flat_map(|row| &row.why) {
            *counts.entry(why).or_default() += 1;
        }
        let mut reasons: Vec<(&str, usize)> = counts.into_iter().collect();
        reasons.sort_by_key(|(_, count)| Reverse(*count));
        reasons.into_iter().map(|(why, _)| why).collect()
    }

    /// The exit code: a node failed; or none failed, and one that was asked gave no report, or no node shows anything.
    pub fn exit(&self) -> Exit {
        let not_run = self.count(NodeState::NotRun);
        let is_missing = self.count(NodeState::NoReport) > 0
            || (self.is_named && not_run > 0)
            || not_run == self.rows.len();
        match (self.count(NodeState::Failed), is_missing) {
            (1.., _) => Exit::No,
            (0, true) => Exit::Outside,
            (0, false) => Exit::Done,
        }
    }
}

/// One node before it is compared with the others.
struct Node {
    name: String,
    /// When the report was made, seconds.
    time: Option<i64>,
    nonce: String,
    facts: NodeFacts,
    outcome: NodeOutcome,
    older: usize,
}

enum NodeOutcome {
    Reported(Box<Verdict>),
    Silent(String),
    NotRun(String),
}

impl NodeOutcome {
    /// A report counts before silence, and silence before not having been asked.
    fn weight(&self) -> u8 {
        match self {
            Self::Reported(_) => 2,
            Self::Silent(_) => 1,
            Self::NotRun(_) => 0,
        }
    }
}

/// Makes a row for each node. `is_named`: the nodes were named one by one.
pub fn merge(heard: Vec<Heard>, is_named: bool) -> Fleet {
    let mut by_name: BTreeMap<String, Node> = BTreeMap::new();
    for node in heard.into_iter().map(node) {
        match by_name.remove(&node.name) {
            None => by_name.insert(node.name.clone(), node),
            Some(other) => {
                let one = one_of(other, node);
                by_name.insert(one.name.clone(), one)
            }
        };
    }
    let mut nodes: Vec<Node> = by_name.into_values().collect();
    refuse_copies(&mut nodes);
    rows(nodes, is_named)
}

fn node(heard: Heard) -> Node {
    let Heard { asked, source, gpus, outcome } = heard;
    let source = if is_host(&source) { source } else { visible_line_within(&source, 100) };
    let mut node = match outcome {
        Outcome::Report(report, verdict) => of_report(asked, source, &report, *verdict),
        Outcome::Verdict(verdict) => {
            let time = verdict.checked.parse::<Timestamp>().ok().map(Timestamp::as_second);
            let facts = facts_of(&verdict);
            let (name, nonce) = (asked.unwrap_or(source), String::new());
            Node { name, time, nonce, facts, outcome: NodeOutcome::Reported(verdict), older: 0 }
        }
        Outcome::Silent { stage, why } => {
            let why = match stage {
                Some(stage) => format!("{why} while {}", stage.text()),
                None => why,
            };
            without_report(asked.unwrap_or(source), NodeOutcome::Silent(reason(&why)))
        }
        Outcome::NotRun { why } => without_report(asked.unwrap_or(source), NodeOutcome::NotRun(reason(&why))),
    };
    node.facts.configured_gpus = gpus;
    node
}

fn without_report(name: String, outcome: NodeOutcome) -> Node {
    Node { name, time: None, nonce: String::new(), facts: NodeFacts::default(), outcome, older: 0 }
}

fn of_report(asked: Option<String>, source: String, report: &NodeReport, verdict: Verdict) -> Node {
    let NodeReport { place, stage, code, began, .. } = report;
    let says = [&place.node, &place.host].into_iter().find(|name| !name.is_empty()).cloned();
    let is_of_another = asked.as_ref().is_some_and(|asked| !place.node.is_empty() && place.node != *asked);
    let name = asked.or(says).unwrap_or(source);
    let known = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let mut facts = facts_of(&verdict);
    facts.host = known(&place.host);
    facts.job = known(&place.job);
    facts.boot = known(&place.boot);
    facts.kernel = known(&report.kernel);
    facts.runtime = known(&report.runtime);
    facts.agent = known(&report.agent);
    facts.driver = known(&report.driver).or(facts.driver);
    facts.seconds = Some(f64::from(report.seconds));
    if !report.gpus.is_empty() {
        let mut models: Vec<&str> = report.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
        models.sort_unstable();
        models.dedup();
        (facts.gpu_count, facts.gpu_model) = (Some(report.gpus.len()), Some(models.join(", ")));
        facts.gpus.clone_from(&report.gpus);
    }
    let outcome = if is_of_another {
        // What it says of itself is another node's.
        facts = NodeFacts::default();
        NodeOutcome::Silent(format!("its report says that it is `{}`", place.node))
    } else if *stage < Stage::End {
        NodeOutcome::Silent(reason(&unfinished(report)))
    } else {
        match broken_off(&verdict, *code) {
            Some(why) => NodeOutcome::Silent(reason(&why)),
            None => NodeOutcome::Reported(Box::new(verdict)),
        }
    };
    Node { name, time: Some(*began), nonce: place.nonce.clone(), facts, outcome, older: 0 }
}

/// Why a launcher got to no checks.
fn unfinished(report: &NodeReport) -> String {
    let last = report.why.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let last = if last.is_empty() { format!("exit code {}", report.code) } else { last.to_owned() };
    let ended = match diagnose(&report.why) {
        _ if TIMED_OUT.contains(&report.code) => "ended at its deadline".to_owned(),
        // Where Apptainer says so, its line is longer than a reason.
        Some(known) if known.id == COMPRESSION => {
            format!("{}: write it with `--compression gzip`", known.what)
        }
        _ => last,
    };
    let runtime = if report.runtime.is_empty() { "the node" } else { &report.runtime };
    format!("{runtime}, {}: {ended}", report.stage.text())
}

/// How far a report came that is not whole; `None`: it is whole, or it has found something wrong and counts all the same.
fn broken_off(verdict: &Verdict, code: u32) -> Option<String> {
    let is_agent = |check: &&Check| check.id == CheckId::Agent.as_str();
    let agent = verdict.checks.iter().find(|check| is_agent(check) && check.is_bad())?;
    if verdict.checks.iter().any(|check| check.outcome == verdict::Outcome::Failed) {
        return None;
    }
    let ran = || {
        verdict.checks.iter().filter(|check| !is_agent(check) && check.outcome != verdict::Outcome::Errored)
    };
    let why = if TIMED_OUT.contains(&code) { "the checks ran into their deadline" } else { &agent.detail };
    let last = ran().next_back().map_or_else(String::new, |check| format!(", the last `{}`", check.id));
    Some(format!("{why}, after {}{last}", counted(ran().count(), "check")))
}

fn reason(text: &str) -> String {
    visible_line_within(text.lines().next().unwrap_or_default().trim(), LONGEST_REASON)
}

/// What a verdict says of its node.
fn facts_of(verdict: &Verdict) -> NodeFacts {
    let measured = |id: CheckId, name: &str| {
        verdict.checks.iter().find(|check| check.id == id.as_str())?.measured.get(name).cloned()
    };
    let mut models: Vec<&str> = verdict
        .checks
        .iter()
        .flat_map(labels)
        .map(|label| model_of(label).map_or(label, |(name, _)| name))
        .collect();
    models.sort_unstable();
    models.dedup();
    NodeFacts {
        driver: measured(CheckId::Device, "driver"),
        gpu_count: measured(CheckId::Driver, "gpus").and_then(|count| count.parse().ok()),
        gpu_model: (!models.is_empty()).then(|| models.join(", ")),
        seconds: Some(verdict.seconds),
        ..NodeFacts::default()
    }
}

/// Of two that have one name, the newer report; two of one call are of two nodes that have one name.
fn one_of(first: Node, second: Node) -> Node {
    let is_same_call = !first.nonce.is_empty() && first.nonce == second.nonce;
    if is_same_call && first.facts.boot != second.facts.boot {
        let why = "two nodes gave a report with this name".to_owned();
        return Node { outcome: NodeOutcome::Silent(why), ..second };
    }
    let is_newer = match (first.time, second.time) {
        // Of two calls the later one counts, even if it came to nothing.
        (Some(before), Some(after)) if !is_same_call && before != after => after > before,
        _ => (second.outcome.weight(), second.time) >= (first.outcome.weight(), first.time),
    };
    let both = first.outcome.weight().min(second.outcome.weight()) == 2;
    let older = first.older + second.older + usize::from(both);
    let one = if is_newer { second } else { first };
    Node { older, ..one }
}

/// A boot or a GPU that two nodes report is one of theirs at most, and none says whose.
fn refuse_copies(nodes: &mut [Node]) {
    let mut owners: BTreeMap<(&'static str, String), BTreeSet<usize>> = BTreeMap::new();
    for (at, node) in nodes.iter().enumerate() {
        if let Some(boot) = &node.facts.boot {
            owners.entry(("boot", boot.clone())).or_default().insert(at);
        }
        for gpu in &node.facts.gpus {
            owners.entry(("GPU", gpu.uuid.clone())).or_default().insert(at);
        }
    }
    // Of several things in common the boot says most.
    for ((what, id), owners) in owners.into_iter().rev().filter(|(_, owners)| owners.len() > 1) {
        for at in &owners {
            let other = owners.iter().find(|other| *other != at).map_or("", |other| &nodes[*other].name);
            let why = format!("its report has the {what} {id} of `{other}`: one of them is not its own");
            nodes[*at].outcome = NodeOutcome::Silent(reason(&why));
        }
    }
}

fn rows(nodes: Vec<Node>, is_named: bool) -> Fleet {
    let reported: Vec<(usize, &NodeFacts, &Verdict)> = nodes
        .iter()
        .enumerate()
        .filter_map(|(at, node)| match &node.outcome {
            NodeOutcome::Reported(verdict) => Some((at, &node.facts, &**verdict)),
            NodeOutcome::Silent(_) | NodeOutcome::NotRun(_) => None,
        })
        .collect();
    let widespread = widespread(&reported.iter().map(|(.., verdict)| *verdict).collect::<Vec<_>>());
    let mut findings: BTreeMap<usize, Vec<Finding>> = BTreeMap::new();
    let mut find = |at: usize, finding| findings.entry(reported[at].0).or_default().push(finding);
    for slow in slow(&reported.iter().map(|(.., verdict)| *verdict).collect::<Vec<_>>()) {
        find(
            slow.node,
            Finding { state: NodeState::Slow, action: Action::Watch, text: slow.text, weight: slow.percent },
        );
    }
    for difference in differences(&reported.iter().map(|(_, facts, _)| *facts).collect::<Vec<_>>()) {
        // A node may well have fewer than others: a fault is only what its scheduler knows better.
        let facts = reported[difference.node].1;
        let is_missing = facts.gpu_count < facts.configured_gpus;
        let action = if difference.lacks_gpus && is_missing { Action::Drain } else { Action::Watch };
        find(
            difference.node,
            Finding { state: NodeState::Different, action, text: difference.text, weight: 0.0 },
        );
    }
    let mut rows: Vec<NodeRow> = nodes
        .into_iter()
        .enumerate()
        .map(|(at, node)| row(node, findings.remove(&at).unwrap_or_default(), &widespread))
        .collect();
    rows.sort_by(|one, other| (one.state, order(&one.node)).cmp(&(other.state, order(&other.node))));
    Fleet { rows, widespread, is_named }
}

/// A name in an order in which node2 comes before node10.
fn order(name: &str) -> (String, u64, &str) {
    let digits = name.len() - name.trim_end_matches(|last: char| last.is_ascii_digit()).len();
    let (stem, number) = name.split_at(name.len() - digits);
    (stem.to_owned(), number.parse().unwrap_or_default(), name)
}

/// The checks that fail on more than half of the nodes.
fn widespread(verdicts: &[&Verdict]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for verdict in verdicts {
        let failed: BTreeSet<&str> =
            verdict.checks.iter().filter(|check| check.is_bad()).map(|check| check.id.as_str()).collect();
        for id in failed {
            *counts.entry(id).or_default() += 1;
        }
    }
    let half = verdicts.len() / 2;
    counts.into_iter().filter(|(_, count)| *count > half).map(|(id, _)| id.to_owned()).collect()
}

/// Whether a check that fails says something of the host: the agent computes it with kernels of its own, and no code of the image decides.
fn is_of_host(id: &str) -> bool {
    use envforge_protocol::CheckGroup::{Driver, GemmOwn, Health, Memory};
    CheckId::parse(id).is_some_and(|id| [Driver, GemmOwn, Health, Memory].contains(&id.group()))
}

/// Something about a node that its own report does not show.
struct Finding {
    state: NodeState,
    action: Action,
    text: String,
    weight: f64,
}

fn row(node: Node, mut findings: Vec<Finding>, widespread: &[String]) -> NodeRow {
    findings.sort_by(|one, other| one.state.cmp(&other.state).then(other.weight.total_cmp(&one.weight)));
    let Node { name, facts, outcome, older, .. } = node;
    let (state, action, mut why, verdict) = match outcome {
        NodeOutcome::NotRun(why) => (NodeState::NotRun, Action::None, vec![why], None),
        NodeOutcome::Silent(why) => (NodeState::NoReport, Action::Watch, vec![why], None),
        NodeOutcome::Reported(verdict) => {
            let (state, action, why) = judged(&verdict, widespread);
            (state, action, why, Some(*verdict))
        }
    };
    let bad = verdict.iter().flat_map(|verdict| &verdict.checks).filter(|check| check.is_bad());
    let mut faults: Vec<String> =
        bad.map(|check| check.id.clone()).filter(|id| !widespread.contains(id) && is_of_host(id)).collect();
    // Of what is compared, missing GPUs alone are a fault.
    faults.extend(
        findings.iter().any(|finding| finding.action == Action::Drain).then(|| "gpu-count".to_owned()),
    );
    let state = findings.iter().map(|finding| finding.state).chain([state]).min().unwrap_or(state);
    let action = findings.iter().map(|finding| finding.action).chain([action]).min().unwrap_or(action);
    why.extend(findings.into_iter().map(|finding| reason(&finding.text)));
    if why.len() > MOST_REASONS {
        let more = why.len() - MOST_REASONS;
        why.truncate(MOST_REASONS);
        why.push(format!("{more} more"));
    }
    NodeRow { node: name, state, action, why, faults, facts, verdict, older }
}

/// The state of a report by itself.
fn judged(verdict: &Verdict, widespread: &[String]) -> (NodeState, Action, Vec<String>) {
    let bad: Vec<&Check> = verdict.checks.iter().filter(|check| check.is_bad()).collect();
    if !bad.is_empty() || verdict.verdict == VerdictStatus::Failed {
        let is_own = bad.iter().any(|check| !widespread.contains(&check.id) && is_of_host(&check.id));
        let action = if is_own { Action::Drain } else { Action::Watch };
        let mut why: Vec<String> =
            bad.iter().take(2).map(|check| reason(&format!("{}: {}", check.id, check.detail))).collect();
        if bad.len() > 2 {
            why.push(format!("{} more checks", bad.len() - 2));
        }
        return (NodeState::Failed, action, why);
    }
    match verdict.verdict {
        VerdictStatus::Undecided => {
            (NodeState::NotRun, Action::Watch, vec!["another program holds the GPU".to_owned()])
        }
        // It was asked, and shows nothing: a GPU that does not reach the container looks like that.
        VerdictStatus::StaticOnly if verdict.level != envforge_protocol::Level::Static.as_str() => {
            (NodeState::NoReport, Action::Watch, vec!["nothing ran on a GPU".to_owned()])
        }
        VerdictStatus::StaticOnly | VerdictStatus::Passed | VerdictStatus::Failed => {
            (NodeState::Ok, Action::Use, Vec::new())
        }
    }
}

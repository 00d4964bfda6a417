//! The answer for programs, as `verify --on` and `verify --merge` print it with `--json`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::drain::Drain;
use super::matrix::matrix;
use super::merge::Fleet;
use super::node_line::NodeGpu;
use super::row::{Action, NodeRow, NodeState};
use crate::failure::Exit;
use crate::model::verdict::{Check, VerdictStatus, outcome_word, speed::measured};

/// The object.
#[derive(Debug, Serialize)]
pub struct FleetReport<'a> {
    schema: u32,
    /// The image, if the call names one.
    image: Option<&'a str>,
    /// `passed`, `failed`, or `incomplete`: none failed, and one that was asked gave no report.
    verdict: &'static str,
    /// How many nodes are in each state.
    counts: BTreeMap<NodeState, usize>,
    /// The nodes, gravest first.
    nodes: Vec<NodeObject<'a>>,
    /// Each check that is not ok everywhere, with its outcome on groups of nodes alike.
    matrix: Vec<Row>,
    /// Checks that fail on more than half of the nodes.
    widespread: &'a [String],
    /// The commands that drain nodes, with `--drain`.
    drain: Vec<DrainCommand<'a>>,
    /// What was signed, with `--attest`: the image by its digest, and the key.
    attested: Option<&'a str>,
}

/// A node to drain.
#[derive(Debug, Serialize)]
struct DrainCommand<'a> {
    node: &'a str,
    command: [String; 5],
}

#[derive(Debug, Serialize)]
struct NodeObject<'a> {
    node: &'a str,
    state: NodeState,
    action: Action,
    why: &'a [String],
    host: Option<&'a str>,
    job: Option<&'a str>,
    boot_id: Option<&'a str>,
    kernel: Option<&'a str>,
    driver: Option<&'a str>,
    runtime: Option<&'a str>,
    agent: Option<&'a str>,
    gpu_count: Option<usize>,
    gpu_model: Option<&'a str>,
    gpus: &'a [NodeGpu],
    seconds: Option<f64>,
    /// The verdict of its report by itself; null: it gave none.
    verdict: Option<VerdictStatus>,
    /// Number of checks in its report.
    checks: usize,
    /// Those that are neither passed nor skipped for a reason that is allowed.
    findings: Vec<&'a Check>,
    /// Median speeds by name.
    speeds: BTreeMap<String, f64>,
    /// Reports of the node that a newer one replaced.
    older_reports: usize,
}

#[derive(Debug, Serialize)]
struct Row {
    check: String,
    outcomes: Vec<Outcome>,
}

#[derive(Debug, Serialize)]
struct Outcome {
    outcome: &'static str,
    nodes: Vec<String>,
}

impl<'a> FleetReport<'a> {
    /// The answer about an image.
    pub fn new(
        fleet: &'a Fleet,
        image: Option<&'a str>,
        (drains, attested): (&'a [Drain], Option<&'a str>),
    ) -> Self {
        let matrix = matrix(fleet);
        let rows = matrix.rows.iter().map(|(check, words)| {
            let mut by_word: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
            for (word, nodes) in words.iter().zip(&matrix.groups) {
                by_word.entry(word).or_default().extend(nodes.iter().cloned());
            }
            let outcomes = by_word.into_iter().map(|(outcome, nodes)| Outcome { outcome, nodes });
            Row { check: check.clone(), outcomes: outcomes.collect() }
        });
        Self {
            schema: 1,
            image,
            verdict: match fleet.exit() {
                Exit::No => "failed",
                Exit::Done => "passed",
                Exit::Usage | Exit::Outside | Exit::Interrupted => "incomplete",
            },
            counts: NodeState::ALL.iter().map(|state| (*state, fleet.count(*state))).collect(),
            nodes: fleet.rows.iter().map(node).collect(),
            matrix: rows.collect(),
            widespread: &fleet.widespread,
            drain: drains
                .iter()
                .map(|drain| DrainCommand { node: &drain.node, command: drain.command() })
                .collect(),
            attested,
        }
    }
}

fn node(row: &NodeRow) -> NodeObject<'_> {
    let facts = &row.facts;
    let checks = row.verdict.as_ref().map_or(&[][..], |verdict| &verdict.checks);
    let is_finding =
        |check: &&Check| check.is_bad() || ["warning", "error", "failed"].contains(&outcome_word(check));
    NodeObject {
        node: &row.node,
        state: row.state,
        action: row.action,
        why: &row.why,
        host: facts.host.as_deref(),
        job: facts.job.as_deref(),
        boot_id: facts.boot.as_deref(),
        kernel: facts.kernel.as_deref(),
        driver: facts.driver.as_deref(),
        runtime: facts.runtime.as_deref(),
        agent: facts.agent.as_deref(),
        gpu_count: facts.gpu_count,
        gpu_model: facts.gpu_model.as_deref(),
        gpus: &facts.gpus,
        seconds: facts.seconds,
        verdict: row.verdict.as_ref().map(|verdict| verdict.verdict),
        checks: checks.len(),
        findings: checks.iter().filter(is_finding).collect(),
        speeds: row.verdict.as_ref().map(measured).unwrap_or_default(),
        older_reports: row.older,
    }
}

//! The answer about many nodes: a row for each, bad ones first, and the checks by groups of nodes alike.

use std::collections::BTreeSet;

use serde::Serialize;

use super::document::Document;
use crate::failure::Exit;
use crate::fleet::{Fleet, NodeRow, NodeState, fold, matrix};

#[derive(Serialize)]
struct Page<'a> {
    image: Option<&'a str>,
    colour: &'static str,
    summary: String,
    widespread: &'a [String],
    words: BTreeSet<&'static str>,
    nodes: Vec<PageRow<'a>>,
    heads: Vec<Head>,
    checks: Vec<Check>,
}

#[derive(Serialize)]
struct PageRow<'a> {
    node: &'a str,
    word: &'static str,
    colour: &'static str,
    action: &'static str,
    gpu: Option<String>,
    driver: Option<&'a str>,
    why: &'a [String],
    seconds: Option<f64>,
    place: String,
}

#[derive(Serialize)]
struct Head {
    nodes: String,
    count: usize,
}

#[derive(Serialize)]
struct Check {
    id: String,
    outcomes: Vec<Cell>,
}

#[derive(Serialize)]
struct Cell {
    word: &'static str,
    colour: &'static str,
}

/// Returns the page of an answer about an image.
pub fn fleet_page(fleet: &Fleet, image: Option<&str>) -> String {
    let matrix = matrix(fleet);
    let counts: Vec<String> = NodeState::ALL
        .iter()
        .filter(|state| fleet.count(**state) > 0)
        .map(|state| format!("{} {}", fleet.count(*state), state.as_str()))
        .collect();
    let page = Page {
        image,
        colour: match fleet.exit() {
            Exit::Done => "good",
            Exit::No => "bad",
            Exit::Usage | Exit::Outside | Exit::Interrupted => "warn",
        },
        summary: format!("{} nodes: {}", fleet.rows.len(), counts.join(", ")),
        widespread: &fleet.widespread,
        words: fleet.rows.iter().map(|row| row.state.as_str()).collect(),
        nodes: fleet.rows.iter().map(node).collect(),
        heads: matrix
            .groups
            .iter()
            .map(|nodes| Head { nodes: fold(nodes.iter().map(String::as_str)), count: nodes.len() })
            .collect(),
        checks: matrix
            .rows
            .into_iter()
            .map(|(id, words)| Check { id, outcomes: words.into_iter().map(cell).collect() })
            .collect(),
    };
    let document = Document {
        template: "fleet.html.j2",
        title: "Nodes",
        source: "envforge verify --merge FILES --json",
    };
    document.write(&page)
}

fn cell(word: &'static str) -> Cell {
    let colour = match word {
        "failed" | "error" => "bad",
        "warning" => "warn",
        "ok" => "good",
        _ => "even",
    };
    Cell { word, colour }
}

fn node(row: &NodeRow) -> PageRow<'_> {
    let facts = &row.facts;
    let place =
        [("job", &facts.job), ("host", &facts.host), ("kernel", &facts.kernel), ("runtime", &facts.runtime)];
    let place: Vec<String> =
        place.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?))).collect();
    PageRow {
        node: &row.node,
        word: row.state.as_str(),
        colour: match row.state {
            NodeState::Failed => "bad",
            NodeState::NoReport | NodeState::Slow | NodeState::Different => "warn",
            NodeState::NotRun => "even",
            NodeState::Ok => "good",
        },
        action: row.action.as_str(),
        gpu: facts.gpu(),
        driver: facts.driver.as_deref(),
        why: &row.why,
        seconds: facts.seconds,
        place: place.join(", "),
    }
}

//! The answer for a terminal: bad nodes first, one screen, then the matrix.

use std::fmt::Write as _;

use super::hosts::fold;
use super::matrix::matrix;
use super::merge::Fleet;
use super::row::{Action, NodeRow, NodeState};
use super::table::aligned;
use crate::model::counted::counted;
use crate::model::visible::visible_line_within;

/// The most lines of nodes, and the most rows and columns of the matrix.
const MOST_LINES: usize = 14;
const MOST_CHECKS: usize = 8;
const MOST_GROUPS: usize = 5;
/// The most characters of a list of nodes: in a line, and above a column.
const LONGEST_LIST: usize = 36;
const LONGEST_HEAD: usize = 20;

/// One line: nodes of which the same is to be said.
struct Line<'a> {
    state: NodeState,
    action: Action,
    nodes: Vec<&'a str>,
    gpu: String,
    driver: String,
    why: String,
}

impl<'a> Line<'a> {
    fn of(row: &'a NodeRow) -> Self {
        // Nodes that are fit are one line, whatever they have.
        let is_fit = row.state == NodeState::Ok;
        let shown = |value: Option<String>| {
            value.filter(|_| !is_fit).map_or_else(String::new, |value| visible_line_within(&value, 40))
        };
        Self {
            state: row.state,
            action: row.action,
            nodes: vec![&row.node],
            gpu: shown(row.facts.gpu()),
            driver: shown(row.facts.driver.clone()),
            why: row.why.join("; "),
        }
    }

    fn says_the_same(&self, other: &Self) -> bool {
        let Self { state, action, gpu, driver, why, nodes: _ } = self;
        (state, action, gpu, driver, why)
            == (&other.state, &other.action, &other.gpu, &other.driver, &other.why)
    }
}

/// Returns the answer: a line for nodes of which the same is to be said, the matrix, a line of counts.
pub fn answer(fleet: &Fleet) -> String {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for row in &fleet.rows {
        let line = Line::of(row);
        // Rows are sorted by state, not by what is said of them.
        match lines.iter_mut().find(|known| known.says_the_same(&line)) {
            Some(known) => known.nodes.push(&row.node),
            None => lines.push(line),
        }
    }
    let ok = lines.iter().position(|line| line.state == NodeState::Ok).map(|at| lines.remove(at));
    let hidden = lines.split_off(lines.len().min(MOST_LINES));
    let mut text = table(&lines.iter().chain(&ok).collect::<Vec<_>>());
    if !hidden.is_empty() {
        let nodes: usize = hidden.iter().map(|line| line.nodes.len()).sum();
        let _ = writeln!(text, "and {} more (see --json or --html)", counted(nodes, "node"));
    }
    text += &matrix_text(fleet);
    for id in &fleet.widespread {
        let _ =
            writeln!(text, "{id} fails on more than half of the nodes: check the image and its lock first");
    }
    text + &counts(fleet)
}

/// The counts in one line.
fn counts(fleet: &Fleet) -> String {
    let counts: Vec<String> = NodeState::ALL
        .iter()
        .map(|state| (fleet.count(*state), state.as_str()))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let all = counted(fleet.rows.len(), "node");
    if counts.is_empty() { format!("{all}\n") } else { format!("{all}: {}\n", counts.join(", ")) }
}

fn table(lines: &[&Line<'_>]) -> String {
    let mut rows = vec![["STATE", "DO", "NODE", "GPU", "DRIVER", "WHY"].map(str::to_owned)];
    rows.extend(lines.iter().map(|line| {
        [
            line.state.as_str().to_owned(),
            line.action.as_str().to_owned(),
            list(&line.nodes, LONGEST_LIST),
            line.gpu.clone(),
            line.driver.clone(),
            line.why.clone(),
        ]
    }));
    aligned(&rows)
}

/// A folded list of nodes, shortened, with their number.
fn list(nodes: &[&str], longest: usize) -> String {
    let folded = fold(nodes.iter().copied());
    if folded.chars().count() <= longest {
        return folded;
    }
    format!("{} ({})", visible_line_within(&folded, longest.saturating_sub(6)), nodes.len())
}

fn matrix_text(fleet: &Fleet) -> String {
    let matrix = matrix(fleet);
    if matrix.rows.is_empty() {
        return String::new();
    }
    let shown = matrix.groups.len().min(MOST_GROUPS);
    let heads = matrix
        .groups
        .iter()
        .take(shown)
        .map(|nodes| list(&nodes.iter().map(String::as_str).collect::<Vec<_>>(), LONGEST_HEAD));
    let mut rows = vec![["CHECK".to_owned()].into_iter().chain(heads).collect::<Vec<_>>()];
    for (id, words) in matrix.rows.iter().take(MOST_CHECKS) {
        let words = words.iter().take(shown).map(|word| (*word).to_owned());
        rows.push([id.clone()].into_iter().chain(words).collect());
    }
    let mut text = String::from("\n") + &aligned(&rows);
    let (checks, groups) = (matrix.rows.len(), matrix.groups.len());
    if checks > MOST_CHECKS || groups > shown {
        let _ = writeln!(
            text,
            "({} and {} in all; see --json or --html)",
            counted(checks, "check"),
            counted(groups, "group")
        );
    }
    text + "\n"
}

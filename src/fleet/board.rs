//! How far every node is while they are asked: a table of one screen, and a line that names those that are outstanding.

use std::collections::BTreeMap;

use super::hosts::fold;
use super::node_line::Stage;
use super::table::aligned;
use crate::model::counted::counted;
use crate::model::visible::visible_line_within;

/// The most characters of a list of nodes.
const LONGEST_LIST: usize = 60;
/// The most nodes that have a line each, however large the screen is.
const MOST_ALONE: usize = 20;

/// How far a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// It waits until others are done.
    Waits,
    /// It was asked, and was not heard of.
    Asked,
    /// It is at a stage.
    At(Stage),
    /// It ended without a report that counts.
    Silent,
    /// It gave its report.
    Reported,
}

impl Progress {
    /// The words that are shown.
    pub fn text(self) -> &'static str {
        match self {
            Self::Waits => "waiting for others",
            Self::Asked => "asked, not heard of",
            Self::At(stage) => stage.text(),
            Self::Silent => "no report",
            Self::Reported => "report received",
        }
    }

    fn is_over(self) -> bool {
        matches!(self, Self::Silent | Self::Reported)
    }
}

/// All nodes of a call.
#[derive(Debug, Default)]
pub struct Board(BTreeMap<String, Node>);

#[derive(Debug)]
struct Node {
    progress: Progress,
    /// Seconds of the call at which it came there.
    since: u64,
}

impl Board {
    /// Sets how far a node is. Returns whether that is new: one that is over stays so.
    pub fn set(&mut self, node: &str, progress: Progress, now: u64) -> bool {
        let known = self.0.get(node).map(|node| node.progress);
        if known == Some(progress) || known.is_some_and(Progress::is_over) {
            return false;
        }
        self.0.insert(node.to_owned(), Node { progress, since: now });
        true
    }

    /// `5 of 8 nodes done; outstanding: node[4-6]`.
    pub fn summary(&self) -> String {
        let left: Vec<&str> =
            self.0.iter().filter(|(_, node)| !node.progress.is_over()).map(|(name, _)| &**name).collect();
        let done = self.0.len() - left.len();
        let outstanding = if left.is_empty() {
            String::new()
        } else {
            format!("; outstanding: {}", visible_line_within(&fold(left), LONGEST_LIST))
        };
        format!("{done} of {} done{outstanding}", counted(self.0.len(), "node"))
    }

    /// The table for so many lines: a line for each node, or for each state; what is outstanding first, and of that the oldest.
    pub fn lines(&self, most: usize, now: u64) -> Vec<String> {
        let mut groups: BTreeMap<(bool, Progress, u64, &str), Vec<&str>> = BTreeMap::new();
        let is_alone = self.0.len() < most.min(MOST_ALONE);
        for (name, Node { progress, since }) in &self.0 {
            let alone = if is_alone { (*since, &**name) } else { (0, "") };
            groups.entry((progress.is_over(), *progress, alone.0, alone.1)).or_default().push(name);
        }
        let heads: [&str; 3] = if is_alone { ["NODE", "STATE", "FOR"] } else { ["STATE", "COUNT", "NODES"] };
        let rows = groups.into_iter().map(|((is_over, progress, since, _), nodes)| {
            let state = progress.text().to_owned();
            if is_alone {
                let time = if is_over { String::new() } else { format!("{} s", now.saturating_sub(since)) };
                return [nodes.concat(), state, time];
            }
            let count = nodes.len().to_string();
            [state, count, visible_line_within(&fold(nodes), LONGEST_LIST)]
        });
        let rows: Vec<[String; 3]> = [heads.map(str::to_owned)].into_iter().chain(rows).collect();
        aligned(&rows).lines().take(most).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(nodes: &[(&str, Progress, u64)]) -> Board {
        let mut board = Board::default();
        for (name, progress, since) in nodes {
            assert!(board.set(name, *progress, *since));
        }
        board
    }

    #[test]
    fn few_nodes_have_a_line_each_and_the_outstanding_are_first() {
        let board = board(&[
            ("node1", Progress::Reported, 3),
            ("node2", Progress::At(Stage::Check), 5),
            ("node3", Progress::At(Stage::Check), 2),
            ("node4", Progress::Silent, 9),
            ("node5", Progress::Asked, 0),
        ]);
        assert_eq!(board.summary(), "2 of 5 nodes done; outstanding: node[2-3,5]");
        assert_eq!(
            board.lines(24, 12),
            [
                "NODE   STATE                FOR",
                "node5  asked, not heard of  12 s",
                "node3  running the checks   10 s",
                "node2  running the checks   7 s",
                "node4  no report",
                "node1  report received",
            ]
        );
    }

    #[test]
    fn many_nodes_have_a_line_for_each_state() {
        let mut board = Board::default();
        for number in 1..=400 {
            let progress = if number < 300 { Progress::Reported } else { Progress::At(Stage::Pull) };
            board.set(&format!("n{number}"), progress, number);
        }
        board.set("n400", Progress::At(Stage::Check), 9);
        let lines = board.lines(24, 500);
        assert_eq!(
            lines,
            [
                "STATE               COUNT  NODES",
                "fetching the image  100    n[300-399]",
                "running the checks  1      n400",
                "report received     299    n[1-299]",
            ]
        );
        assert_eq!(board.lines(2, 500), lines[..2], "never more than fit");
    }

    #[test]
    fn node_that_is_over_stays_so() {
        let mut board = board(&[("a", Progress::Reported, 0)]);
        assert!(!board.set("a", Progress::At(Stage::Pull), 1) && !board.set("a", Progress::Silent, 2));
        assert!(board.set("b", Progress::Waits, 0) && board.set("b", Progress::Asked, 0));
        assert!(!board.set("b", Progress::Asked, 5), "nothing new");
        assert_eq!(board.summary(), "1 of 2 nodes done; outstanding: b");
    }
}

//! What nodes printed, as it arrives: lines with or without the scheduler's label, cut into pieces or not.

use std::collections::BTreeMap;

use super::node_line::NodeLine;

/// The most bytes of one line of a node: ten megabytes that do not compress, in base64.
const LONGEST: usize = 15 << 20;

/// Puts the pieces of lines together. `srun --label` writes `RANK: ` before each piece of at most a kilobyte.
#[derive(Debug, Default)]
pub struct NodeLog {
    /// The line that each rank has begun.
    begun: BTreeMap<Option<usize>, String>,
}

impl NodeLog {
    /// Takes a line of the log; returns the lines of nodes that it completes, each with its rank.
    pub fn push(&mut self, line: &str) -> Vec<(Option<usize>, NodeLine)> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let (rank, text) = labelled(line);
        let mut found = Vec::new();
        if NodeLine::begins(text) {
            // A line that began before and does not end was cut.
            found.extend(self.cut(rank));
            self.begun.insert(rank, text.to_owned());
        } else if let Some(begun) = self.begun.get_mut(&rank) {
            if begun.len() + text.len() > LONGEST {
                found.extend(self.cut(rank));
                return found;
            }
            begun.push_str(text);
        }
        if self.begun.get(&rank).is_some_and(|begun| NodeLine::ends(begun)) {
            found.extend(self.cut(rank));
        }
        found
    }

    /// Returns the lines that began and did not end.
    pub fn finish(mut self) -> Vec<(Option<usize>, NodeLine)> {
        let ranks: Vec<_> = self.begun.keys().copied().collect();
        ranks.into_iter().filter_map(|rank| self.cut(rank)).collect()
    }

    fn cut(&mut self, rank: Option<usize>) -> Option<(Option<usize>, NodeLine)> {
        Some((rank, NodeLine::parse(&self.begun.remove(&rank)?)?))
    }
}

/// The rank of a line and its text.
fn labelled(line: &str) -> (Option<usize>, &str) {
    let labelled = line.split_once(": ").and_then(|(rank, text)| {
        let rank = rank.trim_start();
        let is_rank = (1..=6).contains(&rank.len()) && rank.bytes().all(|byte| byte.is_ascii_digit());
        Some((rank.parse().ok().filter(|_| is_rank)?, text))
    });
    labelled.map_or((None, line), |(rank, text)| (Some(rank), text))
}

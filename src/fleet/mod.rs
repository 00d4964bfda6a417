//! Reports of many nodes as one answer: which node is fit, which is not, and why.
//!
//! Pure: no process, no clock, no file. `hosts` folds and unfolds lists of nodes, `node_line` and `node_log` read what a node printed,
//! `merge` makes a row for each node, `entries` says what all prove of the image, `answer` and `matrix` show them; `board` shows how far they are.

mod answer;
mod answer_json;
mod board;
mod differences;
mod drain;
mod entries;
mod heard;
mod hosts;
mod matrix;
mod merge;
mod node_line;
mod node_log;
mod row;
mod sinfo;
mod slow;
mod table;
#[cfg(test)]
mod tests;
mod unit;

pub use answer::answer;
pub use answer_json::FleetReport;
pub use board::{Board, Progress};
pub use drain::{Drain, confirm, most_drained, suspects};
pub use entries::entries;
pub use heard::{Heard, Outcome};
pub use hosts::{HostListError, fold, is_host, unfold, unfold_logins};
pub use matrix::{Matrix, matrix};
pub use merge::{Fleet, merge};
pub use node_line::{NodeLine, NodeReport, Place, Stage};
pub use node_log::NodeLog;
pub use row::{Action, NodeRow, NodeState};
pub use sinfo::{Askable, SINFO_FORMAT, Selection, SlurmNode, idle_groups, read_sinfo, select};
pub use unit::verdicts;

//! What was heard of a node: a report, silence, or why it was not asked.

use crate::model::verdict::Verdict;

use super::node_line::{NodeReport, Stage};

/// What was heard of one node.
#[derive(Debug, Clone)]
pub struct Heard {
    /// The node that was asked; `None`: the report alone says whose it is.
    pub asked: Option<String>,
    /// The node where neither a call nor the report says it: the name of the file.
    pub source: String,
    /// How many GPUs its scheduler says that it has.
    pub gpus: Option<usize>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of one node.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The report of the launcher, with its verdict.
    Report(Box<NodeReport>, Box<Verdict>),
    /// The report of a `verify` on the node itself.
    Verdict(Box<Verdict>),
    /// It was asked and gave no report.
    Silent {
        /// How far it came.
        stage: Option<Stage>,
        /// The reason, in a few words.
        why: String,
    },
    /// It was not asked.
    NotRun {
        /// The reason, in a few words.
        why: String,
    },
}

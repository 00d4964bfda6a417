//! A node's row: its state, what to do with it, and why.

use serde::Serialize;

use super::node_line::NodeGpu;
use crate::model::verdict::Verdict;

/// The state of a node, gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeState {
    /// A check failed.
    Failed,
    /// It was asked, and there is no report that counts.
    NoReport,
    /// Slower than the others.
    Slow,
    /// Another driver, GPU, kernel or agent than most have.
    Different,
    /// It was not asked: drained, down, busy, refused.
    NotRun,
    /// Fit.
    Ok,
}

impl NodeState {
    /// Every state, gravest first.
    pub const ALL: [Self; 6] =
        [Self::Failed, Self::NoReport, Self::Slow, Self::Different, Self::NotRun, Self::Ok];

    /// The word that is shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::NoReport => "no report",
            Self::Slow => "slow",
            Self::Different => "different",
            Self::NotRun => "not run",
            Self::Ok => "ok",
        }
    }
}

/// What to do with a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Take it away from users.
    Drain,
    /// Look at it again.
    Watch,
    /// Use it.
    Use,
    /// Nothing: it was not asked.
    None,
}

impl Action {
    /// The word that is shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Watch => "watch",
            Self::Use => "use",
            Self::None => "",
        }
    }
}

/// One node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeRow {
    /// Its name.
    pub node: String,
    /// Its state.
    pub state: NodeState,
    /// What to do with it.
    pub action: Action,
    /// The reasons, gravest first.
    pub why: Vec<String>,
    /// Faults of the node itself: checks that fail here and not on most nodes, and `gpu-count` where GPUs are missing.
    pub faults: Vec<String>,
    /// What is known of it.
    pub facts: NodeFacts,
    /// Its verdict, if it gave a report.
    pub verdict: Option<Verdict>,
    /// Reports of it that a newer one replaced.
    pub older: usize,
}

/// What a report says of its node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeFacts {
    /// Host name.
    pub host: Option<String>,
    /// The scheduler's job.
    pub job: Option<String>,
    /// Id of the boot.
    pub boot: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Version of the driver.
    pub driver: Option<String>,
    /// The container runtime.
    pub runtime: Option<String>,
    /// SHA-256 of the agent.
    pub agent: Option<String>,
    /// Number of GPUs.
    pub gpu_count: Option<usize>,
    /// How many GPUs its scheduler says that it has.
    pub configured_gpus: Option<usize>,
    /// Models of the GPUs, each once, apart by commas.
    pub gpu_model: Option<String>,
    /// The GPUs, if the driver listed them.
    pub gpus: Vec<NodeGpu>,
    /// Seconds.
    pub seconds: Option<f64>,
}

impl NodeFacts {
    /// `8x NVIDIA H200`.
    pub fn gpu(&self) -> Option<String> {
        let (count, model) = (self.gpu_count?, self.gpu_model.as_deref().unwrap_or("GPU"));
        Some(format!("{count}x {}", model.trim_start_matches("NVIDIA ")))
    }

    /// Versions of the VBIOS, each once, apart by commas.
    pub(super) fn vbios(&self) -> Option<String> {
        let mut all: Vec<&str> = self.gpus.iter().map(|gpu| gpu.vbios.as_str()).collect();
        all.sort_unstable();
        all.dedup();
        (!all.is_empty()).then(|| all.join(","))
    }
}

//! Options of `verify` for many nodes.

use camino::Utf8PathBuf;
use clap::Args;

use crate::model::request::Nodes;

/// A week: no node takes longer.
const MOST_SECONDS: i64 = 7 * 24 * 60 * 60;

/// Options of `verify` for many nodes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Many nodes")]
pub struct FleetArgs {
    /// Verify IMAGE@sha256:…, or a .sqsh or .sif that nodes have, on nodes: `slurm`, `slurm:PARTITION`, `slurm:NODELIST`, `ssh:HOST,…` or `ssh:@FILE`.
    #[arg(long, value_name = "NODES", conflicts_with_all = ["gpus", "record", "push", "last"])]
    pub on: Option<Nodes>,
    /// Merge reports of nodes from files and directories: logs, and `verify --json` of a node.
    #[arg(long, value_name = "FILE|DIR", num_args = 1.., conflicts_with_all = ["images", "on", "level", "gpus", "record", "push", "attest", "last"])]
    pub merge: Vec<Utf8PathBuf>,
    /// Nodes at one time; with Slurm each gets a job of its own [default: one job for all; ssh: 32].
    #[arg(long, value_name = "N", requires = "on", value_parser = parallel)]
    pub parallel: Option<usize>,
    /// With Slurm: submit a job of low priority for each node, in use or not, and leave their reports in a shared directory.
    #[arg(long, value_name = "DIR", requires = "on", conflicts_with_all = ["parallel", "drain", "attest", "junit", "html"])]
    pub as_they_free: Option<Utf8PathBuf>,
    /// Seconds for the checks of a node [default: 1200; level full: 3600; perf: 7200].
    #[arg(long, value_name = "SECONDS", requires = "on", value_parser = clap::value_parser!(u32).range(1..=MOST_SECONDS))]
    pub deadline: Option<u32>,
    /// Seconds in which a node fetches the image [default: 1800].
    #[arg(long, value_name = "SECONDS", requires = "on", value_parser = clap::value_parser!(u32).range(1..=MOST_SECONDS))]
    pub pull_deadline: Option<u32>,
    /// With Slurm: ask nodes with a fault of their own again, and print the command that drains those where it is found twice.
    #[arg(long, requires = "on")]
    pub drain: bool,
    /// Run the commands of --drain.
    #[arg(long, requires = "drain")]
    pub yes: bool,
    /// Further options for srun, sbatch or ssh.
    #[arg(last = true, value_name = "OPTION", requires = "on", allow_hyphen_values = true)]
    pub words: Vec<String>,
}

fn parallel(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=10_000).contains(number));
    number.ok_or_else(|| "expected a number from 1 to 10000".to_owned())
}

into_request!(FleetArgs => FleetOptions { on, merge, parallel, as_they_free, deadline, pull_deadline, drain, yes, words });

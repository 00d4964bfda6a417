//! `envforge ps`, `stop` and `logs`.

use clap::Args;

const PS_EXAMPLES: &str = "\
Examples:
  envforge ps                 list running and exited containers
  envforge ps --watch         refresh every second
  envforge ps --json

Data comes from the engine; GPU memory and utilization from this machine's driver.";

const STOP_EXAMPLES: &str = "\
Examples:
  envforge stop               stop the containers of this project
  envforge stop run1          send SIGTERM, then SIGKILL after 10 seconds
  envforge stop run1 --time 60
  envforge stop --all         stop all your containers

Home directories and named volumes are kept.";

const LOGS_EXAMPLES: &str = "\
Examples:
  envforge logs run1
  envforge logs run1 --follow --tail 20

The engine keeps the last 30 MB.";

/// Arguments of `ps`.
#[derive(Debug, Clone, Args)]
#[command(after_help = PS_EXAMPLES)]
pub struct PsArgs {
    /// Refresh every second until Ctrl-C.
    #[arg(short, long)]
    pub watch: bool,
}

/// Arguments of `stop`.
#[derive(Debug, Clone, Args)]
#[command(after_help = STOP_EXAMPLES)]
pub struct StopArgs {
    /// Container names from `ps` [default: those of the current directory or project].
    #[arg(value_name = "NAME", conflicts_with = "all")]
    pub names: Vec<String>,
    /// Stop all your containers.
    #[arg(short, long)]
    pub all: bool,
    /// Seconds to wait before killing it.
    #[arg(short, long, value_name = "SECONDS", default_value = "10")]
    pub time: u16,
}

/// Arguments of `logs`.
#[derive(Debug, Clone, Args)]
#[command(after_help = LOGS_EXAMPLES)]
pub struct LogsArgs {
    /// Container name from `ps`.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Follow log output.
    #[arg(short, long)]
    pub follow: bool,
    /// Number of lines to show from the end.
    #[arg(short = 'n', long, value_name = "N")]
    pub tail: Option<u32>,
}

into_request!(PsArgs => Ps { watch });

into_request!(StopArgs => Stop { names, all, time });

into_request!(LogsArgs => Logs { name, follow, tail });

//! `envforge ps`, `stop` and `logs`.

use clap::Args;

const PS_EXAMPLES: &str = "\
Examples:
  envforge ps                 what runs, and what ended and was not stopped yet
  envforge ps --watch         the same, once a second
  envforge ps --json

All of it is read from the engine; memory and use of GPUs from this machine's driver.";

const STOP_EXAMPLES: &str = "\
Examples:
  envforge stop run1          end it: its command is asked to, and killed after 10 seconds
  envforge stop run1 --time 60
  envforge stop --all         all of yours

Home folders and named volumes stay.";

const LOGS_EXAMPLES: &str = "\
Examples:
  envforge logs run1
  envforge logs run1 --follow --tail 20

The last 30 MB are kept.";

/// Arguments of `ps`.
#[derive(Debug, Clone, Args)]
#[command(after_help = PS_EXAMPLES)]
pub struct PsArgs {
    /// Show it again every second until Ctrl-C.
    #[arg(short, long)]
    pub watch: bool,
}

/// Arguments of `stop`.
#[derive(Debug, Clone, Args)]
#[command(after_help = STOP_EXAMPLES)]
pub struct StopArgs {
    /// Names, as `ps` shows them.
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    pub names: Vec<String>,
    /// All containers that you started.
    #[arg(short, long)]
    pub all: bool,
    /// Seconds until it is killed.
    #[arg(short, long, value_name = "SECONDS", default_value = "10")]
    pub time: u16,
}

/// Arguments of `logs`.
#[derive(Debug, Clone, Args)]
#[command(after_help = LOGS_EXAMPLES)]
pub struct LogsArgs {
    /// The container's name, as `ps` shows it.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Go on as more comes.
    #[arg(short, long)]
    pub follow: bool,
    /// Only the last lines.
    #[arg(short = 'n', long, value_name = "N")]
    pub tail: Option<u32>,
}

into_request!(PsArgs => Ps { watch });

into_request!(StopArgs => Stop { names, all, time });

into_request!(LogsArgs => Logs { name, follow, tail });

//! `envforge doctor`.

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  envforge doctor                                  check the driver and the engine of this machine
  envforge doctor --explain \"no kernel image is available for execution on the device\"
  docker logs trainer 2>&1 | envforge doctor --explain -
  envforge doctor --explain slurm-4711.out
  envforge doctor --report > report.json           collect facts without secrets for a bug report";

/// Arguments of `doctor`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// Explain an error message of a container, daemon, driver or library, or a log file (`-`: read stdin).
    #[arg(long, value_name = "TEXT|FILE", conflicts_with = "report", allow_hyphen_values = true)]
    pub explain: Option<String>,
    /// Print all facts and findings as one JSON object, without addresses and credentials.
    #[arg(long)]
    pub report: bool,
}

into_request!(DoctorArgs => Doctor { explain, report });

//! `envforge doctor`.

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  envforge doctor                                  what this machine's driver and engine are fit for
  envforge doctor --explain \"could not select device driver\"
  docker logs trainer 2>&1 | envforge doctor --explain -
  envforge doctor --report > report.json           the facts, without secrets, for a bug report";

/// Arguments of `doctor`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// Explain a message of a container, daemon, driver or library; `-` reads it from stdin.
    #[arg(long, value_name = "TEXT", conflicts_with = "report", allow_hyphen_values = true)]
    pub explain: Option<String>,
    /// Print every fact with the findings as one JSON object; it holds no address and no credential.
    #[arg(long)]
    pub report: bool,
}

into_request!(DoctorArgs => Doctor { explain, report });

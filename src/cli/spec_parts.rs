//! The options that restrict a spec.

use clap::Args;

/// Parts of the spec.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Spec")]
pub struct SpecPartArgs {
    /// Restrict the spec to this CUDA, such as cu128 or 12.8.
    #[arg(long, value_name = "CUDA")]
    pub cuda: Option<String>,
    /// Restrict the spec to this Python, such as 3.11.
    #[arg(long, value_name = "VERSION")]
    pub python: Option<String>,
}

into_request!(SpecPartArgs => SpecParts { cuda, python });

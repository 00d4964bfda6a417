//! The options that choose a project file and one of its environments.

use camino::Utf8PathBuf;
use clap::Args;

/// Which project, and which of its environments.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Project")]
pub struct ProjectArgs {
    /// An environment of envforge.toml [default: what stands at its top].
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// The project's folder or file [default: envforge.toml here or in a folder above].
    #[arg(long, value_name = "PATH")]
    pub project: Option<Utf8PathBuf>,
}

into_request!(ProjectArgs => ProjectOptions { environment, project });

//! The options that choose a project file and one of its environments.

use camino::Utf8PathBuf;
use clap::Args;

/// The project and its environment.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Project")]
pub struct ProjectArgs {
    /// Environment from envforge.toml [default: its top-level keys].
    #[arg(short = 'E', long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Project directory or file [default: envforge.toml in the current or a parent directory].
    #[arg(long, value_name = "PATH")]
    pub project: Option<Utf8PathBuf>,
}

into_request!(ProjectArgs => ProjectOptions { environment, project });

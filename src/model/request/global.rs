//! Options that every verb takes.

use camino::Utf8PathBuf;

/// Options every command takes.
#[derive(Debug, Clone)]
pub struct GlobalOptions {
    /// Print one JSON object on stdout instead of text.
    pub json: bool,
    /// Say only what went wrong.
    pub quiet: bool,
    /// Show the output of every step, and decisions with their reasons (twice: traffic too).
    pub verbose: u8,
    /// No moving bars; plain lines.
    pub no_progress: bool,
    /// How progress is shown on stderr.
    pub progress: ProgressMode,
    /// The configuration file.
    pub config: Option<Utf8PathBuf>,
}

/// How `--progress` shows work on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressMode {
    /// Bars on a terminal, plain lines otherwise.
    Auto,
    /// Plain lines, one per step.
    Plain,
    /// One JSON object per event.
    Json,
}

//! How results and progress are shown.

use super::environment::Environment;
use super::variables;
use crate::model::request::{GlobalOptions, ProgressMode};
use crate::model::wrap::Width;

/// How results and progress are shown.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct Output {
    /// One JSON object on stdout.
    pub json: bool,
    /// Errors only.
    pub quiet: bool,
    /// 0, 1 (decisions, every check), 2 (traffic).
    pub verbose: u8,
    /// How progress is shown.
    pub progress: ProgressMode,
    /// Moving bars are allowed.
    pub bars: bool,
    /// Color is allowed.
    pub color: bool,
    /// Width of the lines on stdout.
    pub width: Width,
    /// Width of the lines on stderr.
    pub talk_width: Width,
}

/// The terminals of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terminals {
    /// Columns of the one that stdout is; `None`: a pipe or a file.
    pub stdout: Option<u16>,
    /// Columns of the one that stderr is; `None`: a pipe or a file.
    pub stderr: Option<u16>,
}

impl Output {
    /// Joins arguments and environment.
    pub(crate) fn of(args: &GlobalOptions, environment: &Environment, terminals: Terminals) -> Self {
        let width = |columns: Option<u16>| {
            columns.map_or(Width::UNLIMITED, |columns| Width::of_terminal(columns.into()))
        };
        let stderr_is_terminal = terminals.stderr.is_some();
        let dumb = variables::TERM.of(environment).is_some_and(|term| term == "dumb");
        let plain = args.no_progress && args.progress == ProgressMode::Auto;
        Self {
            json: args.json,
            quiet: args.quiet,
            verbose: args.verbose,
            progress: if plain { ProgressMode::Plain } else { args.progress },
            bars: stderr_is_terminal && !dumb && !args.no_progress && args.verbose == 0,
            color: stderr_is_terminal && !dumb && variables::NO_COLOR.of(environment).is_none(),
            width: width(terminals.stdout),
            talk_width: width(terminals.stderr),
        }
    }
}

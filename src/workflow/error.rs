//! The error of a step: whatever module's error ended it, with its exit code, hints and report.

use std::any::Any;

use crate::engine::EngineError;
use crate::failure::{Exit, Failure};
use crate::model::visible::{Bounds, visible_line_within, visible_within};
use crate::report::{Mark, Painted};
use crate::source_build::SourceError;

/// The most that is shown of an error, of each of its causes, and of each hint: they may hold the text of others.
const MOST: Bounds = Bounds { lines: 100, characters: 16_000 };
/// The most of a line of a step's output, characters.
const LONGEST_LINE: usize = 2_000;
/// The most causes that are shown.
const MOST_CAUSES: usize = 20;

fn shown(text: &str) -> String {
    visible_within(text, MOST)
}

/// Why a command did not do what was requested: the error of the module that ended it.
pub struct CommandError {
    failure: Box<dyn AnyFailure>,
    /// What the command knows of that the module does not.
    hints: Vec<String>,
}

/// A [`Failure`] that can be recognized by its type again.
trait AnyFailure: Failure + Any + Send + Sync {}

impl<E: Failure + Send + Sync + 'static> AnyFailure for E {}

impl<E: Failure + Send + Sync + 'static> From<E> for CommandError {
    fn from(error: E) -> Self {
        Self { failure: Box::new(error), hints: Vec::new() }
    }
}

impl std::fmt::Debug for CommandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.failure.fmt(f)
    }
}

impl std::fmt::Display for CommandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.failure, f)
    }
}

impl CommandError {
    /// The exit code of a command that ends with this error.
    pub fn exit(&self) -> Exit {
        self.failure.exit()
    }

    /// What the user can do about it, one imperative per line.
    pub fn hints(&self) -> Vec<String> {
        let mut hints = self.failure.hints();
        hints.extend(self.hints.iter().cloned());
        hints.dedup();
        hints
    }

    /// Adds what can be done without an engine, if none answers.
    #[must_use]
    pub(crate) fn or_without_engine(mut self, hint: &str) -> Self {
        let engine = self.downcast_ref::<EngineError>();
        if matches!(engine, Some(EngineError::Unreachable { .. } | EngineError::NoPermission { .. })) {
            self.hints.push(hint.to_owned());
        }
        self
    }

    /// The error itself, if it is of that type.
    pub fn downcast_ref<E: Failure + 'static>(&self) -> Option<&E> {
        let any: &dyn Any = &*self.failure;
        any.downcast_ref()
    }

    /// True if the user ended the command.
    pub fn is_interrupted(&self) -> bool {
        self.exit() == Exit::Interrupted
    }

    /// The complete message: the error, its causes, the output of a failed build, then the hints after a blank line.
    pub fn report(&self, color: bool) -> Painted {
        let mut said = shown(&self.to_string());
        let mut text = Painted::new(color).mark(Mark::Error).text(" ").text(&said);
        let mut cause = self.failure.source();
        for _ in 0..MOST_CAUSES {
            let Some(error) = cause else { break };
            let line = shown(&error.to_string());
            if !said.contains(&line) {
                text = text.text("\n  caused by: ").text(&line);
                said.push_str(&line);
            }
            cause = error.source();
        }
        // The engine keeps no more lines than these.
        for line in self.build_output() {
            text = text.text("\n  | ").text(&visible_line_within(line, LONGEST_LINE));
        }
        let hints = self.hints();
        if !hints.is_empty() {
            text = text.text("\n");
        }
        for hint in hints {
            text = text.text("\n").mark(Mark::Hint).text(" ").text(&shown(&hint));
        }
        text
    }

    /// The last lines of a failed build step.
    fn build_output(&self) -> &[String] {
        match (self.downcast_ref::<EngineError>(), self.downcast_ref::<SourceError>()) {
            (Some(EngineError::BuildFailed { output, .. }), _)
            | (_, Some(SourceError::Engine(EngineError::BuildFailed { output, .. }))) => output,
            _ => &[],
        }
    }
}

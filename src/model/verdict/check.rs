//! One check of a report, and the skips that do not bar a tag.

use std::collections::BTreeMap;

use envforge_protocol::{CheckId, Outcome, SkipReason, Stage, project_check};
use serde::{Deserialize, Serialize};

use super::by_name;
use crate::model::diagnosis::diagnose;
use crate::model::visible::visible_line_within;

/// The value that says what was mounted for a check.
const MOUNTED: &str = "mounted";

/// One check of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Id: `framework-cuda`.
    pub id: String,
    /// Stage: `static`, `gpu`, `perf` or `project`.
    pub stage: String,
    /// Whether an image gets no tag without it.
    #[serde(default)]
    pub required: bool,
    /// Result.
    #[serde(with = "by_name::outcome")]
    pub outcome: Outcome,
    /// The finding, or the problem.
    pub detail: String,
    /// Values found.
    #[serde(default)]
    pub measured: BTreeMap<String, String>,
    /// Values expected.
    #[serde(default)]
    pub expected: BTreeMap<String, String>,
    /// The fix.
    #[serde(default)]
    pub hint: Option<String>,
    /// The reason why it was skipped.
    #[serde(default, with = "by_name::skip", skip_serializing_if = "Option::is_none")]
    pub skip: Option<SkipReason>,
}

impl Check {
    /// Whether it bars a tag: failed, errored, or required and skipped.
    pub(crate) fn is_bad(&self) -> bool {
        match self.outcome {
            Outcome::Failed | Outcome::Errored => true,
            Outcome::Skipped => self.required && !is_allowed_skip(self) && !self.is_hindered(),
            Outcome::Passed => false,
        }
    }

    /// Whether the host kept the check from running on a GPU.
    pub(super) fn is_hindered(&self) -> bool {
        self.outcome == Outcome::Skipped && is_kernel_check(self) && self.skip == Some(SkipReason::HostBusy)
    }

    /// Makes the failure of a check that has never passed on a GPU itself a warning: the check may be wrong.
    pub(super) fn without_unproven_failure(mut self) -> Self {
        let is_bad = matches!(self.outcome, Outcome::Failed | Outcome::Errored);
        if is_bad && CheckId::parse(&self.id).is_some_and(CheckId::is_unproven) {
            self.outcome = Outcome::Skipped;
            self.skip = Some(SkipReason::Unproven);
            self.detail = format!("failed, and the check itself has never passed on a GPU: {}", self.detail);
            self.measured.insert("warning".to_owned(), "unproven check failed".to_owned());
        }
        self
    }

    /// Adds the diagnosis of the detail as hint, if there is no hint.
    pub(super) fn diagnosed(mut self) -> Self {
        if self.hint.is_none() && matches!(self.outcome, Outcome::Failed | Outcome::Errored) {
            self.hint = diagnose(&self.detail).map(|finding| finding.hint());
        }
        self
    }

    /// Creates the result of a project's own check from its command's exit code and last line of output.
    pub fn of_project(name: &str, code: i64, last: &str) -> Self {
        const SHOWN: usize = 200;
        let output = visible_line_within(last, SHOWN);
        let problems = match (code, output.as_str()) {
            (0, _) => Vec::new(),
            (code, "") => vec![format!("command exited with code {code}")],
            (code, output) => vec![format!("command exited with code {code}: {output}")],
        };
        let good = if output.is_empty() { "command succeeded" } else { &output };
        Self {
            stage: Stage::Project.to_string(),
            required: true,
            ..Self::made_here(&project_check(name), &problems, good)
        }
    }

    /// Says that the project's source was mounted for it: it is then no fact of the image.
    #[must_use]
    pub(crate) fn with_mounted_project(mut self) -> Self {
        self.measured.insert(MOUNTED.to_owned(), "project, read-only".to_owned());
        self
    }

    /// Says of a failure that the project's source was not there.
    #[must_use]
    pub(crate) fn without_project(mut self) -> Self {
        if self.outcome != Outcome::Passed {
            self.hint = Some(
                "if it imports the project's own code, run `envforge verify` in the project's directory"
                    .to_owned(),
            );
        }
        self
    }

    /// Whether it depends on files that are not in the image.
    pub(super) fn is_of_mounted_project(&self) -> bool {
        self.measured.contains_key(MOUNTED)
    }

    pub(super) fn made_here(id: &str, problems: &[String], good: &str) -> Self {
        let outcome = if problems.is_empty() { Outcome::Passed } else { Outcome::Failed };
        let detail = if problems.is_empty() { good.to_owned() } else { problems.join("; ") };
        let (measured, expected) = (BTreeMap::new(), BTreeMap::new());
        Self {
            id: id.into(),
            stage: Stage::Static.to_string(),
            required: false,
            outcome,
            detail,
            measured,
            expected,
            hint: None,
            skip: None,
        }
    }
}

/// Whether a check runs a kernel on a GPU.
pub fn is_kernel_check(check: &Check) -> bool {
    let on_gpu = matches!(Stage::parse(&check.stage), Some(Stage::Gpu | Stage::Perf));
    on_gpu && CheckId::parse(&check.id).is_none_or(CheckId::runs_kernel)
}

/// Whether a required check was skipped for a reason that does not bar a tag: the GPU lacks the capability, or there are
/// too few GPUs. A component that is not in the stack is not required in the first place.
pub fn is_allowed_skip(check: &Check) -> bool {
    check.outcome == Outcome::Skipped
        && is_kernel_check(check)
        && check.skip.is_some_and(SkipReason::is_allowed_for_tag)
}

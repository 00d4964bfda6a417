//! Rules about Python: the framework's wheels, the bases, and numpy's ABI.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::resolve::candidate::{Candidate, package};
use crate::resolve::refusal::RuleViolation;
use crate::resolve::rule::Rule;
use crate::versions::{FrameworkVersion, PythonVersion};

/// Runs of releases that a refusal names.
const RUNS: usize = 3;

/// Rejects a Python without a wheel of the framework.
pub(super) fn python_unsupported(candidate: &Candidate<'_>) -> Option<RuleViolation> {
    let variant = candidate.variant;
    let python = candidate.python;
    if variant.python.contains(&python) {
        return None;
    }
    let mut text = format!(
        "no wheel of {} {} for Python {python} is in the matrix; it has {}",
        package(candidate.product),
        variant.version,
        listed(&variant.python)
    );
    if variant.python_preview.contains(&python.to_string()) {
        text.push_str("; the framework's own index has a preview wheel without companions");
    } else if let Some(span) = releases_with(candidate, python) {
        write!(text, "; releases with Python {python}: {span}").expect("a String takes all");
    }
    Some(candidate.refuse(Rule::PythonUnsupported, text))
}

/// Returns the releases with a wheel for this Python: first and last of each run of consecutive ones, the newest runs.
fn releases_with(candidate: &Candidate<'_>, python: PythonVersion) -> Option<String> {
    let rows = candidate.question.matrix.variants.iter().filter(|row| {
        row.framework == candidate.variant.framework
            && row.machine == candidate.variant.machine
            && row.verified
    });
    let mut releases: BTreeMap<&FrameworkVersion, bool> = BTreeMap::new();
    for row in rows {
        *releases.entry(&row.version).or_default() |= row.python.contains(&python);
    }
    let all: Vec<_> = releases.into_iter().collect();
    let runs = all.chunk_by(|one, next| one.1 == next.1).filter(|run| run[0].1);
    let spans: Vec<_> = runs
        .map(|run| match run {
            [(only, _)] => only.to_string(),
            [(first, _), .., (last, _)] => format!("{first} to {last}"),
            [] => String::new(),
        })
        .collect();
    let newest = &spans[spans.len().saturating_sub(RUNS)..];
    (!newest.is_empty()).then(|| newest.join(", "))
}

/// Rejects a Python that no base has, or that the requested base does not have.
pub(super) fn no_base_for_python(candidate: &Candidate<'_>) -> Option<RuleViolation> {
    if candidate.base.is_some() {
        return None;
    }
    let matrix = candidate.question.matrix;
    let python = candidate.python;
    let mut bases: Vec<_> = matrix.bases.iter().collect();
    bases.sort_by(|a, b| (a.python, &a.name).cmp(&(b.python, &b.name)));
    let all: Vec<_> = bases.iter().map(|base| format!("{} ({})", base.name, base.python)).collect();
    let all = all.join(", ");
    let named = candidate.question.options.base.as_deref();
    let text = match (named, named.and_then(|name| matrix.base(name))) {
        (_, Some(base)) => {
            let others: Vec<_> =
                bases.iter().filter(|one| one.python == python).map(|one| one.name.as_str()).collect();
            let other = if others.is_empty() {
                String::new()
            } else {
                format!("; bases with Python {python}: {}", others.join(", "))
            };
            let text =
                format!("base {} has Python {}, but {python} is required{other}", base.name, base.python);
            return Some(RuleViolation::new(Rule::NoBaseForPython, text, &base.source));
        }
        (Some(name), None) => format!("unknown base `{name}`; known: {all}"),
        (None, None) => format!("no base has Python {python}; known: {all}"),
    };
    Some(RuleViolation::new(Rule::NoBaseForPython, text, &format!("bases of matrix {}", matrix.edition)))
}

/// Rejects a Python without a wheel of the numpy line that the binary requires.
pub(super) fn numpy_abi(candidate: &Candidate<'_>) -> Option<RuleViolation> {
    let matrix = candidate.question.matrix;
    let limit = matrix.numpy_limit_of(candidate.variant)?;
    let needed = limit.numpy.as_deref()?;
    let line = if needed == "<2" || needed.starts_with("<1.") { "1.x" } else { return None };
    let mut lines = matrix.stacks_of(candidate.python).peekable();
    if lines.peek().is_none() || lines.any(|stack| stack.numpy_line == line) {
        return None;
    }
    let text = format!(
        "{} requires numpy {needed} ({}), but Python {} has no numpy {line}",
        candidate.label(),
        limit.why,
        candidate.python
    );
    Some(RuleViolation::new(Rule::NumpyAbi, text, &limit.source))
}

/// `3.9, 3.10`.
fn listed(pythons: &[PythonVersion]) -> String {
    pythons.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

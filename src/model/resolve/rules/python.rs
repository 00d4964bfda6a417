//! Rules about Python: the framework's wheels, the bases, and numpy's ABI.

use std::fmt::Write as _;

use crate::model::resolve::candidate::{Candidate, package};
use crate::model::resolve::refusal::RuleViolation;
use crate::model::resolve::rule::Rule;
use crate::model::versions::PythonVersion;

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

/// Returns the first and last release with a wheel for this Python.
fn releases_with(candidate: &Candidate<'_>, python: PythonVersion) -> Option<String> {
    let rows = candidate.question.matrix.variants.iter().filter(|row| {
        row.framework == candidate.variant.framework
            && row.machine == candidate.variant.machine
            && row.verified
            && row.python.contains(&python)
    });
    let mut versions: Vec<_> = rows.map(|row| &row.version).collect();
    versions.sort_unstable();
    let (first, last) = (versions.first()?, versions.last()?);
    Some(if first == last { first.to_string() } else { format!("{first} to {last}") })
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
            let text = format!("base {} has Python {}, but {python} is required", base.name, base.python);
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

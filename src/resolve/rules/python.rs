//! Rules about Python: the framework's wheels, the bases that bring it, and numpy's ABI.

use std::fmt::Write as _;

use crate::resolve::candidate::{Candidate, package};
use crate::resolve::refusal::Refused;
use crate::resolve::rule::Rule;
use crate::versions::PythonVersion;

/// The framework has no wheel for this Python.
pub(super) fn python_unsupported(candidate: &Candidate<'_>) -> Option<Refused> {
    let variant = candidate.variant;
    let python = candidate.python;
    if variant.python.contains(&python) {
        return None;
    }
    let mut text = format!(
        "{} {} has no wheel for Python {python}: it has {}",
        package(candidate.product),
        variant.version,
        listed(&variant.python)
    );
    if variant.python_preview.contains(&python.to_string()) {
        text.push_str("; a preview wheel lies on the framework's own index, without its companions");
    } else if let Some(span) = releases_with(candidate, python) {
        write!(text, "; releases with Python {python}: {span}").expect("a String takes all");
    }
    Some(candidate.refuse(Rule::PythonUnsupported, text))
}

/// The first and last release with a wheel for this Python.
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

/// No base system brings this Python, or the named base does not.
pub(super) fn no_base_for_python(candidate: &Candidate<'_>) -> Option<Refused> {
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
            let text = format!("the base {} brings Python {}, not {python}", base.name, base.python);
            return Some(Refused::new(Rule::NoBaseForPython, text, &base.source));
        }
        (Some(name), None) => format!("no base is called `{name}`; known are {all}"),
        (None, None) => format!("no base system brings Python {python}; known are {all}"),
    };
    Some(Refused::new(Rule::NoBaseForPython, text, &format!("bases of matrix {}", matrix.edition)))
}

/// The binary needs a numpy line that this Python has no wheel of.
pub(super) fn numpy_abi(candidate: &Candidate<'_>) -> Option<Refused> {
    let matrix = candidate.question.matrix;
    let limit = matrix.numpy_limit(&candidate.variant.framework, &candidate.variant.version)?;
    let needed = limit.numpy.as_deref()?;
    let line = if needed == "<2" || needed.starts_with("<1.") { "1.x" } else { return None };
    let mut lines = matrix.stacks_of(candidate.python).peekable();
    if lines.peek().is_none() || lines.any(|stack| stack.numpy_line == line) {
        return None;
    }
    let text = format!(
        "{} needs numpy {needed} ({}), and Python {} has no numpy {line}",
        candidate.label(),
        limit.why,
        candidate.python
    );
    Some(Refused::new(Rule::NumpyAbi, text, &limit.source))
}

/// `3.9, 3.10`.
fn listed(pythons: &[PythonVersion]) -> String {
    pythons.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

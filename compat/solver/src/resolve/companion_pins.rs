//! Packages that the torch of a stack pins: Triton and NVIDIA's libraries. A requirement that leaves the accepted versions out
//! cannot be met, whatever the index has.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use pep440_rs::{Version, VersionSpecifiers};

use super::refusal::RuleViolation;
use super::rule::Rule;
use crate::matrix::Matrix;
use crate::matrix::tables::{Channel, Variant};
use crate::stack::Stack;
use crate::versions::ToolkitVersion;

/// Parts of a toolkit that every torch with CUDA wheels takes from one minor of CUDA.
const PARTS: [&str; 2] = ["runtime", "cublas"];

/// Returns the violation of a requirement that no version satisfies which the torch of the stack accepts.
pub(super) fn pin_violation(
    package: &str,
    versions: &str,
    stack: &Stack,
    matrix: &Matrix,
) -> Option<RuleViolation> {
    let (row, accepted) = pinned(package, stack, matrix)?;
    let wanted = VersionSpecifiers::from_str(versions).ok()?;
    let fits = |version: &String| Version::from_str(version).is_ok_and(|version| wanted.contains(&version));
    if accepted.is_empty() || accepted.iter().any(fits) {
        return None;
    }
    let accepted: Vec<_> = accepted.iter().map(String::as_str).collect();
    let text =
        format!("{package}{versions}: the torch of the stack accepts {package} {} only", accepted.join(", "));
    Some(RuleViolation::new(Rule::CompanionMismatch, text, &row.source))
}

/// Returns the row of the stack's torch and the versions of a package that it accepts; none: it does not pin the package.
fn pinned<'a>(package: &str, stack: &Stack, matrix: &'a Matrix) -> Option<(&'a Variant, BTreeSet<String>)> {
    // Thousands of other packages are asked about, each of which would read all rows.
    if package != "triton" && !package.starts_with("nvidia-") {
        return None;
    }
    // What torch holds as files of its own is required from nobody, and a build from source requires what its lock says.
    if !stack.shared.is_empty() || stack.channel == Channel::Source {
        return None;
    }
    let torch = match stack.package.as_str() {
        "torch" => stack.version.to_string(),
        _ => stack.companions.get("torch")?.clone(),
    };
    let row = matrix.variants.iter().find(|row| {
        let same = row.version.to_string() == torch && row.cuda == stack.cuda && row.machine == stack.machine;
        row.framework == "pytorch" && same
    })?;
    let major = stack.cuda.major;
    let one = |version: Option<String>| version.into_iter().collect();
    let accepted = if package == "triton" {
        one(stack.triton.clone())
    } else if package == format!("nvidia-cudnn-cu{major}") {
        one(row.cudnn.as_ref().map(ToString::to_string))
    } else if package == format!("nvidia-nccl-cu{major}") {
        one(row.nccl.as_ref().map(ToString::to_string))
    } else {
        of_minor(package, &row.toolkit, matrix)
    };
    Some((row, accepted))
}

/// Returns the versions of a library in the releases of one minor of CUDA.
fn of_minor(package: &str, toolkit: &ToolkitVersion, matrix: &Matrix) -> BTreeSet<String> {
    let same = |one: &&ToolkitVersion| one.major() == toolkit.major() && one.minor() == toolkit.minor();
    let releases = matrix.components.iter().map(|row| &row.cuda).filter(same);
    let part = |release| matrix.wheels_of(release, |wheel| PARTS.contains(&wheel.part.as_str()));
    releases.filter_map(part).filter_map(|wheels| wheels.get(package).cloned()).collect()
}

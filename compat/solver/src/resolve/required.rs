//! Requested packages of which the framework of a stack requires other versions, and requested frameworks that require another torch.

use std::collections::BTreeMap;
use std::str::FromStr as _;

use pep440_rs::{Version, VersionSpecifiers};

use super::refusal::RuleViolation;
use super::rule::Rule;
use crate::local_version::{cuda_major, without_local};
use crate::matrix::Matrix;
use crate::matrix::needs::FrameworkRequirement;
use crate::matrix::tables::NumpyLimit;
use crate::stack::Stack;
use crate::versions::FrameworkVersion;

/// What a stack requires of other packages, looked up once: thousands of requirements ask.
pub(super) struct Required<'a> {
    stack: &'a Stack,
    matrix: &'a Matrix,
    /// The releases that the stack installs: its toolkit's wheels, and packages beside the framework's own.
    pins: BTreeMap<String, String>,
    /// The rows about the framework's release.
    rows: Vec<&'a FrameworkRequirement>,
}

impl<'a> Required<'a> {
    pub(super) fn of(stack: &'a Stack, matrix: &'a Matrix) -> Self {
        let parts = stack.toolkit_wheels().into_iter();
        let parts = parts.map(|(name, version)| (name.to_owned(), version.to_owned()));
        let installed = stack.install.iter().filter_map(|one| {
            let (plain, _) = without_local(one);
            let (name, version) = plain.split_once("==")?;
            Some((name.to_owned(), version.to_owned()))
        });
        let rows = matrix.requirements.iter();
        let covers = |row: &&FrameworkRequirement| row.covers(&stack.version, stack.python, stack.machine);
        let own = rows.filter(|row| row.framework == stack.framework).filter(covers);
        Self { stack, matrix, pins: parts.chain(installed).collect(), rows: own.collect() }
    }

    /// Returns the versions of a package that the framework's release requires; `None`: nothing is known of it.
    pub(super) fn versions_of(&self, package: &str) -> Option<&'a str> {
        self.rows.iter().find_map(|row| row.versions_of(package))
    }

    /// Returns why no version of a package that is asked for is one that the stack requires; `None`: nothing is known against it.
    pub(super) fn violation(
        &self,
        typed: &str,
        package: &str,
        wanted: &VersionSpecifiers,
    ) -> Option<RuleViolation> {
        let Self { stack, matrix, .. } = *self;
        let no = |text: String, source: &str| Some(RuleViolation::new(Rule::CompanionMismatch, text, source));
        let edition = || format!("matrix {}", matrix.edition);
        let numpy = stack.numpy.as_deref().filter(|_| package == "numpy");
        if let Some(limit) = numpy.filter(|limit| excludes(limit, wanted)) {
            let text = format!("{typed}: {} {} works with numpy{limit}", stack.package, stack.version);
            // METADATA may allow more: the row says why it is wrong.
            return match self.numpy_limit() {
                Some(row) => no(format!("{text} ({})", row.why), &row.source),
                None => no(text, &edition()),
            };
        }
        if let Some(pin) = self.pins.get(package).filter(|pin| excludes(&format!("=={pin}"), wanted)) {
            return no(format!("{typed}: the stack pins {package} {pin}"), &edition());
        }
        // A library of another CUDA may lie beside those of the stack.
        let major = package.rsplit('-').next().and_then(cuda_major);
        if package.starts_with("nvidia-") && major.is_some_and(|major| major != stack.cuda.major) {
            return None;
        }
        let mut found = self.rows.iter().filter_map(|row| Some((row, row.versions_of(package)?)));
        let (row, versions) = found.find(|(_, versions)| excludes(versions, wanted))?;
        let why = row.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let label = format!("{} {}", stack.package, stack.version);
        no(format!("{typed}: {label} requires {package}{versions}{why}"), &row.source)
    }
}

impl Required<'_> {
    /// The row that limits the NumPy of the stack: of its framework, else of its torch.
    fn numpy_limit(&self) -> Option<&NumpyLimit> {
        let (stack, matrix) = (self.stack, self.matrix);
        let torch = || matrix.numpy_limit("pytorch", &stack.companions.get("torch")?.parse().ok()?);
        matrix.numpy_limit(&stack.framework, &stack.version).or_else(torch)
    }
}

/// Returns why a release of another framework does not go with the stack: it requires another release of what the stack has.
pub(super) fn requires_another(
    (typed, framework): (&str, &str),
    version: &FrameworkVersion,
    stack: &Stack,
    matrix: &Matrix,
) -> Option<RuleViolation> {
    let rows = matrix.requirements.iter();
    let covers = |row: &&FrameworkRequirement| row.covers(version, stack.python, stack.machine);
    let asked = rows.filter(|row| row.framework == framework).filter(covers);
    let own =
        std::iter::once((stack.package.clone(), stack.version.to_string())).chain(stack.companions.clone());
    let own: Vec<_> = own.collect();
    let all = asked.flat_map(|row| own.iter().map(move |(name, release)| (row, name, release)));
    let mut mismatches = all.filter_map(|(row, name, release)| {
        let versions = row.versions_of(name)?;
        let accepted = VersionSpecifiers::from_str(versions).ok()?;
        let release = Version::from_str(release).ok()?.without_local();
        (!accepted.contains(&release)).then(|| {
            let text = format!("{typed} requires {name}{versions}, the stack has {release}");
            RuleViolation::new(Rule::CompanionMismatch, text, &row.source)
        })
    });
    mismatches.next()
}

/// Whether no version is accepted and asked for, as far as the bounds of both tell.
fn excludes(accepted: &str, wanted: &VersionSpecifiers) -> bool {
    let Ok(accepted) = VersionSpecifiers::from_str(accepted) else { return false };
    if wanted.is_empty() {
        return false;
    }
    let bounds: Vec<_> = accepted.iter().chain(wanted.iter()).map(|one| one.version().clone()).collect();
    // What both allow begins with nothing, at a bound, or right behind one.
    let behind = bounds.iter().map(|bound| format!("{}.0.1", bound.clone().only_release()));
    let behind = behind.chain(["0".to_owned()]).filter_map(|text| Version::from_str(&text).ok());
    let mut all = bounds.iter().cloned().chain(behind);
    !all.any(|version| accepted.contains(&version) && wanted.contains(&version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versions::{Machine, PythonVersion};

    #[test]
    fn conditions_exclude_each_other_by_their_bounds() {
        for (accepted, wanted, expected) in [
            (">=1.22,<1.24", "==1.26.4", true),
            ("<2", ">=2", true),
            ("<2", ">=2.1,<3", true),
            (">=1.26.0,<2.0.0", "==2.1", true),
            ("==12.5.3.2", "==12.1.3.1", true),
            ("==12.5.3.2", ">=12.1", false),
            (">1.20,<1.24", "<1.23", false),
            ("<2", "<1.24", false),
            (">=1.22", "==1.26.*", false),
            (">=1.22,<2.3", "~=2.0", false),
            ("<2", "!=1.26.0", false),
            (">1.24.3", "<1.25", false),
            ("<2", "", false),
            ("not a condition", "==1", false),
        ] {
            let wanted = VersionSpecifiers::from_str(wanted).expect("a condition");
            assert_eq!(excludes(accepted, &wanted), expected, "{accepted} and {wanted}");
        }
    }

    #[test]
    fn requirement_of_one_processor_is_none_of_another() {
        let mut rows = Matrix::embedded().requirements.iter();
        let row = rows.find(|row| row.machine == Some(Machine::X86_64)).expect("the xformers of vLLM");
        let covers = |machine| row.covers(&row.first, PythonVersion { major: 3, minor: 11 }, machine);
        assert!(covers(Machine::X86_64) && !covers(Machine::Aarch64), "{row:?}");
    }

    #[test]
    fn every_requirement_of_the_matrix_is_read() {
        for row in &Matrix::embedded().requirements {
            for one in &row.requires {
                let name = one.find(['=', '<', '>', '!', '~']).expect("a condition");
                let versions = row.versions_of(&one[..name]).expect("the package");
                assert!(VersionSpecifiers::from_str(versions).is_ok(), "{one}");
            }
        }
    }
}

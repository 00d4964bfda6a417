//! Releases that nobody meant: pre-releases, and requested packages that are years behind.

use std::str::FromStr as _;

use jiff::civil::Date;
use pep440_rs::{Operator, Version};
use pep508_rs::{Requirement, VerbatimUrl, VersionOrUrl};

use super::question::{ListedReleases, Misfit, MisfitKind, Question};
use crate::model::local_version::without_local;

/// Days behind the newest release from which a requested package is told.
const OLD: i32 = 2 * 365;

impl ListedReleases {
    /// The newest release that is none before one, with its day, of those until a day.
    fn newest(&self, until: Option<&str>) -> Option<(Version, Date)> {
        let releases = self.0.iter().filter(|(_, day)| until.is_none_or(|until| day.as_str() <= until));
        let parsed = releases
            .filter_map(|(version, day)| Some((Version::from_str(version).ok()?, Date::from_str(day).ok()?)));
        parsed.filter(|(version, _)| !version.any_prerelease()).max()
    }

    /// The day of a release.
    fn day(&self, version: &str) -> Option<Date> {
        let wanted = Version::from_str(version).ok()?;
        let is_it = |other: &str| Version::from_str(other).is_ok_and(|other| other == wanted);
        let found = self.0.iter().find(|(other, _)| is_it(other));
        found.and_then(|(_, day)| Date::from_str(day).ok())
    }
}

pub(super) fn misfits(question: Question<'_>) -> Vec<Misfit> {
    let mut all: Vec<Misfit> = prereleases(question);
    all.extend(question.lock.added.python.iter().filter_map(|text| old(question, text)));
    all
}

/// Pre-releases that no requirement names.
fn prereleases(question: Question<'_>) -> Vec<Misfit> {
    let is_pre = |version: &str| Version::from_str(version).is_ok_and(|version| version.any_prerelease());
    let mut all = Vec::new();
    for wheel in question.added_wheels().filter(|wheel| is_pre(&wheel.version)) {
        let origin = question.lock.origin(&wheel.name, question.known.requirements, question.known.developer);
        let bounds = origin.map(|origin| origin.bounds).unwrap_or_default();
        if bounds.iter().any(|(text, _)| names_prerelease(text)) {
            continue;
        }
        let text = format!(
            "`{} {}`{} is a pre-release that no known requirement names",
            wheel.name,
            wheel.version,
            question.required_by(&wheel.name)
        );
        let packages = vec![wheel.name.clone()];
        all.push(Misfit::new(MisfitKind::PreRelease, packages, text, None));
    }
    all
}

fn names_prerelease(requirement: &str) -> bool {
    versions_of(requirement).iter().any(|(_, version)| version.any_prerelease())
}

/// The versions that a requirement names, with their operators.
fn versions_of(requirement: &str) -> Vec<(Operator, Version)> {
    let parsed = Requirement::<VerbatimUrl>::from_str(&without_local(requirement).0);
    match parsed.ok().and_then(|parsed| parsed.version_or_url) {
        Some(VersionOrUrl::VersionSpecifier(all)) => {
            all.iter().map(|one| (*one.operator(), one.version().clone())).collect()
        }
        _ => Vec::new(),
    }
}

/// A requested package that is years behind its newest release, unless its version was named.
fn old(question: Question<'_>, requirement: &str) -> Option<Misfit> {
    let parsed = Requirement::<VerbatimUrl>::from_str(&without_local(requirement).0).ok()?;
    let is_exact = |operator: Operator| {
        matches!(
            operator,
            Operator::Equal | Operator::ExactEqual | Operator::EqualStar | Operator::TildeEqual
        )
    };
    if versions_of(requirement).iter().any(|(operator, _)| is_exact(*operator)) {
        return None;
    }
    let name = parsed.name.to_string();
    let wheel = question.added_wheels().find(|wheel| wheel.name == name)?;
    let listed = question.known.listed.get(&name)?;
    let until = question.lock.added.as_of.as_deref().and_then(|moment| moment.get(..10));
    let (newest, of_newest) = listed.newest(until)?;
    let of_locked = listed.day(&wheel.version)?;
    let behind = of_locked.until(of_newest).ok()?.get_days();
    let mut products = question.known.matrix.products.iter();
    let own = products.find(|product| product.package.as_deref() == Some(name.as_str()));
    let own = own
        .map(|product| format!("; newer ones are for stacks of their own: `envforge plan {}`", product.name));
    let text = format!(
        "`{name} {}` is of {of_locked}, its newest release {newest} of {of_newest}: nothing newer fits, or has a wheel{}",
        wheel.version,
        own.unwrap_or_default()
    );
    (behind >= OLD).then(|| Misfit::new(MisfitKind::Old, vec![name], text, None))
}

//! Companions must not require each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use super::super::tables::{Matrix, Variant};
use super::fault::{Faults, Problem};

/// A release: package and version.
type Release<'a> = (&'a str, String);

/// Reports every variant whose companions lead back to itself.
pub(super) fn check(matrix: &Matrix, faults: &mut Faults) {
    let mut requires: BTreeMap<Release<'_>, BTreeSet<Release<'_>>> = BTreeMap::new();
    for variant in &matrix.variants {
        if let Some(package) = package(matrix, variant) {
            let companions =
                variant.companions.iter().map(|(name, version)| (name.as_str(), version.clone()));
            requires.entry((package, variant.version.to_string())).or_default().extend(companions);
        }
    }
    let mut reported = BTreeSet::new();
    for variant in &matrix.variants {
        let Some(package) = package(matrix, variant) else { continue };
        let start = (package, variant.version.to_string());
        if reaches(&requires, &start) && reported.insert(start) {
            faults.add(variant, Problem::Missing { wanted: "its companions require each other in a circle" });
        }
    }
}

fn package<'a>(matrix: &'a Matrix, variant: &Variant) -> Option<&'a str> {
    let product = matrix.products.iter().find(|product| product.framework == variant.framework)?;
    product.package.as_deref()
}

/// Whether the companions of a release lead back to it.
fn reaches<'a>(requires: &BTreeMap<Release<'a>, BTreeSet<Release<'a>>>, start: &Release<'a>) -> bool {
    let mut open: Vec<&Release<'a>> = requires.get(start).into_iter().flatten().collect();
    let mut seen = BTreeSet::new();
    while let Some(next) = open.pop() {
        if next == start {
            return true;
        }
        if seen.insert(next) {
            open.extend(requires.get(next).into_iter().flatten());
        }
    }
    false
}

//! Consistency of packages that are coupled to torch or to a CUDA release.

use super::super::coupled::{AbiClass, CoupledRelease, SourceRecipe, WheelPlace};
use super::super::tables::Matrix;
use super::fault::{Faults, Problem};
use crate::versions::FrameworkVersion;

/// Parts of a wheel's name that the program fills in.
const PLACEHOLDERS: [&str; 7] =
    ["{version}", "{cuda}", "{torch}", "{digits}", "{abi}", "{python}", "{machine}"];

pub(super) fn check(matrix: &Matrix, faults: &mut Faults) {
    for row in &matrix.coupled_packages {
        let named = row
            .package
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        faults.require(named, row, "normalized name", &row.package);
        if let Some(pages) = &row.pages {
            let filled =
                pages.starts_with("https://") && pages.contains("{torch}") && pages.contains("{cuda}");
            faults.require(filled, row, "address with {torch} and {cuda}", pages);
        }
        if row.trap.is_some() != row.instead.is_some() {
            faults.add(row, Problem::Missing { wanted: "`trap` and `instead` belong together" });
        }
    }
    for (at, row) in matrix.coupled_releases.iter().enumerate() {
        let known = matrix.coupled_packages.iter().any(|package| package.package == row.package);
        faults.require(known, row, "coupled_package", &row.package);
        if row.versions.is_empty() {
            faults.add(row, Problem::Empty { field: "versions" });
        }
        if let Some(other) = matrix.coupled_releases[..at].iter().find(|other| same_release(row, other)) {
            faults.contradiction(row, "a release".to_owned(), other, "the same release".to_owned());
        }
        torch(row, faults);
        cuda(row, faults);
        wheel(row, faults);
    }
    recipes(matrix, faults);
}

/// Checks that recipes are for published source distributions, and fill in what they name.
fn recipes(matrix: &Matrix, faults: &mut Faults) {
    for (at, row) in matrix.source_recipes.iter().enumerate() {
        if row.versions.is_empty() {
            faults.add(row, Problem::Empty { field: "versions" });
        }
        let published = |version: &&FrameworkVersion| {
            let here = |release: &&CoupledRelease| {
                release.package == row.package
                    && release.place == WheelPlace::Sdist
                    && release.versions.contains(version)
            };
            matrix.coupled_releases.iter().any(|release| here(&release))
        };
        for version in row.versions.iter().filter(|version| !published(version)) {
            faults.require(false, row, "source distribution", version);
        }
        let twice = |other: &&SourceRecipe| {
            other.package == row.package && row.versions.iter().any(|one| other.versions.contains(one))
        };
        if let Some(other) = matrix.source_recipes[..at].iter().find(twice) {
            faults.contradiction(row, "a release".to_owned(), other, "the same release".to_owned());
        }
        for (name, value) in &row.environment {
            let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
            faults.require(name.bytes().all(is_name), row, "name of a variable", name);
            let rest = value.replace("{families}", "");
            faults.require(!rest.contains(['{', '}']), row, "placeholder in", value);
        }
        let is_hash = |hash: &str| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        for hash in row.sha256.iter().filter(|hash| !is_hash(hash)) {
            faults.require(false, row, "SHA-256", hash);
        }
        if row.sha256.len() != row.versions.len() {
            faults.add(row, Problem::Missing { wanted: "`sha256` has one hash for each of `versions`" });
        }
    }
}

/// Whether two rows are about one release at one place, for the same torch and CUDA.
fn same_release(row: &CoupledRelease, other: &CoupledRelease) -> bool {
    let common = row.versions.iter().any(|version| other.versions.contains(version));
    let torch = row.loads.is_empty() || row.loads.iter().any(|torch| other.loads.contains(torch));
    let page = row.place == WheelPlace::Page;
    row.package == other.package && row.place == other.place && common && (!page || torch)
}

/// Checks that the requirement on torch and the torch it was built for agree.
fn torch(row: &CoupledRelease, faults: &mut Faults) {
    let Some(wanted) = &row.torch else {
        if row.place != WheelPlace::Sdist && row.abi == AbiClass::Pinned && row.loads.is_empty() {
            faults.add(
                row,
                Problem::Missing { wanted: "a pinned release names its torch: `torch` or `loads`" },
            );
        }
        return;
    };
    let pinned =
        wanted.strip_prefix("==").map(|text| text.trim_end_matches(".*").parse::<FrameworkVersion>());
    match pinned {
        Some(Ok(pinned)) => {
            let reached = |torch: &FrameworkVersion| torch.starts_with(&pinned) || pinned.starts_with(torch);
            if !row.loads.is_empty() && !row.loads.iter().any(reached) {
                let built: Vec<_> = row.loads.iter().map(ToString::to_string).collect();
                let says = format!("built for torch {}", built.join(", "));
                faults.contradiction(row, says, row, format!("requires torch{wanted}"));
            }
        }
        Some(Err(_)) => faults.unknown(row, "version in requirement", wanted),
        None if row.abi == AbiClass::Pinned => {
            faults.contradiction(row, "ABI class pinned".to_owned(), row, format!("requires torch{wanted}"));
        }
        None => {
            let bounded = wanted.starts_with(['<', '>', '~', '!', '=']);
            faults.require(bounded, row, "requirement on torch", wanted);
        }
    }
}

/// Checks that the linked CUDA is one of those it has files for.
fn cuda(row: &CoupledRelease, faults: &mut Faults) {
    if let Some(major) = row.cuda_major
        && !row.cuda.is_empty()
        && !row.cuda.iter().any(|tag| tag.major == major)
    {
        let tags: Vec<_> = row.cuda.iter().map(ToString::to_string).collect();
        faults.contradiction(
            row,
            format!("links CUDA {major}"),
            row,
            format!("files for {}", tags.join(", ")),
        );
    }
}

/// Checks that the name of a page's wheel tells the torch that it was built for.
fn wheel(row: &CoupledRelease, faults: &mut Faults) {
    let Some(pattern) = &row.wheel else { return };
    let rest = PLACEHOLDERS.iter().fold(pattern.clone(), |rest, name| rest.replace(name, ""));
    faults.require(!rest.contains(['{', '}']), row, "placeholder in", pattern);
    let tells = pattern.contains("{torch}") || pattern.contains("{digits}");
    faults.require(tells || row.loads.is_empty(), row, "torch in the name of the wheel", pattern);
    faults.require(row.at.is_some(), row, "page of the wheel", pattern);
}

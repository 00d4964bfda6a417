//! The packages of a minimal system: essential, required and apt, with everything they depend on.
//!
//! Owns the selection. Uses names only: within one release every version constraint holds, and dpkg checks again.
//! Everything above the base is resolved by apt inside it.

use std::collections::{BTreeMap, VecDeque};

use super::packages::{Package, PackageIndex};
use crate::model::lock::LockedDeb;

/// Selected in addition to essential and required packages, if the suite has them. `usr-is-merged` satisfies
/// `usrmerge | usr-is-merged` without perl: the base is merged from the first file on.
const ALSO_WANTED: [&str; 3] = ["apt", "debian-archive-keyring", "usr-is-merged"];

/// A dependency that no package satisfies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnmetDependency {
    /// The required alternatives: `awk`, or `gpgv | gpgv2`.
    pub(crate) wanted: String,
    /// The package that requires it.
    pub(crate) needed_by: String,
}

/// Returns the closure, sorted by name. The same index gives the same list, regardless of the order of its stanzas.
pub(crate) fn base_closure(index: &PackageIndex) -> Result<Vec<LockedDeb>, UnmetDependency> {
    let mut chosen: BTreeMap<&str, &Package> = BTreeMap::new();
    let mut open: VecDeque<&Package> = VecDeque::new();
    let wanted = |package: &&Package| {
        package.essential || package.required || ALSO_WANTED.contains(&package.deb.name.as_str())
    };
    for package in index.all().filter(wanted) {
        chosen.insert(&package.deb.name, package);
        open.push_back(package);
    }
    while let Some(package) = open.pop_front() {
        for alternatives in package.needs() {
            if alternatives.iter().any(|name| is_satisfied(name, &chosen, index)) {
                continue;
            }
            let Some(found) = alternatives.iter().find_map(|name| first_candidate(name, index)) else {
                return Err(UnmetDependency {
                    wanted: alternatives.join(" | "),
                    needed_by: package.deb.name.clone(),
                });
            };
            chosen.insert(&found.deb.name, found);
            open.push_back(found);
        }
    }
    Ok(chosen.into_values().map(|package| package.deb.clone()).collect())
}

fn is_satisfied(name: &str, chosen: &BTreeMap<&str, &Package>, index: &PackageIndex) -> bool {
    chosen.contains_key(name) || index.providers(name).iter().any(|p| chosen.contains_key(p.as_str()))
}

/// Returns the package itself, else the first provider by name.
fn first_candidate<'a>(name: &str, index: &'a PackageIndex) -> Option<&'a Package> {
    index.package(name).or_else(|| index.package(index.providers(name).first()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(packages: &[(&str, &str)]) -> PackageIndex {
        let mut index = PackageIndex::default();
        for (name, fields) in packages {
            let hash = "cd".repeat(32);
            index.add(&format!(
                "Package: {name}\nVersion: 1\nArchitecture: all\nFilename: pool/{name}.deb\nSize: 1\nSHA256: {hash}\n{fields}\n"
            ));
        }
        index
    }

    fn names(index: &PackageIndex) -> Vec<String> {
        base_closure(index).expect("closure").into_iter().map(|deb| deb.name).collect()
    }

    #[test]
    fn closure_contains_only_required_packages() {
        let index = index(&[
            ("apt", "Priority: important\nDepends: gpgv | gpgv2"),
            ("base-files", "Essential: yes\nPre-Depends: awk"),
            ("gpgv", "Depends: libc6"),
            ("gpgv2", ""),
            ("libc6", ""),
            ("mawk", "Priority: required\nProvides: awk\nDepends: libc6"),
            ("gawk", "Provides: awk"),
            ("vim", "Depends: libc6"),
        ]);
        assert_eq!(names(&index), ["apt", "base-files", "gpgv", "libc6", "mawk"]);
    }

    #[test]
    fn cycles_end() {
        let index = index(&[("libc6", "Essential: yes\nDepends: libgcc"), ("libgcc", "Depends: libc6")]);
        assert_eq!(names(&index), ["libc6", "libgcc"]);
    }

    #[test]
    fn selects_first_existing_alternative_and_first_provider() {
        let index = index(&[
            ("a", "Essential: yes\nDepends: absent | second | third, mail-agent"),
            ("second", ""),
            ("third", ""),
            ("zmail", "Provides: mail-agent"),
            ("amail", "Provides: mail-agent"),
        ]);
        assert_eq!(names(&index), ["a", "amail", "second"]);
    }

    #[test]
    fn a_merged_system_needs_no_usrmerge() {
        let index = index(&[
            ("init-system-helpers", "Essential: yes\nDepends: usrmerge | usr-is-merged"),
            ("usrmerge", "Depends: perl"),
            ("perl", ""),
            ("usr-is-merged", ""),
        ]);
        assert_eq!(names(&index), ["init-system-helpers", "usr-is-merged"]);
    }

    #[test]
    fn unmet_dependency_is_reported_with_its_package() {
        let index = index(&[("a", "Essential: yes\nDepends: x | y")]);
        let missing = base_closure(&index).expect_err("missing");
        assert_eq!(missing, UnmetDependency { wanted: "x | y".to_owned(), needed_by: "a".to_owned() });
    }
}

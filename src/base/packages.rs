//! The package index of a suite: the newest version of each package, and the providers of virtual ones.
//!
//! Owns reading `Packages` files. Must not fetch them nor trust them: they were checked before.

use std::collections::BTreeMap;

use super::deb822::stanzas;
use super::version;
use crate::model::lock::LockedDeb;
use crate::model::sha256::is_sha256_hex;

/// One package of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    /// Returns its entry in the lock file.
    pub(crate) deb: LockedDeb,
    /// Whether `Essential: yes`.
    pub(crate) essential: bool,
    /// Whether `Priority: required`.
    pub(crate) required: bool,
    /// Pre-Depends and Depends, unparsed: few of an index are used.
    relations: String,
    /// Virtual packages it provides.
    pub(crate) provides: Vec<String>,
}

impl Package {
    /// Returns its Pre-Depends and Depends: each a list of alternatives, by name.
    pub(crate) fn needs(&self) -> impl Iterator<Item = Vec<String>> {
        relations(&self.relations)
    }
}

/// The newest of every package of one or several indexes.
#[derive(Debug, Clone, Default)]
pub(crate) struct PackageIndex {
    packages: BTreeMap<String, Package>,
    providers: BTreeMap<String, Vec<String>>,
}

impl PackageIndex {
    /// Adds the packages of a `Packages` file. A package that is there already is replaced by a newer one only.
    pub(crate) fn add(&mut self, text: &str) {
        for stanza in stanzas(text) {
            let field = |name| stanza.field(name).unwrap_or_default();
            let (name, version) = (field("Package"), field("Version"));
            let newer = self
                .packages
                .get(name)
                .is_none_or(|known| version::compare(version, &known.deb.version).is_gt());
            // An index without hash or path names nothing that could be checked and fetched.
            if !newer || !is_sha256_hex(field("SHA256")) || !is_below(field("Filename")) {
                continue;
            }
            let deb = LockedDeb {
                name: name.to_owned(),
                version: version.to_owned(),
                architecture: field("Architecture").to_owned(),
                sha256: field("SHA256").to_owned(),
                size: field("Size").parse().unwrap_or(0),
                path: field("Filename").to_owned(),
            };
            let needs = [field("Pre-Depends"), field("Depends")].join(",");
            let provides = relations(field("Provides")).flatten().collect();
            let (essential, required) = (field("Essential") == "yes", field("Priority") == "required");
            self.packages
                .insert(name.to_owned(), Package { deb, essential, required, relations: needs, provides });
        }
        self.providers.clear();
        for (name, package) in &self.packages {
            for virtual_name in &package.provides {
                self.providers.entry(virtual_name.clone()).or_default().push(name.clone());
            }
        }
    }

    /// Returns the package of that name.
    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.get(name)
    }

    /// Returns the sorted names of the packages that provide a virtual one.
    pub(crate) fn providers(&self, name: &str) -> &[String] {
        self.providers.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns all packages, by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Package> {
        self.packages.values()
    }
}

/// Whether it is a path that stays below the mirror's root.
fn is_below(path: &str) -> bool {
    !path.is_empty() && !path.starts_with('/') && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Returns the relations of a field, each with its alternatives, by name only: `a (>= 1) | b:any` gives `a`, `b`.
fn relations(field: &str) -> impl Iterator<Item = Vec<String>> {
    field.split(',').map(alternatives).filter(|alternatives| !alternatives.is_empty())
}

fn alternatives(relation: &str) -> Vec<String> {
    relation
        .split('|')
        .filter_map(|alternative| alternative.split(['(', '[', '<', ':']).next())
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stanza(name: &str, version: &str, more: &str) -> String {
        format!(
            "Package: {name}\nVersion: {version}\nArchitecture: amd64\nFilename: pool/{name}_{version}.deb\n\
             Size: 7\nSHA256: {}\n{more}\n",
            "ab".repeat(32)
        )
    }

    #[test]
    fn a_package_is_read_with_its_relations() {
        let mut index = PackageIndex::default();
        index.add(&stanza(
            "apt",
            "2.6.1",
            "Priority: required\nPre-Depends: libc6 (>= 2.34)\nDepends: gpgv | gpgv2:any,\n perl [amd64]\nProvides: apt-transport-https (= 2.6.1)\n",
        ));
        let apt = index.package("apt").expect("apt");
        assert!(apt.required && !apt.essential);
        assert_eq!(apt.needs().collect::<Vec<_>>(), [vec!["libc6"], vec!["gpgv", "gpgv2"], vec!["perl"]]);
        assert_eq!(index.providers("apt-transport-https"), ["apt"]);
        assert_eq!((apt.deb.size, apt.deb.path.as_str()), (7, "pool/apt_2.6.1.deb"));
    }

    #[test]
    fn newest_version_wins_regardless_of_index_order() {
        let (old, new) = (stanza("tar", "1.34-1", ""), stanza("tar", "1.34-1+deb12u1", ""));
        for order in [[&old, &new], [&new, &old]] {
            let mut index = PackageIndex::default();
            for text in order {
                index.add(text);
            }
            assert_eq!(index.package("tar").expect("tar").deb.version, "1.34-1+deb12u1");
        }
    }

    #[test]
    fn skips_package_without_hash_or_with_path_outside_mirror() {
        let mut index = PackageIndex::default();
        index.add(&stanza("evil", "1", "").replace("pool/", "../"));
        index.add(&stanza("bare", "1", "").replace("SHA256", "MD5sum"));
        assert_eq!(index.all().count(), 0);
    }
}

//! dpkg's status: the installed packages of a base, with their versions.

use std::collections::BTreeMap;

use super::deb822::stanzas;

/// The file, in every base.
pub(crate) const STATUS: &str = "/var/lib/dpkg/status";

/// Versions of the installed packages, by name.
pub(crate) struct Installed<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Installed<'a> {
    /// Of dpkg's status.
    pub(crate) fn parse(status: &'a str) -> Self {
        let installed = stanzas(status).filter_map(|stanza| {
            let is_installed = stanza.field("Status").is_some_and(|status| status.ends_with(" installed"));
            stanza.field("Package").zip(stanza.field("Version")).filter(|_| is_installed)
        });
        Self(installed.collect())
    }

    /// The version of a package, as dpkg has it.
    pub(crate) fn version(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied()
    }

    /// The names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.0.keys().copied()
    }
}

/// The upstream version of a package's version, without epoch, revision and what distributions append: `3.11.2` of `3.11.2-6+deb12u6`,
/// `3.13.0rc2` of `3.13.0~rc2-1`.
pub(crate) fn upstream(version: &str) -> String {
    let version = version.split_once(':').map_or(version, |(_, version)| version);
    let version = version.rsplit_once('-').map_or(version, |(version, _)| version);
    let version = version.split('+').next().unwrap_or_default();
    version.replace('~', "")
}

/// The first two numbers of a package's version: `2.36` of `2.36-9+deb12u10`.
pub(crate) fn major_minor(version: &str) -> String {
    let version = version.split_once(':').map_or(version, |(_, version)| version);
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    version[..end].split('.').take(2).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_installed_packages_count() {
        let status = "Package: libc6\nStatus: install ok installed\nVersion: 2.36-9\n\n\
            Package: vim\nStatus: deinstall ok config-files\nVersion: 2:9.0\n";
        let installed = Installed::parse(status);
        assert_eq!((installed.version("libc6"), installed.version("vim")), (Some("2.36-9"), None));
        assert_eq!(installed.names().collect::<Vec<_>>(), ["libc6"]);
    }

    #[test]
    fn upstream_version_has_no_epoch_revision_or_suffix() {
        for (version, wanted) in [
            ("3.11.2-6+deb12u6", "3.11.2"),
            ("3.10.12-1~22.04.11", "3.10.12"),
            ("3.8.10-0ubuntu1~20.04.18", "3.8.10"),
            ("3.13.0~rc2-1", "3.13.0rc2"),
            ("3.12.3-1ubuntu0.5", "3.12.3"),
            ("1:3.9.2+dfsg-1", "3.9.2"),
            ("3.9.2", "3.9.2"),
        ] {
            assert_eq!(upstream(version), wanted, "{version}");
        }
        for (version, wanted) in [("2.36-9+deb12u10", "2.36"), ("1:2.35", "2.35"), ("x", "")] {
            assert_eq!(major_minor(version), wanted, "{version}");
        }
    }
}

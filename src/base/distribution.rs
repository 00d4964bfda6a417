//! The distributions whose suites are built from packages: their suites, their keys, and what differs in their archives.
//!
//! Pure. Which base has which suite is in `compat/bases.toml`.

use super::signature::Keyring;
use super::signature_error::SignatureError;

/// A distribution whose keys this program carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// Debian.
    Debian,
    /// Ubuntu.
    Ubuntu,
}

impl Distribution {
    /// Returns the distribution of a suite that can be built from packages.
    pub fn of(suite: &str) -> Option<Self> {
        match suite {
            "bullseye" | "bookworm" | "trixie" => Some(Self::Debian),
            "jammy" | "noble" => Some(Self::Ubuntu),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Debian => "Debian",
            Self::Ubuntu => "Ubuntu",
        }
    }

    /// Its keys, as this program carries them.
    pub fn keyring(self) -> Result<Keyring, SignatureError> {
        match self {
            Self::Debian => Keyring::debian(),
            Self::Ubuntu => Keyring::ubuntu(),
        }
    }

    /// Whether a suite is one of its releases, whose archive has the others, too.
    pub(super) fn has_release(self, suite: &str) -> bool {
        let releases: &[&str] = match self {
            Self::Debian => {
                &["bullseye", "bookworm", "trixie", "forky", "sid", "stable", "oldstable", "testing"]
            }
            Self::Ubuntu => &["jammy", "noble", "questing", "resolute", "devel"],
        };
        releases.contains(&suite)
    }

    /// Whether a server is one of the distribution's, by name: anybody can publish at others below their domains.
    pub(crate) fn has_server(host: &str) -> bool {
        let own = [
            "deb.debian.org",
            "security.debian.org",
            "snapshot.debian.org",
            "security.ubuntu.com",
            "ports.ubuntu.com",
        ];
        let mirror = |start: &str, end: &str| {
            let middle = host.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
            middle.is_some_and(|country| {
                country.len() <= 3 && country.bytes().all(|byte| byte.is_ascii_lowercase())
            })
        };
        own.contains(&host)
            || host == "archive.ubuntu.com"
            || mirror("ftp.", ".debian.org")
            || mirror("", ".archive.ubuntu.com")
    }

    /// The settings of its mirrors: of its releases, and of security updates.
    pub(super) fn settings(self) -> [&'static str; 2] {
        match self {
            Self::Debian => ["mirrors.debian", "mirrors.debian-security"],
            Self::Ubuntu => ["mirrors.ubuntu", "mirrors.ubuntu-security"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::compat;

    #[test]
    fn bases_that_are_built_from_packages_have_a_distribution() {
        for row in &compat::embedded().bases {
            let found = Distribution::of(&row.suite).map(|found| found.name().to_lowercase());
            let expected = row.bootstrap.then(|| row.distribution.clone());
            assert_eq!(found, expected, "{}", row.name);
        }
    }

    #[test]
    fn keys_of_one_distribution_are_not_those_of_another() {
        let fingerprints = |distribution: Distribution| distribution.keyring().expect("keys").fingerprints();
        let (debian, ubuntu) = (fingerprints(Distribution::Debian), fingerprints(Distribution::Ubuntu));
        assert!(!ubuntu.is_empty() && ubuntu.iter().all(|key| !debian.contains(key)), "{ubuntu:?}");
        let row = include_str!("../../compat/bases.toml");
        assert!(ubuntu.iter().all(|key| row.contains(key)), "the fingerprints are in compat: {ubuntu:?}");
    }
}

//! A suite's signed `InRelease`: its suite, its validity, and the hash of each index.
//!
//! Owns reading and judging it. The signature was checked before; the time is passed in.

use jiff::Timestamp;

use super::deb822::stanzas;
use super::distribution::Distribution;
use super::limits::LARGEST_PACKAGES;
use crate::model::sha256::is_sha256_hex;

/// The promises of a suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    /// `bookworm`, `bookworm-security`.
    pub(crate) codename: String,
    /// `oldstable`; of Ubuntu `jammy`, `jammy-security`.
    pub(crate) suite: String,
    /// When it was made.
    pub(crate) date: Timestamp,
    /// End of its validity, if specified.
    pub(crate) valid_until: Option<Timestamp>,
    /// Whether files are available by hash.
    pub(crate) by_hash: bool,
    files: Vec<(String, String, u64)>,
}

/// An index file that was promised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexFile {
    /// Path below the suite's directory.
    pub(crate) path: String,
    /// Its SHA-256, hex.
    pub(crate) sha256: String,
    /// Its size.
    pub(crate) size: u64,
}

/// Why a signed index is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReleaseError {
    /// A field that must be there is not, or cannot be read.
    #[error("field `{field}` is missing or malformed")]
    Field {
        /// The field.
        field: &'static str,
    },
    /// The index of another suite: a broken mirror or a replay attack.
    #[error("suite mismatch: expected `{wanted}`, found `{found}`")]
    OtherSuite {
        /// The requested suite.
        wanted: String,
        /// The suite it is of.
        found: String,
    },
    /// It is out of date, and by its own word not to be used any more.
    #[error("expired on {valid_until} (current time {now})")]
    Expired {
        /// Its `Valid-Until`.
        valid_until: Timestamp,
        /// The time it was compared with.
        now: Timestamp,
    },
    /// It was made in the future: a clock is wrong.
    #[error("dated in the future: {date} (current time {now})")]
    NotYetValid {
        /// Its `Date`.
        date: Timestamp,
        /// The time it was compared with.
        now: Timestamp,
    },
    /// The file is not among those it promises.
    #[error("`{path}` not found in the index")]
    NoSuchFile {
        /// The file.
        path: String,
    },
}

impl Release {
    /// Reads the signed text.
    pub(crate) fn parse(text: &str) -> Result<Self, ReleaseError> {
        let missing = |field| ReleaseError::Field { field };
        let stanza = stanzas(text).next().ok_or_else(|| missing("Codename"))?;
        let date = |field: &'static str| {
            stanza.field(field).map(|text| index_date(text).ok_or_else(|| missing(field))).transpose()
        };
        let files = stanza.field("SHA256").ok_or_else(|| missing("SHA256"))?;
        Ok(Self {
            codename: stanza.field("Codename").ok_or_else(|| missing("Codename"))?.to_owned(),
            suite: stanza.field("Suite").unwrap_or_default().to_owned(),
            date: date("Date")?.ok_or_else(|| missing("Date"))?,
            valid_until: date("Valid-Until")?,
            by_hash: stanza.field("Acquire-By-Hash") == Some("yes"),
            files: files.lines().filter_map(parse_file).collect(),
        })
    }

    /// Rejects the index of another suite, one from the future, and an expired one unless accepted.
    pub(crate) fn check(
        &self,
        suite: &str,
        now: Timestamp,
        accept_expired: bool,
    ) -> Result<(), ReleaseError> {
        // Ubuntu's `jammy-updates` has the code name `jammy`.
        let own = match Distribution::of(suite.split('-').next().unwrap_or(suite)) {
            Some(Distribution::Ubuntu) => &self.suite,
            Some(Distribution::Debian) | None => &self.codename,
        };
        if own != suite {
            let (wanted, found) = (suite.to_owned(), own.clone());
            return Err(ReleaseError::OtherSuite { wanted, found });
        }
        // A day of grace: clocks of fresh machines are often off by a time zone.
        if self.date.as_second() > now.as_second() + 24 * 60 * 60 {
            return Err(ReleaseError::NotYetValid { date: self.date, now });
        }
        match self.valid_until {
            Some(valid_until) if valid_until < now && !accept_expired => {
                Err(ReleaseError::Expired { valid_until, now })
            }
            _ => Ok(()),
        }
    }

    /// Returns the entry of a file by its path below the suite's directory.
    pub(crate) fn file(&self, path: &str) -> Result<IndexFile, ReleaseError> {
        self.files
            .iter()
            .find(|(listed, _, _)| listed == path)
            .map(|(path, sha256, size)| IndexFile { path: path.clone(), sha256: sha256.clone(), size: *size })
            .ok_or_else(|| ReleaseError::NoSuchFile { path: path.to_owned() })
    }
}

/// The time of a `Date` field, such as `Fri, 27 Nov 2026 00:12:41 UTC`.
pub fn index_date(text: &str) -> Option<Timestamp> {
    let text = text.strip_suffix("UTC").map_or_else(|| text.to_owned(), |start| format!("{start}+0000"));
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()
}

fn parse_file(line: &str) -> Option<(String, String, u64)> {
    let mut words = line.split_whitespace();
    let (sha256, size, path) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
    (is_sha256_hex(sha256) && size <= LARGEST_PACKAGES).then(|| (path.to_owned(), sha256.to_owned(), size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::signature::test_keyring;

    fn release() -> Release {
        let now = at("2026-11-22T00:00:00Z");
        let text = test_keyring().verified(include_bytes!("fixtures/good.InRelease"), now).expect("signed");
        Release::parse(&text).expect("parsed")
    }

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn release_is_parsed() {
        let release = release();
        assert_eq!(release.codename, "bookworm");
        assert_eq!(release.date, at("2026-11-20T00:12:41Z"));
        assert_eq!(release.valid_until, Some(at("2026-11-27T00:12:41Z")));
        assert!(release.by_hash);
        let file = release.file("main/binary-amd64/Packages.xz").expect("listed");
        assert_eq!((file.size, file.sha256.len()), (1, 64));
        assert!(matches!(release.file("main/binary-m68k/Packages.xz"), Err(ReleaseError::NoSuchFile { .. })));
    }

    #[test]
    fn expired_release_is_rejected_unless_accepted() {
        let release = release();
        let (before, after) = (at("2026-11-26T00:00:00Z"), at("2026-11-28T00:00:00Z"));
        assert_eq!(release.check("bookworm", before, false), Ok(()));
        assert!(matches!(release.check("bookworm", after, false), Err(ReleaseError::Expired { .. })));
        assert_eq!(release.check("bookworm", after, true), Ok(()));
    }

    #[test]
    fn rejects_release_of_another_suite_or_from_the_future() {
        let (release, now) = (release(), at("2026-11-21T00:00:00Z"));
        let other = release.check("trixie", now, true).expect_err("other suite");
        assert!(matches!(other, ReleaseError::OtherSuite { .. }), "{other}");
        let early = release.check("bookworm", at("2026-11-10T00:00:00Z"), true).expect_err("future");
        assert!(matches!(early, ReleaseError::NotYetValid { .. }), "{early}");
    }

    #[test]
    fn a_release_without_its_fields_is_malformed() {
        for text in ["", "Codename: x\nSHA256:\n", "Codename: x\nDate: yesterday\nSHA256:\n", "Date: x\n"] {
            assert!(matches!(Release::parse(text), Err(ReleaseError::Field { .. })), "{text}");
        }
    }
}

//! The versions of envforge that a file requires: `required-version = ">=0.2"`.
//!
//! Owns the range and its comparison.

use std::fmt;
use std::str::FromStr;

use semver::{Version, VersionReq};
use thiserror::Error;

/// The key in `envforge.toml` and in files of the matrix.
pub const KEY: &str = "required-version";

/// The version of this crate, which is envforge's: a test of the program holds them equal.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// A range of envforge versions, by the rules of `Cargo.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredVersion(VersionReq);

/// A text that is not a range of versions.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid version range `{text}` (expected a range such as `>=0.2`): {cause}")]
pub struct VersionRangeError {
    /// The text.
    pub text: String,
    /// The parser's reason.
    pub cause: String,
}

/// A required version that this program does not have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{file}` requires envforge `{required}`, this is {found}")]
pub struct UnmetVersion {
    /// The file.
    pub file: String,
    /// The range it requires.
    pub required: String,
    /// The version of this program.
    pub found: String,
}

impl UnmetVersion {
    /// The command that installs a matching version.
    pub fn hint(&self) -> String {
        format!(
            "install a matching envforge: `cargo install envforge --version '{}'`, or its package",
            self.required
        )
    }
}

impl RequiredVersion {
    /// Checks the range against this program; `file` is the name errors use.
    pub fn check(&self, file: &str) -> Result<(), UnmetVersion> {
        if self.matches(PROGRAM) {
            return Ok(());
        }
        Err(UnmetVersion { file: file.to_owned(), required: self.0.to_string(), found: PROGRAM.to_owned() })
    }

    /// Whether a version of the program is in the range.
    ///
    /// A pre-release counts as its release (`0.3.0-dev` matches `>=0.3`), unless the range names a pre-release of the
    /// same version.
    fn matches(&self, program: &str) -> bool {
        let Ok(mut version) = Version::parse(program) else { return false };
        let same = |part: &semver::Comparator| {
            let numbers = (part.major, part.minor.unwrap_or_default(), part.patch.unwrap_or_default());
            !part.pre.is_empty() && numbers == (version.major, version.minor, version.patch)
        };
        if !self.0.comparators.iter().any(same) {
            version.pre = semver::Prerelease::EMPTY;
        }
        self.0.matches(&version)
    }
}

impl FromStr for RequiredVersion {
    type Err = VersionRangeError;

    fn from_str(text: &str) -> Result<Self, VersionRangeError> {
        let error =
            |cause: semver::Error| VersionRangeError { text: text.to_owned(), cause: cause.to_string() };
        VersionReq::parse(text).map(Self).map_err(error)
    }
}

impl fmt::Display for RequiredVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(">=0.2", "0.2.0", true)]
    #[case(">=0.2", "1.4.0", true)]
    #[case(">=0.2", "0.1.9", false)]
    #[case("0.2", "0.2.7", true)]
    #[case("0.2", "0.3.0", false)]
    #[case(">=0.2, <0.4", "0.3.1", true)]
    #[case(">=0.2, <0.4", "0.4.0", false)]
    #[case("=0.2.1", "0.2.1", true)]
    #[case("=0.2.1", "0.2.2", false)]
    #[case("*", "0.1.0", true)]
    #[case(">=0.3", "0.3.0-dev", true)]
    #[case(">=0.3", "0.2.9-dev", false)]
    #[case("<0.3", "0.3.0-dev", false)]
    #[case(">=0.3.0-rc.2", "0.3.0-rc.2", true)]
    #[case(">=0.3.0-rc.2", "0.3.0-rc.1", false)]
    #[case(">=0.3.0-rc.2", "0.3.0", true)]
    #[case(">=0.3.0-rc.2", "0.4.0-dev", true)]
    #[case(">=0.2", "0.2.0+build.5", true)]
    fn range_matches_program(#[case] range: &str, #[case] program: &str, #[case] expected: bool) {
        let range: RequiredVersion = range.parse().expect(range);
        assert_eq!(range.matches(program), expected);
    }

    #[rstest]
    #[case("")]
    #[case("newest")]
    #[case(">=0.x.1")]
    #[case(">=0.2.0.1")]
    fn rejects_malformed_range(#[case] text: &str) {
        let error = text.parse::<RequiredVersion>().expect_err(text).to_string();
        assert!(error.starts_with(&format!("invalid version range `{text}`")), "{error}");
    }

    #[test]
    fn unmet_range_names_file_and_both_versions() {
        let range: RequiredVersion = ">=99".parse().expect("a range");
        let error = range.check("envforge.toml").expect_err("unmet");
        assert_eq!(error.to_string(), format!("`envforge.toml` requires envforge `>=99`, this is {PROGRAM}"));
        assert!(error.hint().contains("cargo install envforge --version '>=99'"));
        assert_eq!(">=0.0.1".parse::<RequiredVersion>().expect("a range").check("f"), Ok(()));
    }
}

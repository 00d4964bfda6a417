//! `evidence` and its verbs.

use std::fmt;
use std::str::FromStr;

use camino::Utf8PathBuf;

use super::verify::Level;
use crate::model::versions::Machine;

/// A request for `evidence IMAGE`.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// The image in its registry.
    pub image: String,
    /// Write the evidence to this file, too.
    pub save: Option<Utf8PathBuf>,
    /// Write a page to this file, too.
    pub html: Option<Utf8PathBuf>,
    /// Public keys whose word counts; without one those of the settings.
    pub key: Vec<Utf8PathBuf>,
    /// The platform of an image of several.
    pub platform: Option<Machine>,
}

/// A request for `evidence admit`.
#[derive(Debug, Clone)]
pub struct EvidenceAdmit {
    /// The image in its registry; with a file the digest it must be about.
    pub image: Option<String>,
    /// A file of evidence, instead of the registry.
    pub evidence: Option<Utf8PathBuf>,
    /// GPUs by name or compute capability; empty and not `here`: any that was proven.
    pub gpu: Vec<String>,
    /// The driver or its branch; the word `exact`, alone or next to it: a newer driver than the proven one is refused.
    pub driver: Vec<String>,
    /// GPUs and driver of this machine.
    pub here: bool,
    /// GPUs of one compute capability prove each other.
    pub same_architecture: bool,
    /// The same as the word `exact`.
    pub exact_driver: bool,
    /// How many GPUs at once.
    pub count: u32,
    /// The lowest level.
    pub level: Level,
    /// The oldest checks.
    pub max_age: MaxAge,
    /// Public keys whose word counts; without one those of the settings.
    pub key: Vec<Utf8PathBuf>,
    /// The platform of an image of several.
    pub platform: Option<Machine>,
}

/// A request for `evidence withdraw`.
#[derive(Debug, Clone)]
pub struct EvidenceWithdraw {
    /// The image in its registry.
    pub image: String,
    /// The GPU model; without one all.
    pub gpu: Option<String>,
    /// A driver or its branch; without one all.
    pub driver: Option<String>,
    /// The level, and those above it; without one all.
    pub level: Option<Level>,
    /// The key that signed.
    pub key: Option<Utf8PathBuf>,
    /// The platform of an image of several.
    pub platform: Option<Machine>,
}

/// An age such as `90d`, `12h` or `4w`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MaxAge {
    hours: u32,
}

/// Hours of a day and of a week.
const DAY: u32 = 24;
const WEEK: u32 = 7 * DAY;

impl MaxAge {
    /// 90 days.
    pub const DEFAULT: Self = Self { hours: 90 * DAY };

    /// The age in hours.
    pub fn hours(self) -> u32 {
        self.hours
    }
}

impl FromStr for MaxAge {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid age `{text}` (expected a number with `h`, `d` or `w`: `90d`)");
        let unit = match text.chars().last() {
            Some('h') => 1,
            Some('d') => DAY,
            Some('w') => WEEK,
            _ => return Err(wrong()),
        };
        let number: u32 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
        let hours = number.checked_mul(unit).filter(|hours| *hours > 0).ok_or_else(wrong)?;
        Ok(Self { hours })
    }
}

impl fmt::Display for MaxAge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.hours.is_multiple_of(DAY) {
            write!(f, "{}d", self.hours / DAY)
        } else {
            write!(f, "{}h", self.hours)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MaxAge;

    #[test]
    fn age_is_a_number_with_a_unit() {
        for (text, hours, shown) in
            [("90d", 2160, "90d"), ("12h", 12, "12h"), ("2w", 336, "14d"), ("48h", 48, "2d")]
        {
            let age: MaxAge = text.parse().expect(text);
            assert_eq!((age.hours(), age.to_string().as_str()), (hours, shown), "{text}");
        }
        for wrong in ["", "d", "90", "0d", "-1d", "1.5d", "90 d", "4294967295w", "9é"] {
            assert!(wrong.parse::<MaxAge>().is_err(), "{wrong}");
        }
    }
}

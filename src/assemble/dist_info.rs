//! The `.dist-info` directory of a wheel: the only one at its top, and of the locked distribution.
//!
//! Pure.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use pep440_rs::Version;

use crate::model::entry_name::quoted;

const SUFFIX: &str = ".dist-info";
/// Files without which uv installs no wheel.
const REQUIRED: [&str; 3] = ["METADATA", "RECORD", "WHEEL"];

/// Returns `torch-2.8.0` of `torch-2.8.0.dist-info`, or every reason why the directory is not that of the distribution.
///
/// Wheels contain others deeper down, of vendored packages; only the top counts.
pub(super) fn find_dist_info<'a>(
    names: impl Iterator<Item = &'a str>,
    distribution: &str,
    version: &str,
) -> Result<String, Vec<String>> {
    let names: BTreeSet<&str> = names.collect();
    let tops = names.iter().filter_map(|name| name.split_once('/')).map(|(top, _)| top);
    let stems: BTreeSet<&str> = tops.filter_map(|top| top.strip_suffix(SUFFIX)).collect();
    let stem = match stems.iter().collect::<Vec<_>>().as_slice() {
        [stem] => **stem,
        [] => return Err(vec![format!("it has no `{SUFFIX}` directory")]),
        several => {
            let several: Vec<_> = several.iter().map(|stem| quoted(&format!("{stem}{SUFFIX}"))).collect();
            return Err(vec![format!("it has several `{SUFFIX}` directories: {}", several.join(", "))]);
        }
    };
    let mut reasons = Vec::new();
    if !is_of(stem, distribution, version) {
        let found = quoted(&format!("{stem}{SUFFIX}"));
        reasons.push(format!("{found} is not of the locked `{distribution} {version}`"));
    }
    for file in REQUIRED {
        let path = format!("{stem}{SUFFIX}/{file}");
        if !names.contains(path.as_str()) {
            reasons.push(format!("{}: file not found", quoted(&path)));
        }
    }
    if reasons.is_empty() { Ok(stem.to_owned()) } else { Err(reasons) }
}

/// Whether a stem is of that distribution and version; it may lack the version's local part, as uv accepts it.
fn is_of(stem: &str, distribution: &str, version: &str) -> bool {
    let same_version = |found: &str| match (Version::from_str(found), Version::from_str(version)) {
        (Ok(found), Ok(wanted)) => found == wanted || found == wanted.without_local(),
        _ => found == version,
    };
    // Old wheels have `-` in their names.
    let mut splits = stem.match_indices('-').map(|(at, _)| (&stem[..at], &stem[at + 1..]));
    splits.any(|(name, found)| normalised(name) == distribution && same_version(found))
}

/// A package's name as indexes compare it: lower-case, runs of `-`, `_` and `.` as one `-`.
fn normalised(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(
        stems: &[&str],
        missing: &str,
        distribution: &str,
        version: &str,
    ) -> Result<String, Vec<String>> {
        let files = stems.iter().flat_map(|stem| REQUIRED.map(|file| format!("{stem}.dist-info/{file}")));
        let mut names: Vec<String> = files.filter(|name| !name.ends_with(missing)).collect();
        names.push("setuptools/_vendor/wheel-0.45.1.dist-info/RECORD".to_owned());
        find_dist_info(names.iter().map(String::as_str), distribution, version)
    }

    #[test]
    fn stem_of_the_locked_distribution_is_found() {
        for (stem, name, version) in [
            ("torch-2.8.0+cu128", "torch", "2.8.0+cu128"),
            ("torch-2.8.0", "torch", "2.8.0+cu128"),
            ("Jupyter_Server.x-1.0", "jupyter-server-x", "1.0.0"),
            ("old-name-2024.1", "old-name", "2024.01"),
            ("odd-not_a_version", "odd", "not_a_version"),
        ] {
            assert_eq!(found(&[stem], "-", name, version).as_deref(), Ok(stem));
        }
    }

    #[test]
    fn other_missing_and_several_directories_are_refused() {
        let reasons =
            |stems: &[&str], missing| found(stems, missing, "a", "1").expect_err("refused").join("; ");
        assert_eq!(reasons(&[], "-"), "it has no `.dist-info` directory");
        assert!(reasons(&["a-1", "b-1"], "-").contains("`a-1.dist-info`, `b-1.dist-info`"));
        assert_eq!(reasons(&["b-1"], "-"), "`b-1.dist-info` is not of the locked `a 1`");
        assert_eq!(reasons(&["a-2"], "-"), "`a-2.dist-info` is not of the locked `a 1`");
        assert_eq!(reasons(&["a"], "-"), "`a.dist-info` is not of the locked `a 1`");
        assert_eq!(reasons(&["a-1"], "/WHEEL"), "`a-1.dist-info/WHEEL`: file not found");
        assert_eq!(reasons(&["a-1"], "-1.dist-info/RECORD"), "`a-1.dist-info/RECORD`: file not found");
        assert_eq!(reasons(&["b-1"], "/METADATA").matches(';').count(), 1);
    }
}

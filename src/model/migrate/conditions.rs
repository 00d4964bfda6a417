//! Conditions on versions as Poetry, pixi and conda write them, as those of Python packages.

use pep440_rs::{Operator, VersionSpecifiers};

/// Conditions of Poetry, pixi and conda's simple form as those of Python packages: `^2.6.0` is `>=2.6.0,<3`, `~1.4` is `>=1.4,<1.5`,
/// `2.0.1` alone is exact, `1.2.*` a prefix. `None`: not understood.
pub(super) fn specifiers(written: &str) -> Option<VersionSpecifiers> {
    let mut all = Vec::new();
    let written = apart(written);
    for clause in written.split(',').map(str::trim).filter(|clause| !clause.is_empty() && *clause != "*") {
        let clause: String = clause.split_whitespace().collect();
        if let Some(version) = clause.strip_prefix('^') {
            all.push(format!(">={version},<{}", next(version, true)?));
        } else if let Some(version) = clause.strip_prefix("~=") {
            all.push(format!("~={version}"));
        } else if let Some(version) = clause.strip_prefix('~') {
            all.push(format!(">={version},<{}", next(version, false)?));
        } else if clause.starts_with(|c: char| c.is_ascii_digit()) {
            all.push(format!("=={clause}"));
        } else if clause.starts_with('=') && !clause.starts_with("==") {
            all.push(format!("={clause}"));
        } else {
            all.push(clause);
        }
    }
    if all.is_empty() {
        return Some(VersionSpecifiers::empty());
    }
    all.join(",").parse().ok()
}

/// Conditions with commas between them: Poetry and conda also take blanks, `>=2.2 <2.3`.
fn apart(written: &str) -> String {
    let mut out = String::new();
    for word in written.split_whitespace() {
        let begins = word.starts_with(['<', '>', '=', '!', '~', '^']);
        // A version may stand apart from its operator: `>= 2.2`.
        let ends = out.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '*');
        out.push_str(if begins && ends { "," } else { "" });
        out.push_str(word);
    }
    out
}

/// A condition that may have alternatives: `^4.30 || ^5.0`, conda's `2.0|2.1`.
pub(super) struct Alternatives {
    /// The condition, or the newest of the alternatives.
    pub versions: VersionSpecifiers,
    /// Whether alternatives were left out, since no list of conditions says them all.
    pub is_one_of_several: bool,
}

/// Reads a condition with alternatives. Those that touch are one range; of others the newest is taken.
pub(super) fn alternatives(written: &str) -> Option<Alternatives> {
    let whole = |versions| Alternatives { versions, is_one_of_several: false };
    if !written.contains('|') {
        return specifiers(written).map(whole);
    }
    let parts = written.split('|').map(str::trim).filter(|part| !part.is_empty());
    let parts = parts.map(specifiers).collect::<Option<Vec<_>>>()?;
    if parts.iter().any(VersionSpecifiers::is_empty) {
        return Some(whole(VersionSpecifiers::empty()));
    }
    if let Some(range) = joined(&parts) {
        return Some(whole(range));
    }
    let newest = parts.into_iter().max_by_key(|part| part.iter().map(|one| one.version().clone()).max())?;
    Some(Alternatives { versions: newest, is_one_of_several: true })
}

/// One range of ranges that touch or overlap; each is a lower and an upper bound.
fn joined(parts: &[VersionSpecifiers]) -> Option<VersionSpecifiers> {
    let bounds = |part: &VersionSpecifiers| {
        let bound =
            |operator| part.iter().find(|one| *one.operator() == operator).map(|one| one.version().clone());
        let pair = (bound(Operator::GreaterThanEqual)?, bound(Operator::LessThan)?);
        (part.len() == 2).then_some(pair)
    };
    let mut ranges = parts.iter().map(bounds).collect::<Option<Vec<_>>>()?;
    ranges.sort();
    let (low, mut high) = ranges.first()?.clone();
    for (from, to) in ranges {
        if from > high {
            return None;
        }
        high = high.max(to);
    }
    format!(">={low},<{high}").parse().ok()
}

/// The first version that `^` (the first number that is not 0 grows) or `~` (the minor grows) leaves out.
fn next(version: &str, caret: bool) -> Option<String> {
    let plain = version.split(|c: char| c != '.' && !c.is_ascii_digit()).next()?;
    let numbers = plain.split('.').map(|part| part.parse::<u64>().ok()).collect::<Option<Vec<_>>>()?;
    let last = numbers.len().checked_sub(1)?;
    let at = if caret { numbers.iter().position(|number| *number != 0).unwrap_or(last) } else { last.min(1) };
    let kept = numbers[..at].iter().map(ToString::to_string);
    Some(kept.chain([(numbers[at] + 1).to_string()]).collect::<Vec<_>>().join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_of_poetry_are_those_of_packages() {
        for (written, expected) in [
            ("^2.6.0", ">=2.6.0, <3"),
            ("^0.21.0", ">=0.21.0, <0.22"),
            ("^0.0.3", ">=0.0.3, <0.0.4"),
            ("~1.4", ">=1.4, <1.5"),
            ("~1.4.2", ">=1.4.2, <1.5"),
            ("~=1.4.2", "~=1.4.2"),
            ("0.33.0", "==0.33.0"),
            ("=1.2", "==1.2"),
            ("1.2.*", "==1.2.*"),
            ("<2", "<2"),
            (">=3.11, <3.14", ">=3.11, <3.14"),
            ("*", ""),
            (">=2.2 <2.3", ">=2.2, <2.3"),
            (">= 2.2 , < 2.3", ">=2.2, <2.3"),
        ] {
            assert_eq!(
                specifiers(written).map(|one| one.to_string()).as_deref(),
                Some(expected),
                "{written}"
            );
        }
        assert_eq!(specifiers("^x"), None);
    }

    #[test]
    fn alternatives_are_one_range_or_the_newest() {
        for (written, expected, several) in [
            ("^4.30 || ^5.0", ">=4.30, <6", false),
            ("~2.2 || ~2.3 || ~2.4", ">=2.2, <2.5", false),
            ("2.2.2 || 2.3.1", "==2.3.1", true),
            ("^1.13 || ^2.1", ">=2.1, <3", true),
            ("2.0.*|2.1.*", "==2.1.*", true),
            ("* || ^2", "", false),
            ("^2.1", ">=2.1, <3", false),
        ] {
            let found = alternatives(written).unwrap_or_else(|| panic!("{written}"));
            assert_eq!(
                (found.versions.to_string().as_str(), found.is_one_of_several),
                (expected, several),
                "{written}"
            );
        }
        assert!(alternatives("^x || ^2").is_none());
    }
}

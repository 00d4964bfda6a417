//! Conditions on versions as Poetry, pixi and conda write them, as those of Python packages.

use pep440_rs::VersionSpecifiers;

/// Conditions of Poetry, pixi and conda's simple form as those of Python packages: `^2.6.0` is `>=2.6.0,<3`, `~1.4` is `>=1.4,<1.5`,
/// `2.0.1` alone is exact, `1.2.*` a prefix. `None`: not understood.
pub(super) fn specifiers(written: &str) -> Option<VersionSpecifiers> {
    let mut all = Vec::new();
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
        ] {
            assert_eq!(
                specifiers(written).map(|one| one.to_string()).as_deref(),
                Some(expected),
                "{written}"
            );
        }
        assert_eq!(specifiers("^x"), None);
    }
}

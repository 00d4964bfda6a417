//! The hints of uv. They name options and files of uv, so none is shown: what they tell is said in envforge's own words.

/// The most facts that are said.
const MOST: usize = 3;
/// What the next part of uv's output begins with.
const LABELS: [&str; 6] = ["error:", "warning:", "hint:", "help:", "cause:", "Caused by:"];
/// The beginnings of hints that tell something about a package and name no option.
const PLAIN: [&str; 3] = ["Wheels are available for ", "Metadata for ", "The structure of "];

/// Returns the output of uv without its hints.
pub(super) fn without_hints(text: &str) -> String {
    split(text).0
}

/// Returns what the hints in an output of uv tell, but for what `source_hint` and `index_hint` say.
pub(super) fn facts(text: &str) -> Vec<String> {
    split(text).1.iter().filter_map(|hint| fact(hint)).take(MOST).collect()
}

/// The output without its hints, and each hint as one line. One begins with `hint:` and ends before an empty line or the next label.
fn split(text: &str) -> (String, Vec<String>) {
    let (mut shown, mut hints): (Vec<&str>, Vec<String>) = (Vec::new(), Vec::new());
    let mut is_hint = false;
    for line in text.lines() {
        let words = line.trim();
        if let Some(begins) = words.strip_prefix("hint:") {
            is_hint = true;
            hints.push(begins.trim().to_owned());
            continue;
        }
        is_hint &= !words.is_empty() && !LABELS.iter().any(|label| words.starts_with(label));
        match hints.last_mut().filter(|_| is_hint) {
            Some(hint) => {
                hint.push(' ');
                hint.push_str(words);
            }
            // Empty lines that stood around a hint are one.
            None if words.is_empty() && shown.last().is_none_or(|last| last.trim().is_empty()) => {}
            None => shown.push(line),
        }
    }
    (shown.join("\n").trim_end().to_owned(), hints)
}

/// What a hint tells, if a user of envforge can do something about it.
fn fact(hint: &str) -> Option<String> {
    if PLAIN.iter().any(|start| hint.starts_with(start)) {
        let mut letters = hint.chars();
        let first = letters.next()?.to_ascii_lowercase();
        return Some(format!("{first}{}", letters.as_str()));
    }
    if let Some(rest) = hint.strip_prefix("You require ") {
        let (wanted, found) = rest.split_once(", but we only found wheels for ")?;
        return Some(format!("the image has {wanted}, and there are only wheels for {found}"));
    }
    if hint.contains("valid authentication credentials") {
        return Some(
            "an index denied access: put user and token into its address in the configuration of this machine"
                .to_owned(),
        );
    }
    let name = hint.split('`').nth(1)?;
    if hint.contains("` was filtered by ") {
        let (_, rest) = hint.split_once(" uploaded before ")?;
        let day = rest.split('T').next()?;
        return Some(format!(
            "releases of `{name}` from {day} on are left out by `--as-of`: give a later date, or none with `envforge lock --upgrade`"
        ));
    }
    if hint.contains("but pre-releases weren't enabled") {
        let (_, rest) = hint.split_once("(e.g., ")?;
        let example = rest.split(')').next()?;
        let release = if example.contains('=') { example.to_owned() } else { format!("{name}=={example}") };
        return Some(format!("only a pre-release of `{name}` fits: to take it, name it: `{release}`"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outputs of uv 0.13.9, recorded with packages of the index and with a small index of its own; the long hint is cut.
    const RECORDED: [(&str, &str, &[&str]); 7] = [
        (
            "error: No solution found when resolving dependencies\n  cause: Because flash-attn==2.8.3 has no usable wheels and you require \
             flash-attn==2.8.3, we can conclude that your requirements are unsatisfiable.\n\nhint: Wheels are required for `flash-attn` \
             because building from source is disabled for all packages (i.e., with `--no-build`)",
            "has no usable wheels",
            &[],
        ),
        (
            "error: No solution found when resolving dependencies\n  cause: Because only einops<=0.7.0 is available and you require \
             einops>0.8.99, we can conclude that your requirements are unsatisfiable.\n\nhint: `einops` was filtered by `exclude-newer` to \
             only include packages uploaded before 2024-01-02T00:00:00Z. The latest version satisfying the requirement is v0.9.0.dev0, \
             published at 2026-07-05T04:47:24.338Z. Consider using `exclude-newer-package` to override the cutoff for this package.",
            "only einops<=0.7.0 is available",
            &[
                "releases of `einops` from 2024-01-02 on are left out by `--as-of`: give a later date, or none with `envforge lock --upgrade`",
            ],
        ),
        (
            "error: No solution found when resolving dependencies\n  cause: Because torch==2.1.0 has no wheels with a matching Python ABI \
             tag (e.g., `cp313`) and you require torch==2.1.0, we can conclude that your requirements are unsatisfiable.\n\nhint: You \
             require CPython 3.13 (`cp313`), but we only found wheels for `torch` (v2.1.0) with the following Python ABI tags: `cp38`, `cp39`",
            "no wheels with a matching Python ABI",
            &[
                "the image has CPython 3.13 (`cp313`), and there are only wheels for `torch` (v2.1.0) with the following Python ABI tags: \
                 `cp38`, `cp39`",
            ],
        ),
        (
            "error: No solution found when resolving dependencies\n  cause: Because there is no version of pre==2.0rc1 and you require \
             pre==2.0rc1, we can conclude that your requirements are unsatisfiable.\n\nhint: `pre` was requested with a pre-release marker \
             (e.g., pre==2.0rc1), but pre-releases weren't enabled (try: `--prerelease=allow`)\n\nhint: `pre` was found on \
             <address>/idx1, but not at the requested version (pre==2.0rc1). If all indexes are equally trusted, use `--index-strategy \
             unsafe-best-match` to consider all versions from all indexes.",
            "no version of pre==2.0rc1",
            &["only a pre-release of `pre` fits: to take it, name it: `pre==2.0rc1`"],
        ),
        (
            "error: No solution found when resolving dependencies\n  cause: Because broken==1.0 has invalid metadata and you require \
             broken==1.0, we can conclude that your requirements are unsatisfiable.\n\nhint: Metadata for `broken` (v1.0) could not be \
             parsed:\n  Invalid version: expected version to start with a number, but no leading ASCII digits were found\n",
            "broken==1.0 has invalid metadata",
            &[
                "metadata for `broken` (v1.0) could not be parsed: Invalid version: expected version to start with a number, but no leading \
                 ASCII digits were found",
            ],
        ),
        (
            "error: No solution found when resolving dependencies\n  cause: Because only pre==2.0rc1 is available and all versions of dep \
             depend on pre>=2.0, we can conclude that all versions of dep cannot be used.\n         And because you require dep, we can \
             conclude that your requirements are unsatisfiable.\n\nhint: Pre-releases are available for `pre` in the requested range \
             (e.g., 2.0rc1), but pre-releases weren't enabled (try: `--prerelease=allow`)",
            "And because you require dep",
            &["only a pre-release of `pre` fits: to take it, name it: `pre==2.0rc1`"],
        ),
        (
            "  × No solution found when resolving dependencies:\n  ╰─▶ Because tool was not found in the package registry and you require \
             tool,\n      we can conclude that your requirements are unsatisfiable.\n\n      hint: An index URL (<address>/simple) could not \
             be queried due to a\n      lack of valid authentication credentials (401 Unauthorized).",
            "we can conclude that your requirements",
            &[
                "an index denied access: put user and token into its address in the configuration of this machine",
            ],
        ),
    ];

    #[test]
    fn hints_of_uv_are_not_shown_and_their_facts_are_said() {
        for (text, stays, expected) in RECORDED {
            let shown = without_hints(text);
            for word in ["hint:", "--", "exclude-newer", "UV_", "uv pip", "tool.uv"] {
                assert!(!shown.contains(word), "{word}: {shown}");
            }
            assert!(shown.contains(stays) && shown.contains("No solution found"), "{shown}");
            assert_eq!(shown, shown.trim_end());
            let facts = facts(text);
            assert_eq!(facts, expected);
            assert!(
                facts.iter().all(|fact| !fact.contains("--prerelease") && !fact.contains("exclude-newer"))
            );
        }
    }

    #[test]
    fn hint_ends_before_the_next_part() {
        let text = "error: one\nhint: set `UV_HTTP_TIMEOUT`\n  to more,\nor use `pip install`\n  Caused by: two\nwarning: three\n\n\n\nfour";
        assert_eq!(without_hints(text), "error: one\n  Caused by: two\nwarning: three\n\nfour");
        let hint = "hint: `a` depends on `torch`: run `uv pip install torch` with `--no-build-isolation`";
        assert_eq!((without_hints(hint), facts(hint)), (String::new(), Vec::new()));
        assert_eq!(without_hints("a hint: stays"), "a hint: stays");
    }

    #[test]
    fn few_facts_are_said() {
        let text = "hint: Metadata for `a` could not be parsed.\n".repeat(50);
        assert_eq!(facts(&text).len(), MOST);
    }
}

//! Which stages of a Dockerfile its image is made of.

use std::collections::BTreeMap;

use super::variables::filled;

/// What a stage gives the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// It is the image, or one that the image begins with.
    Image,
    /// Files of it are copied into the image, or mounted while it is made.
    Source,
    /// Nothing.
    Unused,
}

struct Stage {
    name: String,
    /// The image or stage that it begins with.
    from: String,
    /// The stages whose files it takes, by name or number.
    takes: Vec<String>,
}

/// The part of every stage, in their order. A last stage whose image is a variable may begin with any of them: all count.
pub(super) fn parts(
    instructions: &mut dyn Iterator<Item = &str>,
    given: &BTreeMap<String, String>,
) -> Vec<Part> {
    let mut stages: Vec<Stage> = Vec::new();
    let mut arguments = given.clone();
    for instruction in instructions {
        if is_from(instruction) {
            let mut words = instruction.split_whitespace().skip(1).filter(|word| !word.starts_with("--"));
            let from = filled(words.next().unwrap_or_default(), &arguments).to_ascii_lowercase();
            let name = words.nth(1).unwrap_or_default().to_ascii_lowercase();
            stages.push(Stage { name, from, takes: Vec::new() });
        } else if let Some((name, value)) = argument(instruction) {
            let value = given.get(name).cloned().unwrap_or_else(|| filled(value, &arguments));
            arguments.insert(name.to_owned(), value);
        } else if let Some(stage) = stages.last_mut() {
            let sources = instruction
                .split([' ', ',', '\t', '\n'])
                .filter_map(|word| word.strip_prefix("--from=").or_else(|| word.strip_prefix("from=")));
            stage.takes.extend(sources.map(|name| filled(name, &arguments).to_ascii_lowercase()));
        }
    }
    let mut parts = vec![Part::Unused; stages.len()];
    let Some(last) = stages.len().checked_sub(1) else { return parts };
    if stages[last].from.contains('$') && last > 0 {
        return vec![Part::Image; stages.len()];
    }
    let mut open = vec![(last, Part::Image)];
    while let Some((at, part)) = open.pop() {
        if parts[at] != Part::Unused && (parts[at] == Part::Image || part == Part::Source) {
            continue;
        }
        parts[at] = part;
        open.extend(earlier(&stages[..at], &stages[at].from).map(|from| (from, part)));
        for name in &stages[at].takes {
            // A name that is not known may be any of them.
            let sources = if name.contains('$') {
                0..at
            } else {
                earlier(&stages[..at], name).map_or(0..0, |one| one..one + 1)
            };
            open.extend(sources.map(|source| (source, Part::Source)));
        }
    }
    parts
}

/// Whether an instruction begins a stage.
pub(super) fn is_from(instruction: &str) -> bool {
    instruction.split_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case("FROM"))
}

/// Name and default of an `ARG`.
fn argument(instruction: &str) -> Option<(&str, &str)> {
    let (word, rest) = instruction.split_once(char::is_whitespace)?;
    let (name, value) = rest.trim().split_once('=')?;
    word.eq_ignore_ascii_case("ARG").then(|| (name.trim(), value.trim().trim_matches(['"', '\''])))
}

/// The earlier stage of that name or number.
fn earlier(stages: &[Stage], name: &str) -> Option<usize> {
    let by_name = stages.iter().rposition(|stage| !stage.name.is_empty() && stage.name == name);
    by_name.or_else(|| name.parse().ok().filter(|at| *at < stages.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_stage_is_the_image_with_what_it_begins_with_and_takes() {
        use Part::{Image, Source, Unused};
        for (text, expected) in [
            ("FROM a", vec![Image]),
            ("FROM a AS x\nFROM b", vec![Unused, Image]),
            ("FROM a AS x\nFROM X", vec![Image, Image]),
            ("FROM a AS x\nFROM b\nCOPY --from=x /w /w", vec![Source, Image]),
            ("FROM a\nFROM b\nCOPY --chown=1 --from=0 /w /w", vec![Source, Image]),
            (
                "FROM a AS x\nFROM x AS y\nFROM b\nRUN --mount=type=bind,from=y,target=/w pip install /w/*",
                vec![Source, Source, Image],
            ),
            ("FROM a AS x\nFROM x AS y\nFROM x\nCOPY --from=y /w /w", vec![Image, Source, Image]),
            ("FROM a AS x\nFROM ${BASE}", vec![Image, Image]),
            ("ARG BASE=b\nFROM $BASE AS x\nFROM ${BASE}", vec![Unused, Image]),
            ("ARG BASE=\"x\"\nFROM a AS x\nFROM ${BASE}", vec![Image, Image]),
            ("ARG S=x\nFROM a AS x\nFROM b\nCOPY --from=${S} /w /w", vec![Source, Image]),
            ("FROM a AS x\nFROM b\nCOPY --from=$S /w /w", vec![Source, Image]),
            ("FROM a AS x\nFROM b\nCOPY --from=registry/other:1 /w /w", vec![Unused, Image]),
            ("RUN x", vec![]),
        ] {
            assert_eq!(parts(&mut text.lines(), &BTreeMap::new()), expected, "{text}");
        }
    }
}

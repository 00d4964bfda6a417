//! `pyproject.toml`: the project's dependencies and the requested groups.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::error::{Place, Problem, ProjectError};
use super::requirement::requirement_name;
use super::requirements::Requirement;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Pyproject {
    project: Option<Project>,
    #[serde(default)]
    dependency_groups: BTreeMap<String, Vec<Member>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Project {
    #[serde(default)]
    dependencies: Vec<String>,
    #[serde(default)]
    optional_dependencies: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Member {
    Requirement(String),
    Include {
        #[serde(rename = "include-group")]
        group: String,
    },
}

/// Returns the requirements of a `pyproject.toml` with the groups; a group is one of `[dependency-groups]`, else one of the
/// optional dependencies.
pub fn from_pyproject(file: &str, text: &str, groups: &[String]) -> Result<Vec<Requirement>, ProjectError> {
    let invalid = |problems| ProjectError::Invalid { file: file.to_owned(), problems };
    let plain = |text: String| Problem { place: None, text, hint: None };
    let all: Pyproject = toml::from_str(text).map_err(|error| {
        let place = error.span().map(|span| Place::of(text, span.start));
        invalid(vec![Problem { place, ..plain(error.message().trim().to_owned()) }])
    })?;
    let mut wanted: Vec<&str> = Vec::new();
    let mut problems = Vec::new();
    match &all.project {
        Some(project) => wanted.extend(project.dependencies.iter().map(String::as_str)),
        None if groups.is_empty() => {
            problems.push(plain("missing `[project]` with dependencies".to_owned()));
        }
        None => {}
    }
    let mut known = Groups::of(&all);
    for group in groups {
        if let Err(text) = known.add(group, &mut Vec::new(), &mut wanted) {
            problems.push(plain(text));
        }
    }
    let mut found = Vec::new();
    for text in wanted {
        match requirement_name(text) {
            Ok(name) => found.push(Requirement {
                text: text.to_owned(),
                name,
                hashes: Vec::new(),
                origin: file.to_owned(),
            }),
            Err(text) => problems.push(plain(text)),
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(invalid(problems)) }
}

/// Groups that include each other lie in each other at most this deep.
const DEEPEST: usize = 32;

/// The groups of a file by their normalized names, and what was found in those that are wanted: each once.
struct Groups<'a> {
    /// The names of the groups as they are written.
    names: Vec<&'a str>,
    members: BTreeMap<String, &'a [Member]>,
    optional: BTreeMap<String, &'a [String]>,
    done: BTreeSet<String>,
}

impl<'a> Groups<'a> {
    fn of(all: &'a Pyproject) -> Self {
        let (mut members, mut optional) = (BTreeMap::new(), BTreeMap::new());
        for (name, found) in &all.dependency_groups {
            members.entry(normalized(name)).or_insert(found.as_slice());
        }
        for (name, texts) in all.project.iter().flat_map(|project| &project.optional_dependencies) {
            optional.entry(normalized(name)).or_insert(texts.as_slice());
        }
        let names = all.dependency_groups.keys().map(String::as_str).collect();
        Self { names, members, optional, done: BTreeSet::new() }
    }

    /// Adds the requirements of a group; `path` leads to it.
    fn add(&mut self, group: &str, path: &mut Vec<String>, wanted: &mut Vec<&'a str>) -> Result<(), String> {
        let name = normalized(group);
        if path.contains(&name) {
            return Err(format!("group `{group}` includes itself: {} -> {name}", path.join(" -> ")));
        }
        if path.len() == DEEPEST {
            return Err(format!(
                "more than {DEEPEST} groups include each other: {} -> ...",
                path[..3].join(" -> ")
            ));
        }
        if !self.done.insert(name.clone()) {
            return Ok(());
        }
        if let Some(members) = self.members.get(&name).copied() {
            path.push(name);
            for member in members {
                match member {
                    Member::Requirement(text) => wanted.push(text),
                    Member::Include { group } => self.add(group, path, wanted)?,
                }
            }
            path.pop();
            return Ok(());
        }
        let found = self.optional.get(&name).ok_or_else(|| {
            format!("group `{group}` not found (`[dependency-groups]` has: {})", self.names.join(", "))
        })?;
        wanted.extend(found.iter().map(String::as_str));
        Ok(())
    }
}

fn normalized(name: &str) -> String {
    name.replace(['_', '.'], "-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
[project]
name = "x"
dependencies = ["requests>=2"]
[project.optional-dependencies]
plot = ["seaborn"]
[dependency-groups]
test = ["pytest", {include-group = "Base_"}]
Base_ = ["rich"]
loop = [{include-group = "loop"}]
[tool.other]
key = 1
"#;

    fn texts(groups: &[&str]) -> Result<Vec<String>, ProjectError> {
        let groups: Vec<_> = groups.iter().map(|group| (*group).to_owned()).collect();
        let found = from_pyproject("pyproject.toml", TEXT, &groups)?;
        Ok(found.into_iter().map(|requirement| requirement.text).collect())
    }

    #[test]
    fn dependencies_include_the_requested_groups() {
        assert_eq!(texts(&[]).expect("reads"), ["requests>=2"]);
        assert_eq!(texts(&["test", "plot"]).expect("reads"), ["requests>=2", "pytest", "rich", "seaborn"]);
    }

    #[test]
    fn unknown_groups_and_circles_are_reported() {
        let error = texts(&["tset", "loop"]).expect_err("refused").to_string();
        assert!(error.contains("group `tset` not found") && error.contains("Base_, loop, test"), "{error}");
        assert!(error.contains("includes itself: loop -> loop"), "{error}");
    }

    /// Each group includes the one before twice: two to the power of their number, if none is remembered.
    #[test]
    fn group_that_many_others_include_is_read_once() {
        let mut text = "[dependency-groups]\ng0 = [\"click\"]\n".to_owned();
        for n in 1..21 {
            let before = n - 1;
            let twice = format!("[{{include-group = \"g{before}\"}}, {{include-group = \"G{before}\"}}]");
            text = format!("{text}g{n} = {twice}\n");
        }
        let found = from_pyproject("pyproject.toml", &text, &["g20".to_owned()]).expect("reads");
        assert_eq!(found.len(), 1);
        let chain = (0..100_000).map(|n| format!("g{n} = [{{include-group = \"g{}\"}}]\n", n + 1));
        let chain = "[dependency-groups]\n".to_owned() + &chain.collect::<String>();
        let error = from_pyproject("pyproject.toml", &chain, &["g0".to_owned()]).expect_err("too deep");
        assert!(
            error.to_string().contains("more than 32 groups include each other: g0 -> g1 -> g2"),
            "{error}"
        );
    }

    #[test]
    fn broken_file_is_reported_with_its_place() {
        let error =
            from_pyproject("pyproject.toml", "[project]\ndependencies = 3\n", &[]).expect_err("refused");
        assert!(error.to_string().contains("invalid `pyproject.toml`:\n  - line 2, column 16"), "{error}");
        assert!(from_pyproject("pyproject.toml", "[tool.x]\n", &[]).is_err());
    }
}

//! `pyproject.toml`: the project's dependencies and the requested groups.

use std::collections::BTreeMap;

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
    for group in groups {
        if let Err(text) = members(&all, group, &mut Vec::new(), &mut wanted) {
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

fn members<'a>(
    all: &'a Pyproject,
    group: &str,
    path: &mut Vec<String>,
    wanted: &mut Vec<&'a str>,
) -> Result<(), String> {
    let name = normalized(group);
    if path.contains(&name) {
        return Err(format!("group `{group}` includes itself: {} -> {name}", path.join(" -> ")));
    }
    let found = all.dependency_groups.iter().find(|(key, _)| normalized(key) == name);
    if let Some((_, members_of)) = found {
        path.push(name);
        for member in members_of {
            match member {
                Member::Requirement(text) => wanted.push(text),
                Member::Include { group } => members(all, group, path, wanted)?,
            }
        }
        path.pop();
        return Ok(());
    }
    let optional = all.project.iter().flat_map(|project| &project.optional_dependencies);
    let found = optional.into_iter().find(|(key, _)| normalized(key) == name);
    let (_, texts) = found.ok_or_else(|| {
        let known: Vec<_> = all.dependency_groups.keys().map(String::as_str).collect();
        format!("group `{group}` not found (`[dependency-groups]` has: {})", known.join(", "))
    })?;
    wanted.extend(texts.iter().map(String::as_str));
    Ok(())
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

    #[test]
    fn broken_file_is_reported_with_its_place() {
        let error =
            from_pyproject("pyproject.toml", "[project]\ndependencies = 3\n", &[]).expect_err("refused");
        assert!(error.to_string().contains("invalid `pyproject.toml`:\n  - line 2, column 16"), "{error}");
        assert!(from_pyproject("pyproject.toml", "[tool.x]\n", &[]).is_err());
    }
}

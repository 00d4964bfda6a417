//! The fields of a pyproject.toml that a project without a build has.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use toml::{Table, Value};

use crate::model::requirement_text::beyond_bounds;

/// The version of a project whose own one is computed by a build, or not valid.
pub(super) const UNKNOWN_VERSION: &str = "0+editable";

/// Why a pyproject.toml gives no project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoProject {
    /// It is not TOML.
    Invalid {
        /// The reason, with its line.
        why: String,
    },
    /// It has neither `[project]` nor `[tool.poetry]`.
    Undeclared,
    /// It says that it is not a package.
    NotAPackage {
        /// The setting that says so.
        setting: &'static str,
    },
}

/// What a pyproject.toml declares.
pub(super) struct Declared {
    pub table: Table,
    /// The name, valid.
    pub name: Option<String>,
    pub version: String,
    /// The first word of the build backend: `hatchling`.
    pub backend: Option<String>,
    pub summary: Option<String>,
    pub requires_python: Option<String>,
    /// Requirements, each of one line and valid.
    pub dependencies: Vec<String>,
    pub dynamic: Vec<String>,
    pub notes: Vec<String>,
}

impl Declared {
    pub(super) fn read(text: &str) -> Result<Self, NoProject> {
        let table: Table = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start].lines().count().max(1));
            let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            NoProject::Invalid { why: format!("{place}{}", error.message().trim()) }
        })?;
        let of = |path: &[&str]| at(&table, path);
        let project = of(&["project"]).and_then(Value::as_table).cloned();
        let poetry = of(&["tool", "poetry"]).and_then(Value::as_table).cloned();
        if project.is_none() && poetry.is_none() {
            return Err(NoProject::Undeclared);
        }
        for (path, setting) in [
            (["tool", "uv", "package"].as_slice(), "`[tool.uv] package = false`"),
            (&["tool", "poetry", "package-mode"], "`[tool.poetry] package-mode = false`"),
        ] {
            if of(path).and_then(Value::as_bool) == Some(false) {
                return Err(NoProject::NotAPackage { setting });
            }
        }
        let mut notes = Vec::new();
        let field = |key: &str| {
            let of = |table: &Option<Table>| table.as_ref()?.get(key)?.as_str().map(str::to_owned);
            of(&project).or_else(|| of(&poetry))
        };
        let name = match field("name") {
            Some(name) if is_distribution_name(&name) => Some(name),
            Some(name) => {
                let shown: String = name.chars().take(40).collect();
                notes.push(format!("invalid project name {shown:?}: no metadata and no scripts"));
                None
            }
            None => {
                notes.push("the project has no name: no metadata and no scripts".to_owned());
                None
            }
        };
        let dynamic: Vec<String> = project.iter().flat_map(|table| texts(table.get("dynamic"))).collect();
        let version = match field("version") {
            Some(text) => {
                if let Ok(version) = pep440_rs::Version::from_str(&text) {
                    version.to_string()
                } else {
                    let shown: String = text.chars().take(40).collect();
                    notes.push(format!("invalid version {shown:?}: `{UNKNOWN_VERSION}` instead"));
                    UNKNOWN_VERSION.to_owned()
                }
            }
            None => UNKNOWN_VERSION.to_owned(),
        };
        let one_line = |text: String| (!text.contains(char::is_control)).then_some(text);
        let requires_python = field("requires-python").filter(|text| {
            pep440_rs::VersionSpecifiers::from_str(text).is_ok() && !text.contains(char::is_control)
        });
        let mut dependencies = Vec::new();
        for text in project.iter().flat_map(|table| texts(table.get("dependencies"))) {
            let is_valid = beyond_bounds(&text).is_none()
                && pep508_rs::Requirement::<pep508_rs::VerbatimUrl>::from_str(&text).is_ok();
            if is_valid && !text.contains(char::is_control) {
                dependencies.push(text);
            }
        }
        let backend = of(&["build-system", "build-backend"]).and_then(Value::as_str);
        let backend = backend.map(|text| {
            let first = |c: char| c == '.' || c == ':';
            text.split(first).next().unwrap_or_default().to_owned()
        });
        let backend = backend.or_else(|| project.is_none().then(|| "poetry".to_owned()));
        let summary = field("description").and_then(one_line);
        Ok(Self { table, name, version, backend, summary, requires_python, dependencies, dynamic, notes })
    }

    /// Returns the value at a path of keys.
    pub(super) fn at(&self, path: &[&str]) -> Option<&Value> {
        at(&self.table, path)
    }

    /// Returns the names of the packages that a build requires.
    pub(super) fn build_requires(&self) -> BTreeSet<String> {
        let list = texts(self.at(&["build-system", "requires"]));
        let name = |text: &String| {
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let end = text.find(|c| !is_of_name(c)).unwrap_or(text.len());
            text[..end].to_lowercase().replace(['_', '.'], "-")
        };
        list.iter().map(name).collect()
    }
}

fn at<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(table.get(*first)?, |value, key| value.as_table()?.get(*key))
}

/// Returns the texts of a list.
pub(super) fn texts(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether a text is the name of a distribution: letters, digits, and `-`, `_`, `.` between them.
fn is_distribution_name(text: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    (1..=100).contains(&text.len())
        && is_edge(text.chars().next())
        && is_edge(text.chars().next_back())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

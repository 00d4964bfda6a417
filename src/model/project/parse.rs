//! Parses `envforge.toml`. Reports every mistake with its line and column.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::de::{DeTable, ValueDeserializer};

use super::check::problems;
use super::error::{Place, Problem, ProjectError};
use super::file::{Environment, ProjectFile, SCHEMA};
use crate::model::project::spanned::SpannedValue;
use crate::model::required_version::{self, RequiredVersion};

impl ProjectFile {
    /// Parses a project file; `file` is the name errors use.
    pub fn parse(file: &str, text: &str) -> Result<Self, ProjectError> {
        let invalid = |problems| ProjectError::Invalid { file: file.to_owned(), problems };
        let (mut root, syntax) = DeTable::parse_recoverable(text);
        if !syntax.is_empty() {
            return Err(invalid(syntax.iter().map(|error| problem(text, error)).collect()));
        }
        let table = root.get_mut();
        let mut wrong = Vec::new();
        let range = parsed(take::<SpannedValue<String>>(table, required_version::KEY), text, &mut wrong);
        let required_version = range.and_then(|range| match range.parse::<RequiredVersion>() {
            Ok(required) => Some(required),
            Err(error) => {
                let place = Some(Place::of(text, range.span().start));
                wrong.push(Problem { place, text: error.to_string(), hint: None });
                None
            }
        });
        // Another version may know other keys, so this comes before the rest.
        required_version.iter().try_for_each(|required| required.check(file))?;
        match take::<i64>(table, "schema") {
            Some(Ok(found)) if found == i64::from(SCHEMA) => {}
            Some(Ok(found)) => return Err(ProjectError::OtherSchema { file: file.to_owned(), found }),
            Some(Err(error)) => wrong.push(problem(text, &error)),
            None => {
                let text = format!("missing `schema = {SCHEMA}`");
                wrong.push(Problem { place: None, text, hint: None });
            }
        }
        let name = parsed(take::<SpannedValue<String>>(table, "name"), text, &mut wrong);
        let named = parsed(take::<Tables>(table, "environments"), text, &mut wrong).unwrap_or_default();
        let default =
            parsed(Some(Environment::deserialize(toml::Deserializer::from(root))), text, &mut wrong);
        let read = Self {
            schema: SCHEMA,
            required_version,
            name,
            default: default.unwrap_or_default(),
            environments: named,
        };
        if wrong.is_empty() {
            wrong = problems(&read, text);
        }
        if wrong.is_empty() { Ok(read) } else { Err(invalid(wrong)) }
    }
}

type Tables = BTreeMap<String, Environment>;

/// Removes a key from a table, so that the rest can reject unknown keys.
fn take<'i, T: Deserialize<'i>>(table: &mut DeTable<'i>, key: &str) -> Option<Result<T, toml::de::Error>> {
    table.remove(key).map(|value| T::deserialize(ValueDeserializer::from(value)))
}

fn parsed<T>(read: Option<Result<T, toml::de::Error>>, text: &str, wrong: &mut Vec<Problem>) -> Option<T> {
    match read? {
        Ok(value) => Some(value),
        Err(error) => {
            wrong.push(problem(text, &error));
            None
        }
    }
}

fn problem(text: &str, error: &toml::de::Error) -> Problem {
    let place = error.span().map(|span| Place::of(text, span.start));
    let (text, hint) = in_toml_terms(error.message().trim());
    Problem { place, text, hint }
}

/// Returns a deserializer's message in TOML terms, and the key that was probably intended.
fn in_toml_terms(message: &str) -> (String, Option<String>) {
    let text = message
        .replace("expected a sequence", "expected a list, `[...]`")
        .replace("expected f64", "expected a number")
        // These keys are removed before the rest is parsed.
        .replace(
            "one of `spec`, `framework`",
            "one of `schema`, `required-version`, `name`, `environments`, `spec`, `framework`",
        );
    let mut words =
        text.strip_prefix("unknown field ").into_iter().flat_map(|rest| rest.split('`').skip(1).step_by(2));
    let unknown = words.next().unwrap_or_default().to_lowercase();
    let distance = |known: &&str| strsim::osa_distance(known, &unknown);
    let meant = words.filter(|known| distance(known) <= 2).min_by_key(distance);
    let hint = meant.map(|meant| format!("did you mean `{meant}`?"));
    (text, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Exit, Failure as _};

    #[test]
    fn mistakes_are_reported_in_toml_terms() {
        for (line, says) in [
            ("spce = 'pytorch-cuda'", "did you mean `spec`?"),
            ("[package]", "did you mean `packages`?"),
            ("[packages]\npyton = []", "did you mean `python`?"),
            ("colour = 1", "expected one of `schema`, `required-version`, `name`, `environments`, `spec`"),
            ("run = 'echo hi'", "expected a list, `[...]`"),
            (
                "run = [{ command = 'x', secret = ['hf'] }]",
                "expected a command, or `{ command = \"...\", secrets = [\"NAME\"] }`",
            ),
            ("copy = ['configs']", "expected a table, `{ from = \"configs\", to = \"/opt/configs\" }`"),
            ("[verify]\nchecks = ['true']", "expected a table, `{ name = \"...\", command = \"...\" }`"),
            ("[shell]\ncpus = 'four'", "expected a number"),
        ] {
            let error =
                ProjectFile::parse("envforge.toml", &format!("schema = 1\n{line}\n")).expect_err(line);
            let shown = [error.to_string(), error.hints().join("\n")].concat();
            assert!(shown.contains("line ") && shown.contains(says), "{shown}");
            for word in ["sequence", "struct", "untagged", "f64"] {
                assert!(!shown.contains(word), "{shown}");
            }
        }
    }

    #[test]
    fn required_version_is_checked_before_the_rest() {
        let met = "schema = 1\nrequired-version = '>=0.1'\nspec = 'pytorch-cuda'\n";
        assert!(ProjectFile::parse("envforge.toml", met).expect("met").required_version.is_some());
        let unmet = "schema = 7\nrequired-version = '>=99'\nnews = true\n";
        let error = ProjectFile::parse("envforge.toml", unmet).expect_err("unmet");
        assert!(
            error.to_string().starts_with("`envforge.toml` requires envforge `>=99`, this is "),
            "{error}"
        );
        assert_eq!(error.exit(), Exit::Usage);
        assert!(error.hints()[0].contains("cargo install envforge"), "{:?}", error.hints());
    }

    #[test]
    fn malformed_required_version_is_reported_with_its_place() {
        for (value, reason) in
            [("'newest'", "invalid version range `newest`"), ("2", "invalid type: integer")]
        {
            let text = format!("schema = 1\nspec = 'pytorch-cuda'\nrequired-version = {value}\n");
            let error = ProjectFile::parse("envforge.toml", &text).expect_err(value).to_string();
            assert!(error.contains("line 3, column 20: ") && error.contains(reason), "{error}");
        }
        let nested = "schema = 1\nspec = 'pytorch-cuda'\n[environments.a]\nrequired-version = '>=0.1'\n";
        let error = ProjectFile::parse("envforge.toml", nested).expect_err("top level only").to_string();
        assert!(error.contains("line 4, column 1: unknown field `required-version`"), "{error}");
    }
}

//! The text of an `envforge.toml` to its types. Every mistake is told with its line and column.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::de::{DeTable, ValueDeserializer};

use super::at::At;
use super::check::problems;
use super::error::{Place, Problem, ProjectError};
use super::file::{Environment, ProjectFile, SCHEMA};

impl ProjectFile {
    /// Reads a project file; `file` is the name errors use.
    pub fn parse(file: &str, text: &str) -> Result<Self, ProjectError> {
        let invalid = |problems| ProjectError::Invalid { file: file.to_owned(), problems };
        let (mut root, syntax) = DeTable::parse_recoverable(text);
        if !syntax.is_empty() {
            return Err(invalid(syntax.iter().map(|error| told(text, error)).collect()));
        }
        let table = root.get_mut();
        let mut wrong = Vec::new();
        match take::<i64>(table, "schema") {
            Some(Ok(found)) if found == i64::from(SCHEMA) => {}
            Some(Ok(found)) => return Err(ProjectError::OtherSchema { file: file.to_owned(), found }),
            Some(Err(error)) => wrong.push(told(text, &error)),
            None => {
                let text = format!("`schema = {SCHEMA}` is missing");
                wrong.push(Problem { place: None, text, hint: None });
            }
        }
        let name = kept(take::<At<String>>(table, "name"), text, &mut wrong);
        let named = kept(take::<Tables>(table, "environments"), text, &mut wrong).unwrap_or_default();
        let default = kept(Some(Environment::deserialize(toml::Deserializer::from(root))), text, &mut wrong);
        let read = Self { schema: SCHEMA, name, default: default.unwrap_or_default(), environments: named };
        if wrong.is_empty() {
            wrong = problems(&read, text);
        }
        if wrong.is_empty() { Ok(read) } else { Err(invalid(wrong)) }
    }
}

type Tables = BTreeMap<String, Environment>;

/// Takes a key out of a table, so that what is left can be held to know no other.
fn take<'i, T: Deserialize<'i>>(table: &mut DeTable<'i>, key: &str) -> Option<Result<T, toml::de::Error>> {
    table.remove(key).map(|value| T::deserialize(ValueDeserializer::from(value)))
}

fn kept<T>(read: Option<Result<T, toml::de::Error>>, text: &str, wrong: &mut Vec<Problem>) -> Option<T> {
    match read? {
        Ok(value) => Some(value),
        Err(error) => {
            wrong.push(told(text, &error));
            None
        }
    }
}

fn told(text: &str, error: &toml::de::Error) -> Problem {
    let place = error.span().map(|span| Place::of(text, span.start));
    Problem { place, text: error.message().trim().to_owned(), hint: None }
}

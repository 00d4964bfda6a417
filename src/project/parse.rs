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
    let (text, hint) = in_words_of_toml(error.message().trim());
    Problem { place, text, hint }
}

/// A message of the deserialiser without the words of this program's language, and which key was probably meant.
fn in_words_of_toml(message: &str) -> (String, Option<String>) {
    let text = message
        .replace("expected a sequence", "expected a list, `[...]`")
        .replace("expected f64", "expected a number")
        // These are taken out before the rest is read.
        .replace(
            "one of `spec`, `framework`",
            "one of `schema`, `name`, `environments`, `spec`, `framework`",
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

    #[test]
    fn what_is_written_wrongly_is_told_in_the_words_of_the_file() {
        for (line, says) in [
            ("spce = 'pytorch-cuda'", "did you mean `spec`?"),
            ("[package]", "did you mean `packages`?"),
            ("[packages]\npyton = []", "did you mean `python`?"),
            ("colour = 1", "expected one of `schema`, `name`, `environments`, `spec`"),
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
            let told = [error.to_string(), error.hints().join("\n")].concat();
            assert!(told.contains("line ") && told.contains(says), "{told}");
            for word in ["sequence", "struct", "untagged", "f64"] {
                assert!(!told.contains(word), "{told}");
            }
        }
    }
}

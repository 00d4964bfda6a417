//! Strings of a lock: none holds a control character, since they end up in scripts, labels and on terminals.

use serde_json::Value;

use super::types::Lock;

/// Whether a field's text may have several lines: commands and variables of the user.
fn may_have_lines(kind: &str) -> bool {
    let is_command = matches!(kind, "added.run[].command" | "added.checks[].command");
    is_command || kind.starts_with("added.variables.") || kind.starts_with("environment.")
}

/// A control character in a lock.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ControlCharacter {
    /// The field: `wheels[3].version`.
    pub(super) field: String,
    /// The character.
    pub(super) character: char,
}

/// Returns the first control character of a lock.
pub(super) fn control_character(lock: &Lock) -> Option<ControlCharacter> {
    let value = serde_json::to_value(lock).expect("every value of a lock has a JSON form");
    find(&value, "", "")
}

/// Searches a value; `kind` is its field without the numbers.
fn find(value: &Value, field: &str, kind: &str) -> Option<ControlCharacter> {
    let below =
        |path: &str, name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::String(text) => {
            let with_lines = may_have_lines(kind);
            let allowed = |character: char| with_lines && matches!(character, '\n' | '\t');
            let character = text.chars().find(|character| character.is_control() && !allowed(*character))?;
            Some(ControlCharacter { field: field.to_owned(), character })
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(number, item)| find(item, &format!("{field}[{number}]"), &format!("{kind}[]"))),
        Value::Object(members) => members.iter().find_map(|(name, value)| {
            let of_name = name.chars().find(|character| character.is_control());
            let of_name = of_name.map(|character| ControlCharacter { field: field.to_owned(), character });
            of_name.or_else(|| find(value, &below(field, name), &below(kind, name)))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;

    fn found(change: impl FnOnce(&mut Lock)) -> Option<String> {
        let mut lock = sample::lock();
        change(&mut lock);
        control_character(&lock).map(|found| format!("{} U+{:04X}", found.field, u32::from(found.character)))
    }

    #[test]
    fn error_names_the_field_of_a_control_character() {
        assert_eq!(found(|_| {}), None);
        assert_eq!(found(|lock| lock.stack.suite = "a\nb".into()).as_deref(), Some("stack.suite U+000A"));
        let version = found(|lock| lock.wheels[0].version = "\u{1b}[31m".into());
        assert_eq!(version.as_deref(), Some("wheels[0].version U+001B"));
        let name = found(|lock| drop(lock.environment.insert("A\nB".into(), "b".into())));
        assert_eq!(name.as_deref(), Some("environment U+000A"));
        assert_eq!(found(|lock| lock.spec.push('\u{85}')).as_deref(), Some("spec U+0085"));
        let because = found(|lock| lock.stack.reasons[0].because.push('\r'));
        assert_eq!(because.as_deref(), Some("stack.reasons[0].because U+000D"));
    }

    #[test]
    fn commands_and_variables_may_have_lines_and_tabs_only() {
        use crate::model::lock::{LockedCheck, LockedRun};
        let text = "a\n\tb".to_owned();
        assert_eq!(found(|lock| drop(lock.environment.insert("A".into(), text.clone()))), None);
        assert_eq!(found(|lock| drop(lock.added.variables.insert("A".into(), text.clone()))), None);
        let run = |command: &str| LockedRun { command: command.to_owned(), secrets: Vec::new() };
        assert_eq!(found(|lock| lock.added.run.push(run(&text))), None);
        let check = |command: String| LockedCheck { name: "n".into(), command };
        assert_eq!(found(|lock| lock.added.checks.push(check(text.clone()))), None);
        let escape = found(|lock| lock.added.run.push(run("\u{1b}")));
        assert_eq!(escape.as_deref(), Some("added.run[0].command U+001B"));
    }
}

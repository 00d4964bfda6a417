//! Scripts and plugins that a project declares.

use std::collections::BTreeMap;

use toml::Value;

use super::reader::Declared;
use crate::model::visible::is_hidden;

/// The declared entry points, each checked: groups in their order, names in theirs.
#[derive(Debug, Default)]
pub(super) struct EntryPoints {
    /// Groups with names and objects.
    pub groups: BTreeMap<String, BTreeMap<String, String>>,
    /// Names of programs with module and function.
    pub scripts: BTreeMap<String, (String, String)>,
}

const CONSOLE: &str = "console_scripts";
const GUI: &str = "gui_scripts";

/// Reads the entry points; what is not valid is left out and named.
pub(super) fn read(declared: &Declared, notes: &mut Vec<String>) -> EntryPoints {
    let mut found = EntryPoints::default();
    if declared.name.is_none() {
        return found;
    }
    let table = |path: &[&str]| declared.at(path).and_then(Value::as_table).cloned().unwrap_or_default();
    for (path, group) in [
        (["project", "scripts"].as_slice(), CONSOLE),
        (&["project", "gui-scripts"], GUI),
        (&["tool", "poetry", "scripts"], CONSOLE),
    ] {
        for (name, value) in table(path) {
            // Poetry also has tables, and files that are copied.
            let reference = value.as_str().or_else(|| value.get("reference")?.as_str());
            match reference {
                Some(reference) => found.add(group, &name, reference, notes),
                None => notes.push(format!("script {name:?} names no function: left out")),
            }
        }
    }
    for path in [["project", "entry-points"].as_slice(), &["tool", "poetry", "plugins"]] {
        for (group, members) in table(path) {
            let is_word = |part: &str| is_identifier(part);
            if !group.split('.').all(|part| is_word(&part.replace('-', "_")))
                || [CONSOLE, GUI].contains(&&*group)
            {
                notes.push(format!("invalid group of entry points {group:?}: left out"));
                continue;
            }
            for (name, reference) in members.as_table().cloned().unwrap_or_default() {
                found.add(&group, &name, reference.as_str().unwrap_or_default(), notes);
            }
        }
    }
    for field in ["scripts", "gui-scripts", "entry-points"] {
        if declared.dynamic.iter().any(|one| one == field) {
            notes.push(format!("`{field}` is computed by a build: not made"));
        }
    }
    found
}

impl EntryPoints {
    fn add(&mut self, group: &str, name: &str, reference: &str, notes: &mut Vec<String>) {
        let is_script = [CONSOLE, GUI].contains(&group);
        let what = if is_script { "script" } else { "entry point" };
        let parsed = object(reference);
        let is_named = if is_script { is_script_name(name) } else { is_entry_name(name) };
        let Some((module, function)) = parsed.filter(|_| is_named) else {
            notes.push(format!("invalid {what} {name:?} = {reference:?}: left out"));
            return;
        };
        if is_script {
            let Some(function) = function else {
                notes.push(format!("{what} {name:?} names no function: left out"));
                return;
            };
            self.scripts.insert(name.to_owned(), (module, function));
        }
        let members = self.groups.entry(group.to_owned()).or_default();
        members.insert(name.to_owned(), reference.trim().to_owned());
    }

    /// Returns the text of `entry_points.txt`.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (group, members) in &self.groups {
            let lines: Vec<String> =
                members.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
            text = format!("{text}[{group}]\n{}\n", lines.concat());
        }
        text
    }
}

/// Reads `module.path:object.path [extras]`: its module and its object.
fn object(reference: &str) -> Option<(String, Option<String>)> {
    let reference = reference.trim();
    let (reference, extras) = match reference.split_once('[') {
        Some((reference, extras)) => (reference.trim(), extras.strip_suffix(']')?),
        None => (reference, "x"),
    };
    let is_extra = |text: &str| {
        let text = text.trim();
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    if !extras.split(',').all(is_extra) {
        return None;
    }
    let (module, function) = match reference.split_once(':') {
        Some((module, function)) => (module.trim(), Some(function.trim())),
        None => (reference, None),
    };
    let is_path = |text: &str| text.split('.').all(is_identifier);
    if !is_path(module) || !function.is_none_or(is_path) {
        return None;
    }
    Some((module.to_owned(), function.map(str::to_owned)))
}

/// Whether a text is a name of Python and no keyword that an import cannot name.
fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    let first = chars.next().is_some_and(|c| c.is_alphabetic() || c == '_');
    first && chars.all(|c| c.is_alphanumeric() || c == '_')
}

/// Whether a program may have that name: it becomes a file.
fn is_script_name(name: &str) -> bool {
    let lower = name.to_lowercase();
    let is_interpreter = lower.strip_prefix("python").is_some_and(|rest| {
        rest.is_empty() || rest == "w" || rest.chars().all(|c| c.is_ascii_digit() || c == '.')
    });
    (1..=100).contains(&name.len())
        && !is_interpreter
        && name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// Whether a plugin may have that name: it becomes a key of a line.
fn is_entry_name(name: &str) -> bool {
    let is_edge = |c: char| c.is_whitespace() || "[]#;".contains(c);
    (1..=200).contains(&name.chars().count())
        && !name.contains(['=', ':'])
        && !name.contains(is_hidden)
        && !name.starts_with(is_edge)
        && !name.ends_with(char::is_whitespace)
}

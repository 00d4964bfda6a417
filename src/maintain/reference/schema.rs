//! A JSON schema as a page: each table a section, each key a heading with its type and description.

use serde_json::{Map, Value};

use crate::model::markdown::{MarkdownPage, code};

/// Adds every key of a schema.
pub(super) fn schema_page(page: &mut MarkdownPage, root: &Value) {
    let reader = Reader { root };
    page.paragraph(reader.description(root));
    reader.keys(page, root, "", 2);
}

struct Reader<'a> {
    root: &'a Value,
}

impl<'a> Reader<'a> {
    /// Adds the keys of a table: single keys first, then the tables in it.
    fn keys(&self, page: &mut MarkdownPage, table: &'a Value, path: &str, level: usize) {
        let all: Vec<_> = properties(table).into_iter().flatten().collect();
        let (tables, keys): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, key)| self.is_table(key));
        for (name, key) in keys {
            let path = join(path, name);
            page.heading(level, &code(&path));
            let required = if is_required(table, name) { "; required" } else { "" };
            page.paragraph(&format!("Type: {}{required}.{}", self.type_of(key), default(key)));
            page.paragraph(self.description(key));
            self.fields(page, key);
        }
        for (name, key) in tables {
            let path = join(path, name);
            page.heading(level, &code(&format!("[{path}]")));
            page.paragraph(self.description(key));
            self.keys(page, self.resolve(key), &path, level + 1);
        }
    }

    /// Lists the keys of inline tables that a value may be.
    fn fields(&self, page: &mut MarkdownPage, key: &'a Value) {
        for shape in self.shapes(key) {
            let Some(found) = properties(shape) else { continue };
            // A named environment has the keys of the page again.
            if properties(self.root).is_some_and(|root| found.keys().all(|name| root.contains_key(name))) {
                page.paragraph("Each value has the same keys as the top level of the file.");
                continue;
            }
            page.list(found.iter().map(|(name, field)| {
                // One of several tables with one key each is described as a whole.
                let is_alternative = found.len() == 1 && self.description(field).is_empty();
                let required = if is_required(shape, name) && !is_alternative { ", required" } else { "" };
                let description = self.description(if is_alternative { shape } else { field });
                format!("{} ({}{required}): {description}", code(name), self.type_of(field))
            }));
        }
    }

    /// The tables among the values that a key allows, below lists, maps and alternatives.
    fn shapes(&self, key: &'a Value) -> Vec<&'a Value> {
        let key = self.resolve(key);
        if properties(key).is_some() {
            return vec![key];
        }
        let inner = [key.get("items"), key.get("additionalProperties").filter(|value| value.is_object())];
        let alternatives =
            ["anyOf", "oneOf"].into_iter().filter_map(|name| key.get(name)?.as_array()).flatten();
        inner.into_iter().flatten().chain(alternatives).flat_map(|value| self.shapes(value)).collect()
    }

    fn is_table(&self, key: &'a Value) -> bool {
        properties(self.resolve(key)).is_some()
    }

    /// Follows a reference.
    fn resolve(&self, key: &'a Value) -> &'a Value {
        let target = key
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|path| self.root.pointer(path.strip_prefix('#')?));
        target.map_or(key, |target| self.resolve(target))
    }

    /// Returns the key's own description, else that of its type.
    fn description(&self, key: &'a Value) -> &'a str {
        let own = key.get("description").or_else(|| self.resolve(key).get("description"));
        own.and_then(Value::as_str).unwrap_or_default()
    }

    fn type_of(&self, key: &'a Value) -> String {
        let key = self.resolve(key);
        if let Some(value) = key.get("const").and_then(Value::as_str) {
            return code(value);
        }
        if let Some(values) = key.get("enum").and_then(Value::as_array) {
            return values.iter().filter_map(Value::as_str).map(code).collect::<Vec<_>>().join(" or ");
        }
        let alternatives = ["anyOf", "oneOf"].into_iter().find_map(|name| key.get(name)?.as_array());
        if let Some(values) = alternatives {
            let mut all: Vec<_> =
                values.iter().map(|value| self.type_of(value)).filter(|text| text != "null").collect();
            all.dedup();
            return all.join(" or ");
        }
        let name = match key.get("type") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).find(|name| *name != "null"),
            Some(name) => name.as_str(),
            None => None,
        };
        match name {
            Some("array") => format!("list, each a {}", self.type_of(&key["items"])),
            Some("object") => match key.get("additionalProperties").filter(|value| value.is_object()) {
                Some(value) => format!("table, each value a {}", self.type_of(value)),
                None => "table".to_owned(),
            },
            Some(name) => name.to_owned(),
            None => "any".to_owned(),
        }
    }
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

fn is_required(table: &Value, name: &str) -> bool {
    let required = table.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

/// Returns the default of a key, where it says something.
fn default(key: &Value) -> String {
    match key.get("default") {
        Some(Value::Bool(value)) => format!(" Default: `{value}`."),
        _ => String::new(),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

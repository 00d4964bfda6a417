//! Packages added to and removed from the text of an `envforge.toml`. Comments, order and layout of the rest are kept.

use serde::Serialize;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::file::PythonEntry;
use super::requirement::requirement_name;

/// A list of packages in `[packages]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageList {
    /// Python requirements.
    Python,
    /// Distribution packages.
    Apt,
}

impl PackageList {
    fn key(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Apt => "apt",
        }
    }

    /// Returns the name by which an entry is known again: normalized for Python.
    fn name(self, text: &str) -> String {
        match self {
            Self::Python => requirement_name(text).unwrap_or_else(|_| text.to_owned()),
            Self::Apt => text.to_owned(),
        }
    }
}

/// An entry that was added, replaced or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PackageChange {
    /// The package's name.
    pub name: String,
    /// The entry before; null: there was none.
    pub from: Option<String>,
    /// The entry now; null: it was removed.
    pub to: Option<String>,
}

/// A package to remove that the list does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotListed {
    /// Its name.
    pub name: String,
    /// The names in the list.
    pub listed: Vec<String>,
    /// Other environments whose lists have it; an empty name is the default environment.
    pub elsewhere: Vec<String>,
}

/// The text of an `envforge.toml` in which one list of packages of one environment is edited.
pub struct PackageEdit {
    document: DocumentMut,
    environment: Option<String>,
    list: PackageList,
    has_crlf: bool,
    changes: Vec<PackageChange>,
}

impl PackageEdit {
    /// Begins with a text that [`ProjectFile::parse`](super::ProjectFile::parse) accepts; `environment` is one of its names.
    pub fn of(text: &str, environment: Option<&str>, list: PackageList) -> Result<Self, String> {
        let document = text.parse::<DocumentMut>().map_err(|error| error.message().to_owned())?;
        let environment = environment.map(str::to_owned);
        Ok(Self { document, environment, list, has_crlf: text.contains("\r\n"), changes: Vec::new() })
    }

    /// Adds an entry, or replaces the one of the same package where it is; an index of its own stays unless the new one names another.
    pub fn add(&mut self, entry: &PythonEntry) {
        let list = self.list;
        let name = list.name(entry.text());
        let array = packages(&mut self.document, self.environment.as_deref())
            .entry(list.key())
            .or_insert_with(|| Item::Value(Value::Array(Array::new())))
            .as_array_mut();
        let Some(array) = array else { return };
        let mut places = places(array, list, &name);
        let from = joined(array, &places);
        if places.is_empty() {
            append(array, value_of(entry));
        } else {
            let first = places.remove(0);
            for place in places.into_iter().rev() {
                remove(array, place);
            }
            replace(array, first, entry);
        }
        self.changes.push(PackageChange { name, from, to: Some(entry.text().to_owned()) });
    }

    /// Removes all entries of a package.
    pub fn remove(&mut self, text: &str) -> Result<(), NotListed> {
        let list = self.list;
        let name = list.name(text);
        let found = packages_of(self.document.as_table_mut(), self.environment.as_deref())
            .and_then(|packages| packages.get_mut(list.key())?.as_array_mut());
        let places = found.as_deref().map(|array| places(array, list, &name)).unwrap_or_default();
        let Some(array) = found.filter(|_| !places.is_empty()) else {
            let environment = self.environment.clone();
            let listed = self.names(environment.as_deref());
            return Err(NotListed { elsewhere: self.environments_with(&name), name, listed });
        };
        let from = joined(array, &places);
        for place in places.into_iter().rev() {
            remove(array, place);
        }
        self.changes.push(PackageChange { name, from, to: None });
        Ok(())
    }

    /// Returns the edited text, with the line ends of the text before, and what was changed.
    pub fn finish(self) -> (String, Vec<PackageChange>) {
        let text = self.document.to_string();
        let text = if self.has_crlf { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text };
        (text, self.changes)
    }

    /// The names in the list of an environment alone.
    fn names(&mut self, environment: Option<&str>) -> Vec<String> {
        let list = self.list;
        let array = packages_of(self.document.as_table_mut(), environment)
            .and_then(|packages| packages.get(list.key())?.as_array());
        array.into_iter().flatten().filter_map(text_of).map(|text| list.name(text)).collect()
    }

    fn environments_with(&mut self, name: &str) -> Vec<String> {
        let named = self.document.get("environments").and_then(Item::as_table_like);
        let named: Vec<String> =
            named.into_iter().flat_map(TableLike::iter).map(|(key, _)| key.to_owned()).collect();
        let has = |edit: &mut Self, environment: Option<&str>| {
            environment != edit.environment.as_deref()
                && edit.names(environment).iter().any(|known| known == name)
        };
        let own = has(self, None).then(String::new);
        own.into_iter().chain(named.into_iter().filter(|other| has(self, Some(other)))).collect()
    }
}

/// The table of packages of an environment, made if it is not there.
fn packages<'a>(document: &'a mut DocumentMut, environment: Option<&str>) -> &'a mut dyn TableLike {
    let mut table: &mut dyn TableLike = document.as_table_mut();
    let path = environment.into_iter().flat_map(|name| ["environments", name]).chain(["packages"]);
    for key in path {
        // A table of its own only where its parent is one: an inline table takes values alone.
        let item = table.entry(key).or_insert_with(|| Item::Table(Table::new()));
        if item.is_none() || !item.is_table_like() {
            *item = Item::Value(Value::InlineTable(InlineTable::new()));
        }
        table = item.as_table_like_mut().expect("it is one, or was made one");
    }
    table
}

/// The same, if it is there.
fn packages_of<'a>(root: &'a mut Table, environment: Option<&str>) -> Option<&'a mut dyn TableLike> {
    let mut table: &mut dyn TableLike = root;
    for key in environment.into_iter().flat_map(|name| ["environments", name]).chain(["packages"]) {
        table = table.get_mut(key)?.as_table_like_mut()?;
    }
    Some(table)
}

/// The requirement or name of an entry.
fn text_of(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.as_inline_table()?.get("name")?.as_str())
}

fn places(array: &Array, list: PackageList, name: &str) -> Vec<usize> {
    let is_it = |value: &Value| text_of(value).is_some_and(|text| list.name(text) == name);
    array.iter().enumerate().filter(|(_, value)| is_it(value)).map(|(place, _)| place).collect()
}

fn joined(array: &Array, places: &[usize]) -> Option<String> {
    let texts: Vec<_> = places.iter().filter_map(|place| text_of(array.get(*place)?)).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

fn value_of(entry: &PythonEntry) -> Value {
    match entry {
        PythonEntry::Requirement(text) => Value::from(text.as_str()),
        PythonEntry::OfIndex(entry) => {
            let mut table = InlineTable::new();
            table.insert("name", Value::from(entry.name.as_str()));
            table.insert("index", Value::from(entry.index.as_str()));
            Value::InlineTable(table)
        }
    }
}

fn replace(array: &mut Array, place: usize, entry: &PythonEntry) {
    let Some(old) = array.get_mut(place) else { return };
    let decor = old.decor().clone();
    if let (Some(table), PythonEntry::Requirement(text)) = (old.as_inline_table_mut(), entry) {
        table.insert("name", Value::from(text.as_str()));
        return;
    }
    *old = value_of(entry);
    *old.decor_mut() = decor;
}

/// What lies before an element: blanks, line ends, comments.
fn prefix(value: &Value) -> String {
    value.decor().prefix().and_then(|text| text.as_str()).unwrap_or_default().to_owned()
}

fn suffix(value: &Value) -> String {
    value.decor().suffix().and_then(|text| text.as_str()).unwrap_or_default().to_owned()
}

/// The end of a text from its first line end on: without a comment that ends the line before.
fn from_line_end(text: &str) -> &str {
    text.find('\n').map_or("", |at| &text[at..])
}

fn append(array: &mut Array, mut value: Value) {
    let before = array.iter().last().map(|last| (prefix(last), suffix(last)));
    let Some((last_prefix, last_suffix)) = before else {
        // A comment of a list without elements stays before the first.
        let inside = array.trailing().as_str().unwrap_or_default().to_owned();
        if inside.contains('\n') {
            value.decor_mut().set_prefix(format!("{}\n    ", inside.trim_end()));
            array.set_trailing("\n");
            array.set_trailing_comma(true);
        }
        array.push_formatted(value);
        return;
    };
    let trailing = array.trailing().as_str().unwrap_or_default().to_owned();
    let (comment, end) =
        if array.trailing_comma() { (trailing.clone(), trailing) } else { (last_suffix, trailing) };
    let is_tall = last_prefix.contains('\n') || comment.contains('\n') || end.contains('\n');
    if !is_tall {
        value.decor_mut().set_prefix(" ");
        array.push_formatted(value);
        return;
    }
    let indent = last_prefix.rsplit('\n').next().filter(|_| last_prefix.contains('\n')).unwrap_or("    ");
    value.decor_mut().set_prefix(format!("{}\n{indent}", comment.trim_end()));
    let last = array.len() - 1;
    if let Some(last) = array.get_mut(last).filter(|_| !comment.is_empty()) {
        last.decor_mut().set_suffix("");
    }
    array.push_formatted(value);
    array.set_trailing("\n");
    array.set_trailing_comma(true);
}

/// Removes an element and the comment behind it on its line. Comments on lines of their own stay.
fn remove(array: &mut Array, place: usize) {
    let removed = array.remove(place);
    let above = prefix(&removed);
    match array.get_mut(place) {
        // The next takes over what lies above, and leaves the comment of the removed one.
        Some(next) if prefix(next).contains('\n') => {
            let own = from_line_end(&prefix(next)).to_owned();
            next.decor_mut().set_prefix(format!("{}{own}", above.trim_end()));
        }
        Some(next) => next.decor_mut().set_prefix(above),
        None => {
            let trailing = array.trailing().as_str().unwrap_or_default().to_owned();
            let own = format!("{}{}", from_line_end(&suffix(&removed)), from_line_end(&trailing));
            let own = if own.contains('\n') { format!("\n{}", own.trim_start()) } else { String::new() };
            array.set_trailing(format!("{}{own}", above.trim_end()));
            if array.is_empty() {
                array.set_trailing_comma(false);
            }
        }
    }
}

#[cfg(test)]
#[path = "package_edit_tests.rs"]
mod tests;

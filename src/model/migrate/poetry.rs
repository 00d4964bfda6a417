//! Poetry's tables of pyproject.toml; its tables of dependencies are those of pipenv, too.

use std::collections::BTreeMap;
use std::str::FromStr as _;

use pep508_rs::MarkerTree;
use toml::{Table, Value};

use super::conditions::alternatives;
use super::index_use::IndexUse;
use super::place::Origin;
use super::pythons::condition;
use super::reading::{Asked, Offered, PythonFact, Reading};
use super::requirement_line::{Line, line, normalized};
use super::requirements::wheel_python;

/// Reads `[tool.poetry]`.
pub(super) fn read(reading: &mut Reading, poetry: &Table, text: &str, indexes: &mut IndexUse) {
    reading.is_readable_by_lock = false;
    for source in poetry.get("source").and_then(Value::as_array).into_iter().flatten() {
        let text_of = |key: &str| source.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        indexes.declare(&text_of("name"), &text_of("url"), false);
    }
    if let Some(table) = poetry.get("dependencies").and_then(Value::as_table) {
        let Dependencies { packages, optional } = dependencies(reading, table, text, indexes);
        reading.packages.extend(packages);
        extras(reading, poetry, &optional, text);
    }
    for (name, packages) in groups(reading, poetry, text, indexes) {
        let origin = Origin::holding(&reading.file, text, &name);
        reading.offered.push(Offered::of(origin, &name, "dependency group", packages));
    }
}

/// Offers the extras, which are lists of names of optional packages, and notes each optional package that no extra names.
fn extras(reading: &mut Reading, poetry: &Table, optional: &[Asked], text: &str) {
    let mut by_name: BTreeMap<&str, Vec<&Asked>> = BTreeMap::new();
    for asked in optional {
        by_name.entry(&asked.name).or_default().push(asked);
    }
    let mut named = Vec::new();
    for (name, list) in poetry.get("extras").and_then(Value::as_table).into_iter().flatten() {
        let names = list.as_array().into_iter().flatten().filter_map(Value::as_str).map(normalized);
        let names: Vec<_> = names.collect();
        let packages = names.iter().flat_map(|name| by_name.get(name.as_str()).into_iter().flatten());
        let packages: Vec<Asked> = packages.map(|asked| (*asked).clone()).collect();
        named.extend(names);
        let origin = Origin::holding(&reading.file, text, &format!("{name} ="));
        reading.offered.push(Offered::of(origin, name, "extra", packages));
    }
    for asked in optional.iter().filter(|asked| !named.contains(&asked.name)) {
        let why = "optional, and in no extra: add it to `python` if the image needs it";
        reading.leave(asked.origin.clone(), &asked.written, why);
    }
}

/// Reads the groups, by name.
fn groups(
    reading: &mut Reading,
    poetry: &Table,
    text: &str,
    indexes: &mut IndexUse,
) -> Vec<(String, Vec<Asked>)> {
    let mut all = Vec::new();
    if let Some(table) = poetry.get("dev-dependencies").and_then(Value::as_table) {
        all.push(("dev".to_owned(), dependencies(reading, table, text, indexes).all()));
    }
    let groups = poetry.get("group").and_then(Value::as_table);
    for (name, group) in groups.into_iter().flatten() {
        if let Some(table) = group.get("dependencies").and_then(Value::as_table) {
            all.push((name.clone(), dependencies(reading, table, text, indexes).all()));
        }
    }
    all
}

/// The packages of a table.
#[derive(Default)]
pub(super) struct Dependencies {
    /// Those that are installed.
    pub packages: Vec<Asked>,
    /// Those that only an extra installs.
    pub optional: Vec<Asked>,
}

impl Dependencies {
    /// All of them.
    pub(super) fn all(self) -> Vec<Asked> {
        self.packages.into_iter().chain(self.optional).collect()
    }
}

/// Reads a table of dependencies.
pub(super) fn dependencies(
    reading: &mut Reading,
    table: &Table,
    text: &str,
    indexes: &mut IndexUse,
) -> Dependencies {
    let mut found = Dependencies::default();
    for (name, value) in table {
        if normalized(name) == "python" {
            python(reading, value, text);
            continue;
        }
        // Several constraints of one package, each with its marker.
        let all: Vec<&Value> = value.as_array().map_or_else(|| vec![value], |list| list.iter().collect());
        for one in all {
            let Some(asked) = dependency(reading, name, one, text, indexes) else { continue };
            let is_optional = one.get("optional").and_then(Value::as_bool) == Some(true);
            if is_optional { found.optional.push(asked) } else { found.packages.push(asked) }
        }
    }
    found
}

fn python(reading: &mut Reading, value: &Value, text: &str) {
    let written = value.as_str().or_else(|| value.get("version")?.as_str()).unwrap_or_default();
    let origin = Origin::holding(&reading.file, text, written);
    match condition(written) {
        Some(versions) => {
            reading.python.push(PythonFact { origin, versions, by: format!("python = \"{written}\"") });
        }
        None => reading.leave(origin, &format!("python = \"{written}\""), "not a condition on Python"),
    }
}

fn dependency(
    reading: &mut Reading,
    name: &str,
    value: &Value,
    text: &str,
    indexes: &mut IndexUse,
) -> Option<Asked> {
    let origin = Origin::holding(&reading.file, text, &format!("{name} ="));
    let origin = if origin.line.is_some() { origin } else { Origin::holding(&reading.file, text, name) };
    let field = |key: &str| value.get(key).and_then(Value::as_str);
    for key in ["git", "path", "url", "file"] {
        if let Some(place) = field(key) {
            if key == "path" && place.trim_end_matches('/') == "." {
                let why = "the project's own code: it is mounted";
                reading.keep(origin, &format!("{name} = {{ path = \"{place}\" }}"), why);
                return None;
            }
            let place = if key == "git" { format!("git+{place}") } else { place.to_owned() };
            let why = match line(&format!("{name} @ {place}"), &origin) {
                Line::Not(why) => why,
                // The release is in the name of the wheel.
                Line::Wheel { asked, python } => {
                    let marker = markers_of(value);
                    wheel_python(reading, python.filter(|_| marker.is_empty()), &origin, &place);
                    return with_marker(*asked, &marker);
                }
                Line::Package(_) => "an address: packages come from an index, pinned by hash; give the file with `--wheel FILE`".to_owned(),
            };
            reading.leave(origin, &format!("{name} = {{ {key} = \"{place}\" }}"), why);
            return None;
        }
    }
    let written = value.as_str().or_else(|| field("version")).unwrap_or("*");
    let (plain, local) = crate::model::local_version::without_local(written);
    let Some(found) = alternatives(&plain) else {
        reading.leave(origin, &format!("{name} = \"{written}\""), "not a condition on versions");
        return None;
    };
    let versions = found.versions;
    if found.is_one_of_several {
        let why = format!("alternatives that no list of conditions says: {versions}, the newest of them");
        reading.change(origin.clone(), &format!("{name} = \"{written}\""), why);
    }
    let extras: Vec<_> = value.get("extras").and_then(Value::as_array).into_iter().flatten().collect();
    let extras: Vec<_> = extras.into_iter().filter_map(Value::as_str).collect();
    let extras = if extras.is_empty() { String::new() } else { format!("[{}]", extras.join(",")) };
    let marker = markers_of(value);
    let marker = if marker.is_empty() { marker } else { format!(" ; {marker}") };
    let requirement = format!(
        "{name}{extras}{}{marker}",
        versions.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    );
    let mut asked = match line(&requirement, &origin) {
        Line::Package(asked) => *asked,
        Line::Wheel { .. } => return None,
        Line::Not(why) => {
            reading.leave(origin, &requirement, why);
            return None;
        }
    };
    asked.local = local;
    asked.written = format!("{name} = \"{written}\"");
    if let Some(source) = field("source").or_else(|| field("index")) {
        indexes.used(reading, &mut asked, source);
    }
    Some(asked)
}

/// The marker of a dependency, of all its keys; empty: none.
fn markers_of(value: &Value) -> String {
    let field = |key: &str| value.get(key).and_then(Value::as_str);
    let mut markers: Vec<String> = field("markers").map(|one| format!("({one})")).into_iter().collect();
    match field("platform") {
        Some(platform) if !["linux", "linux2"].contains(&platform) => {
            markers.push(format!("sys_platform == '{platform}'"));
        }
        _ => {}
    }
    markers.extend(MARKERS.iter().filter_map(|key| Some(format!("{key} {}", field(key)?))));
    if let Some(versions) = field("python").and_then(condition) {
        markers.extend(
            versions.iter().map(|one| format!("python_version {} '{}'", one.operator(), one.version())),
        );
    }
    markers.join(" and ")
}

/// A package with a marker; `None` if the text is not one.
fn with_marker(mut asked: Asked, marker: &str) -> Option<Asked> {
    if !marker.is_empty() {
        asked.marker = MarkerTree::from_str(marker).ok()?;
    }
    Some(asked)
}

/// Parts of a marker that pipenv writes as keys: `sys_platform = "== 'linux'"`.
const MARKERS: [&str; 5] =
    ["sys_platform", "os_name", "platform_machine", "platform_system", "python_version"];

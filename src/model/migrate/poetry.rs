//! Poetry's tables of pyproject.toml, and its conditions on versions.

use toml::{Table, Value};

use super::conditions::specifiers;
use super::index_use::IndexUse;
use super::place::Origin;
use super::pythons::condition;
use super::reading::{Offered, PythonFact, Reading};
use super::requirement_line::{Line, line, normalized};

/// Reads `[tool.poetry]`.
pub(super) fn read(reading: &mut Reading, poetry: &Table, text: &str, indexes: &mut IndexUse) {
    reading.is_readable_by_lock = false;
    for source in poetry.get("source").and_then(Value::as_array).into_iter().flatten() {
        let text_of = |key: &str| source.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        indexes.declare(&text_of("name"), &text_of("url"), false);
    }
    if let Some(table) = poetry.get("dependencies").and_then(Value::as_table) {
        let packages = dependencies(reading, table, text, indexes);
        reading.packages.extend(packages);
    }
    for (name, packages) in optional_packages(reading, poetry, text, indexes) {
        let origin = Origin::holding(&reading.file, text, &name);
        reading.offered.push(Offered::of(origin, &name, "dependency group", packages));
    }
}

fn optional_packages(
    reading: &mut Reading,
    poetry: &Table,
    text: &str,
    indexes: &mut IndexUse,
) -> Vec<(String, Vec<super::reading::Asked>)> {
    let mut all = Vec::new();
    if let Some(table) = poetry.get("dev-dependencies").and_then(Value::as_table) {
        all.push(("dev".to_owned(), dependencies(reading, table, text, indexes)));
    }
    let groups = poetry.get("group").and_then(Value::as_table);
    for (name, group) in groups.into_iter().flatten() {
        if let Some(table) = group.get("dependencies").and_then(Value::as_table) {
            all.push((name.clone(), dependencies(reading, table, text, indexes)));
        }
    }
    all
}

/// Reads a table of dependencies.
fn dependencies(
    reading: &mut Reading,
    table: &Table,
    text: &str,
    indexes: &mut IndexUse,
) -> Vec<super::reading::Asked> {
    let mut found = Vec::new();
    for (name, value) in table {
        if normalized(name) == "python" {
            python(reading, value, text);
            continue;
        }
        // Several constraints of one package, each with its marker.
        let all: Vec<&Value> = value.as_array().map_or_else(|| vec![value], |list| list.iter().collect());
        for one in all {
            found.extend(dependency(reading, name, one, text, indexes));
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
) -> Option<super::reading::Asked> {
    let origin = Origin::holding(&reading.file, text, &format!("{name} ="));
    let origin = if origin.line.is_some() { origin } else { Origin::holding(&reading.file, text, name) };
    let field = |key: &str| value.get(key).and_then(Value::as_str);
    for key in ["git", "path", "url", "file"] {
        if let Some(place) = field(key) {
            let place = if key == "git" { format!("git+{place}") } else { place.to_owned() };
            let why = match line(&format!("{name} @ {place}"), &origin) {
                Line::Not(why) => why,
                _ => "an address: packages come from an index, pinned by hash; give the file with `--wheel FILE`".to_owned(),
            };
            reading.leave(origin, &format!("{name} = {{ {key} = \"{place}\" }}"), why);
            return None;
        }
    }
    let written = value.as_str().or_else(|| field("version")).unwrap_or("*");
    let (plain, local) = crate::model::local_version::without_local(written);
    let Some(versions) = specifiers(&plain) else {
        reading.leave(origin, &format!("{name} = \"{written}\""), "not a condition on versions");
        return None;
    };
    let extras: Vec<_> = value.get("extras").and_then(Value::as_array).into_iter().flatten().collect();
    let extras: Vec<_> = extras.into_iter().filter_map(Value::as_str).collect();
    let extras = if extras.is_empty() { String::new() } else { format!("[{}]", extras.join(",")) };
    let mut markers: Vec<String> = field("markers").map(|one| format!("({one})")).into_iter().collect();
    match field("platform") {
        Some(platform) if !["linux", "linux2"].contains(&platform) => {
            markers.push(format!("sys_platform == '{platform}'"));
        }
        _ => {}
    }
    if let Some(versions) = field("python").and_then(condition) {
        markers.extend(
            versions.iter().map(|one| format!("python_version {} '{}'", one.operator(), one.version())),
        );
    }
    let marker = if markers.is_empty() { String::new() } else { format!(" ; {}", markers.join(" and ")) };
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
    if let Some(source) = field("source") {
        indexes.used(reading, &mut asked, source);
    }
    (value.get("optional").and_then(Value::as_bool) != Some(true)).then_some(asked)
}

//! Which directories of a project are importable: as its build backend says, else as projects are laid out.

use toml::{Table, Value};

use super::project_tree::{PathKind, ProjectTree};
use super::reader::{Declared, texts};
use crate::model::visible::is_hidden;

/// Directories that hold the importable code of many projects, in the order in which they are looked for.
const USUAL: [&str; 2] = ["src", "python"];
/// The most directories.
const MOST: usize = 32;

/// A directory that a setting names.
struct Named {
    path: String,
    setting: &'static str,
}

/// Returns the importable directories, relative to the project, without duplicates. At least one.
pub(super) fn roots(declared: &Declared, tree: &dyn ProjectTree, notes: &mut Vec<String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for Named { path, setting } in named(declared, notes) {
        let Some(path) = inside(&path) else {
            notes.push(format!("{setting} names {path:?}, which is not a path below the project: left out"));
            continue;
        };
        match tree.kind(&path) {
            PathKind::Directory if found.contains(&path) => {}
            PathKind::Directory => found.push(path),
            PathKind::Outside => {
                notes.push(format!("{setting}: `{path}` leads out of the project: left out"));
            }
            PathKind::Absent | PathKind::File => {
                notes.push(format!("{setting}: `{path}` is not a directory: left out"));
            }
        }
    }
    if found.len() > MOST {
        notes.push(format!("more than {MOST} importable directories: the first {MOST} count"));
        found.truncate(MOST);
    }
    if found.is_empty() {
        found.push(usual(declared, tree, notes));
    }
    found
}

/// Returns a relative path in its plain form; `None`: it is absolute, leads above the project or is not a line of a file.
fn inside(path: &str) -> Option<String> {
    // Of the hidden characters U+2028 and U+2029 end a line of a `.pth` for Python 3.13, as control characters do.
    if path.starts_with('/') || path.contains(is_hidden) || path.contains(['\\', ':']) {
        return None;
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return None,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the directories that the settings of the build backend name.
fn named(declared: &Declared, notes: &mut Vec<String>) -> Vec<Named> {
    match declared.backend.as_deref() {
        Some("poetry" | "poetry_dynamic_versioning") => poetry(declared),
        Some("hatchling") => hatch(declared, notes),
        Some("uv_build") => {
            let setting = "`[tool.uv.build-backend] module-root`";
            one(declared, &["tool", "uv", "build-backend", "module-root"], setting)
        }
        Some("pdm") => {
            one(declared, &["tool", "pdm", "build", "package-dir"], "`[tool.pdm.build] package-dir`")
        }
        Some("maturin") => {
            one(declared, &["tool", "maturin", "python-source"], "`[tool.maturin] python-source`")
        }
        Some("scikit_build_core") => scikit_build(declared),
        Some("setuptools") | None => setuptools(declared, notes),
        Some(_) => Vec::new(),
    }
}

fn one(declared: &Declared, path: &[&str], setting: &'static str) -> Vec<Named> {
    let found = declared.at(path).and_then(Value::as_str);
    found.map(|path| Named { path: path.to_owned(), setting }).into_iter().collect()
}

/// `packages = [{ include = "vision", from = "src" }]`.
fn poetry(declared: &Declared) -> Vec<Named> {
    let list = declared.at(&["tool", "poetry", "packages"]).and_then(Value::as_array);
    let from = |item: &Value| {
        let path = item.get("from").and_then(Value::as_str).unwrap_or_default();
        Named { path: path.to_owned(), setting: "`[tool.poetry] packages`" }
    };
    list.into_iter().flatten().filter(|item| item.is_table()).map(from).collect()
}

/// `dev-mode-dirs`, which is for this; else the parents of `packages`, else `sources`.
fn hatch(declared: &Declared, notes: &mut Vec<String>) -> Vec<Named> {
    let build = ["tool", "hatch", "build"];
    let wheel = ["tool", "hatch", "build", "targets", "wheel"];
    let of = |key: &str| {
        let at = |path: &[&str]| declared.at(&[path, &[key]].concat());
        at(&wheel).or_else(|| at(&build))
    };
    let mode = texts(of("dev-mode-dirs"));
    if !mode.is_empty() {
        let setting = "`[tool.hatch.build] dev-mode-dirs`";
        return mode.into_iter().map(|path| Named { path, setting }).collect();
    }
    let packages = texts(of("packages"));
    if !packages.is_empty() {
        let setting = "`[tool.hatch.build.targets.wheel] packages`";
        return packages.iter().map(|path| Named { path: parent(path), setting }).collect();
    }
    let setting = "`[tool.hatch.build] sources`";
    match of("sources") {
        Some(Value::Array(list)) => {
            let texts = list.iter().filter_map(Value::as_str);
            texts.map(|path| Named { path: path.to_owned(), setting }).collect()
        }
        Some(Value::Table(table)) => mapped(table, false, setting, notes),
        _ => Vec::new(),
    }
}

/// `package-dir`, `packages.find.where`, and packages or modules by name, which are next to pyproject.toml.
fn setuptools(declared: &Declared, notes: &mut Vec<String>) -> Vec<Named> {
    let mut found = Vec::new();
    let directories = declared.at(&["tool", "setuptools", "package-dir"]).and_then(Value::as_table);
    if let Some(table) = directories {
        found.extend(mapped(table, true, "`[tool.setuptools] package-dir`", notes));
    }
    let setting = "`[tool.setuptools.packages.find] where`";
    for path in texts(declared.at(&["tool", "setuptools", "packages", "find", "where"])) {
        found.push(Named { path, setting });
    }
    let lists_names = ["packages", "py-modules"].iter().any(|key| {
        let listed = declared.at(&["tool", "setuptools", key]).and_then(Value::as_array);
        listed.is_some_and(|list| !list.is_empty())
    });
    if found.is_empty() && lists_names {
        found.push(Named { path: String::new(), setting: "`[tool.setuptools]`" });
    }
    found
}

/// `packages = ["src/vision"]` or `{ vision = "src/vision" }`.
fn scikit_build(declared: &Declared) -> Vec<Named> {
    let setting = "`[tool.scikit-build] wheel.packages`";
    let named = |path: &str| Named { path: parent(path), setting };
    match declared.at(&["tool", "scikit-build", "wheel", "packages"]) {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(named).collect(),
        Some(Value::Table(table)) => table.values().filter_map(Value::as_str).map(named).collect(),
        _ => Vec::new(),
    }
}

/// Directories by the package they are: `{ "" = "src", "vision" = "lib/vision" }`, or with path and package exchanged. One that
/// has another name than its package cannot be imported from where it is.
fn mapped(table: &Table, by_package: bool, setting: &'static str, notes: &mut Vec<String>) -> Vec<Named> {
    let mut found = Vec::new();
    for (key, value) in table {
        let Some(value) = value.as_str() else { continue };
        let (package, path) = if by_package { (key.as_str(), value) } else { (value, key.as_str()) };
        let end = package.replace('.', "/");
        let plain = path.trim_end_matches('/');
        if end.is_empty() {
            found.push(Named { path: plain.to_owned(), setting });
        } else if plain == end {
            found.push(Named { path: String::new(), setting });
        } else if let Some(above) = plain.strip_suffix(&format!("/{end}")) {
            found.push(Named { path: above.to_owned(), setting });
        } else {
            notes.push(format!(
                "{setting}: `{package}` is at `{path}`, which has another name: not importable without a build"
            ));
        }
    }
    found
}

fn parent(path: &str) -> String {
    path.trim_end_matches('/').rsplit_once('/').map(|(above, _)| above.to_owned()).unwrap_or_default()
}

/// The directory of a project that says nothing: the one that has the module of its name, else one that has modules.
fn usual(declared: &Declared, tree: &dyn ProjectTree, notes: &mut Vec<String>) -> String {
    let module = declared.name.as_ref().map(|name| name.to_lowercase().replace(['-', '.'], "_"));
    let has = |root: &str, module: &str| tree.modules(root).iter().any(|one| one.to_lowercase() == module);
    let is_there = |root: &str| tree.kind(root) == PathKind::Directory;
    for root in USUAL {
        if tree.kind(root) == PathKind::Outside {
            notes.push(format!("`{root}` leads out of the project: left out"));
        }
    }
    if let Some(module) = &module {
        let named = |root: &&&str| has(root, module);
        if let Some(root) = USUAL.iter().filter(|root| is_there(root)).find(named) {
            return (*root).to_owned();
        }
        if has("", module) {
            return String::new();
        }
    }
    let with_code = |root: &&&str| is_there(root) && !tree.modules(root).is_empty();
    USUAL.iter().find(with_code).map(|root| (*root).to_owned()).unwrap_or_default()
}

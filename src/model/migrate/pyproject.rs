//! pyproject.toml: `[project]`, its extras and groups, uv's sources and indexes, Poetry's tables.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::index_use::IndexUse;
use super::place::Origin;
use super::poetry;
use super::pythons::condition;
use super::reading::{Asked, Kind, Offered, PythonFact, Reading};
use super::requirement_line::{Line, line, normalized};
use super::requirements::{index as index_option, torch_backend, wheel_python};
use crate::model::compat::Matrix;
use crate::model::marker::may_hold;
use crate::model::versions::Machine;

/// Reads a pyproject.toml.
pub fn from_pyproject_toml(file: &str, text: &str, machine: Machine, matrix: &Matrix) -> Reading {
    let mut reading = Reading::of(file, Kind::Project);
    let table: Table = match toml::from_str(text) {
        Ok(table) => table,
        Err(error) => {
            let line = error.span().map(|span| text[..span.start].lines().count().max(1));
            let origin = Origin { file: file.to_owned(), line };
            reading.leave(origin, "the whole file", format!("not TOML: {}", error.message().trim()));
            return reading;
        }
    };
    let tool = |name: &str| table.get("tool")?.as_table()?.get(name)?.as_table();
    let mut project = Project { text, machine, indexes: IndexUse::default(), sources: BTreeMap::new() };
    if let Some(uv) = tool("uv") {
        project.uv_indexes(&mut reading, uv);
        project.unused_indexes(&mut reading, uv);
    }
    reading.is_readable_by_lock = true;
    if let Some(found) = table.get("project").and_then(Value::as_table) {
        project.standard(&mut reading, found);
    }
    if let Some(groups) = table.get("dependency-groups").and_then(Value::as_table) {
        project.groups(&mut reading, groups, tool("uv"));
    }
    if let Some(uv) = tool("uv") {
        project.uv_rest(&mut reading, uv);
    }
    if let Some(found) = tool("poetry") {
        poetry::read(&mut reading, found, text, &mut project.indexes);
    }
    if let Some(pixi) = tool("pixi") {
        super::conda::pixi(&mut reading, pixi, text, matrix);
    }
    if let Some(found) = tool("pdm") {
        for source in found.get("source").and_then(Value::as_array).into_iter().flatten() {
            let url = source.get("url").and_then(Value::as_str).unwrap_or_default();
            let origin = Origin::holding(file, text, url);
            index_option(&mut reading, &format!("source {url}"), url, &origin);
        }
    }
    if let Some(environments) = tool("hatch").and_then(|hatch| hatch.get("envs")).and_then(Value::as_table) {
        for (name, found) in environments {
            for key in ["dependencies", "extra-dependencies"] {
                let Some(list) = found.get(key) else { continue };
                let mut own = Reading::of(file, Kind::Project);
                let packages = project.list(&mut own, Some(list), Some(name));
                let origin = Origin::holding(file, text, &format!("hatch.envs.{name}"));
                reading.offered.push(offered(origin, name, "environment of hatch", packages, own));
            }
        }
    }
    dynamic_files(&mut reading, &table, text);
    reading
}

/// Reads a uv.toml, whose tables are those of `[tool.uv]`.
pub fn from_uv_toml(file: &str, text: &str, machine: Machine) -> Reading {
    let mut reading = Reading::of(file, Kind::Project);
    match toml::from_str::<Table>(text) {
        Ok(uv) => {
            let mut project =
                Project { text, machine, indexes: IndexUse::default(), sources: BTreeMap::new() };
            project.uv_indexes(&mut reading, &uv);
            project.uv_rest(&mut reading, &uv);
        }
        Err(error) => {
            let why = format!("not TOML: {}", error.message().trim());
            reading.leave(Origin::file(file), "the whole file", why);
        }
    }
    reading
}

/// What is installed only if somebody asks, with what its own packages say.
fn offered(origin: Origin, name: &str, what: &'static str, packages: Vec<Asked>, own: Reading) -> Offered {
    let Reading { cuda, left, indexes, .. } = own;
    Offered { cuda, left, indexes, ..Offered::of(origin, name, what, packages) }
}

/// `[tool.setuptools.dynamic] dependencies = { file = ["requirements.txt"] }`.
fn dynamic_files(reading: &mut Reading, table: &Table, text: &str) {
    let dynamic = || table.get("tool")?.get("setuptools")?.get("dynamic")?.get("dependencies")?.get("file");
    let files: Vec<String> = match dynamic() {
        Some(Value::String(file)) => vec![file.clone()],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    for file in files {
        reading.includes.push((Origin::holding(&reading.file, text, &file), file));
        reading.is_readable_by_lock = false;
    }
    let declared = table.get("project").and_then(|project| project.get("dynamic")).and_then(Value::as_array);
    let computed = declared.is_some_and(|list| list.iter().any(|one| one.as_str() == Some("dependencies")));
    if computed && reading.includes.is_empty() {
        let origin = Origin::holding(&reading.file, text, "dynamic");
        reading.leave(
            origin,
            "dynamic = [\"dependencies\"]",
            "computed by the build backend, which is not run",
        );
    }
}

/// Settings of uv that change what it installs.
const UNREAD: [&str; 8] = [
    "extra-build-dependencies",
    "no-build-isolation-package",
    "no-binary-package",
    "conflicts",
    "prerelease",
    "resolution",
    "dependency-metadata",
    "environments",
];

/// uv's source of a package: where it must come from, and for which machine.
#[derive(Clone)]
struct Source {
    index: Option<String>,
    /// `git`, `url`, `path`, `workspace` with its value.
    place: Option<(String, String)>,
    marker: Option<String>,
    /// The extra or group that it is for.
    only: Option<String>,
}

struct Project<'a> {
    text: &'a str,
    machine: Machine,
    indexes: IndexUse,
    sources: BTreeMap<String, Vec<Source>>,
}

impl Project<'_> {
    /// Names the indexes that uv asks for packages with a source alone, and that no source names.
    fn unused_indexes(&self, reading: &mut Reading, uv: &Table) {
        for index in uv.get("index").and_then(Value::as_array).into_iter().flatten() {
            let field = |key: &str| index.get(key).and_then(Value::as_str).unwrap_or_default();
            let is_explicit = index.get("explicit").and_then(Value::as_bool) == Some(true);
            let name = field("name");
            let is_used = self.sources.values().flatten().any(|source| source.index.as_deref() == Some(name));
            if is_explicit && !is_used {
                let origin = Origin::holding(&reading.file, self.text, field("url"));
                let why = "`explicit`, and no line of [tool.uv.sources] names it: no package comes from it";
                reading.leave(origin, &format!("index {name} {}", field("url")), why);
            }
        }
    }

    fn uv_indexes(&mut self, reading: &mut Reading, uv: &Table) {
        for index in uv.get("index").and_then(Value::as_array).into_iter().flatten() {
            let field = |key: &str| index.get(key).and_then(Value::as_str).unwrap_or_default();
            let explicit = index.get("explicit").and_then(Value::as_bool) == Some(true);
            self.indexes.declare(field("name"), field("url"), field("format") == "flat");
            if !explicit {
                let origin = Origin::holding(&reading.file, self.text, field("url"));
                index_option(reading, &format!("index {}", field("url")), field("url"), &origin);
            }
        }
        let pip = uv.get("pip").and_then(Value::as_table);
        for table in std::iter::once(uv).chain(pip) {
            for key in ["index-url", "extra-index-url", "find-links"] {
                let found = table.get(key);
                let list = found.and_then(Value::as_array).into_iter().flatten();
                for url in list.chain(found).filter_map(Value::as_str) {
                    let origin = Origin::holding(&reading.file, self.text, url);
                    index_option(reading, &format!("{key} {url}"), url, &origin);
                }
            }
            if let Some(backend) = table.get("torch-backend").and_then(Value::as_str) {
                let origin = Origin::holding(&reading.file, self.text, "torch-backend");
                torch_backend(reading, backend, &origin);
            }
        }
        for (name, value) in uv.get("sources").and_then(Value::as_table).into_iter().flatten() {
            let all: Vec<&Value> = value.as_array().map_or_else(|| vec![value], |list| list.iter().collect());
            let sources = all.into_iter().map(|one| {
                let field = |key: &str| one.get(key).and_then(Value::as_str).map(str::to_owned);
                let place =
                    ["git", "url", "path"].into_iter().find_map(|key| Some((key.to_owned(), field(key)?)));
                let workspace = one.get("workspace").map(|_| ("workspace".to_owned(), "true".to_owned()));
                Source {
                    index: field("index"),
                    place: place.or(workspace),
                    marker: field("marker"),
                    only: field("extra").or_else(|| field("group")),
                }
            });
            self.sources.insert(normalized(name), sources.collect());
        }
    }

    fn standard(&self, reading: &mut Reading, project: &Table) {
        if let Some(written) = project.get("requires-python").and_then(Value::as_str) {
            let origin = Origin::holding(&reading.file, self.text, "requires-python");
            match condition(written) {
                Some(versions) => reading.python.push(PythonFact {
                    origin,
                    versions,
                    by: format!("requires-python = \"{written}\""),
                }),
                None => reading.leave(origin, written, "not a condition on Python"),
            }
        }
        let packages = self.list(reading, project.get("dependencies"), None);
        reading.packages.extend(packages);
        for (name, list) in
            project.get("optional-dependencies").and_then(Value::as_table).into_iter().flatten()
        {
            let mut own = Reading::of(&reading.file, Kind::Project);
            let packages = self.list(&mut own, Some(list), Some(name));
            let origin = Origin::holding(&reading.file, self.text, name);
            reading.offered.push(Offered { is_group: true, ..offered(origin, name, "extra", packages, own) });
        }
    }

    /// Reads the groups: those that uv installs because the file says so are wanted, the rest are offered.
    fn groups(&self, reading: &mut Reading, groups: &Table, uv: Option<&Table>) {
        let default = uv.and_then(|uv| uv.get("default-groups"));
        let is_default = |name: &str| match default {
            Some(Value::String(all)) => all == "all",
            Some(Value::Array(list)) => list.iter().any(|one| one.as_str() == Some(name)),
            _ => false,
        };
        for name in groups.keys() {
            let mut own = Reading::of(&reading.file, Kind::Project);
            let packages = self.group(&mut own, groups, name, &mut Vec::new());
            let origin = Origin::holding(&reading.file, self.text, name);
            if is_default(name) {
                reading.is_readable_by_lock = false;
                reading.packages.extend(packages);
                reading.cuda.extend(own.cuda);
                reading.left.extend(own.left);
                reading.indexes.extend(own.indexes);
            } else if !reading
                .offered
                .iter()
                .any(|other| other.name == *name && other.packages.len() == packages.len())
            {
                reading.offered.push(Offered {
                    is_group: true,
                    ..offered(origin, name, "dependency group", packages, own)
                });
            }
        }
    }

    fn group(&self, reading: &mut Reading, groups: &Table, name: &str, seen: &mut Vec<String>) -> Vec<Asked> {
        if seen.iter().any(|one| one == name) {
            return Vec::new();
        }
        seen.push(name.to_owned());
        let list = groups.get(name);
        let mut packages = self.list(reading, list, Some(name));
        let members = list.and_then(Value::as_array).into_iter().flatten();
        for other in members.filter_map(|member| member.get("include-group")?.as_str()) {
            let found = groups.keys().find(|key| normalized(key) == normalized(other));
            if let Some(key) = found {
                packages.extend(self.group(reading, groups, key, seen));
            }
        }
        packages
    }

    /// Reads a list of requirements, each with uv's source.
    fn list(&self, reading: &mut Reading, list: Option<&Value>, inside: Option<&str>) -> Vec<Asked> {
        let texts = list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let mut found = Vec::new();
        for text in texts {
            let origin = Origin::holding(&reading.file, self.text, text);
            match line(text, &origin) {
                Line::Package(asked) => found.extend(self.with_source(reading, *asked, inside)),
                Line::Wheel { asked, python } => {
                    reading.is_readable_by_lock = false;
                    wheel_python(reading, python, &origin, text);
                    found.push(*asked);
                }
                Line::Not(why) => {
                    reading.is_readable_by_lock = false;
                    reading.leave(origin, text, why);
                }
            }
        }
        found
    }

    fn with_source(&self, reading: &mut Reading, mut asked: Asked, inside: Option<&str>) -> Option<Asked> {
        let Some(sources) = self.sources.get(&asked.name) else { return Some(asked) };
        for source in sources {
            if source.marker.as_deref().is_some_and(|marker| !may_hold(marker, self.machine)) {
                continue;
            }
            if source.only.as_deref().is_some_and(|only| Some(only) != inside) {
                continue;
            }
            reading.is_readable_by_lock = false;
            if let Some(name) = &source.index {
                self.indexes.used(reading, &mut asked, name);
                continue;
            }
            let Some((key, place)) = &source.place else { continue };
            let prefix = if key == "git" { "git+" } else { "" };
            match line(&format!("{} @ {prefix}{place}", asked.name), &asked.origin) {
                // A wheel by its address: the release is in its name.
                Line::Wheel { asked: named, python } => {
                    let is_alone = asked.marker.is_true() && source.marker.is_none();
                    wheel_python(reading, python.filter(|_| is_alone), &asked.origin, place);
                    asked.local = named.local.or(asked.local);
                    if asked.versions.is_empty() {
                        asked.versions = named.versions;
                    }
                }
                Line::Package(_) | Line::Not(_) if key == "workspace" || key == "path" => {
                    if key == "workspace" {
                        reading.needed_members.push(asked.name.clone());
                    }
                    let why = "a part of this repository: its code is mounted by `envforge shell`; its own requirements are read with `envforge init --from ITS-FOLDER`";
                    reading.leave(asked.origin.clone(), &asked.written, why);
                    return None;
                }
                Line::Package(_) => {}
                Line::Not(why) => {
                    reading.leave(
                        asked.origin.clone(),
                        &format!("{} ({key} = \"{place}\")", asked.written),
                        why,
                    );
                    return None;
                }
            }
        }
        Some(asked)
    }

    fn uv_rest(&self, reading: &mut Reading, uv: &Table) {
        for key in ["constraint-dependencies", "override-dependencies"] {
            let list: Vec<_> = uv.get(key).and_then(Value::as_array).into_iter().flatten().collect();
            for text in list.into_iter().filter_map(Value::as_str) {
                reading.is_readable_by_lock = false;
                let origin = Origin::holding(&reading.file, self.text, text);
                match line(text, &origin) {
                    Line::Package(asked) if key == "constraint-dependencies" => {
                        reading.constraints.push(*asked);
                    }
                    _ => reading.leave(
                        origin,
                        text,
                        format!("`{key}`: what packages declare is not overridden"),
                    ),
                }
            }
        }
        if let Some(workspace) =
            uv.get("workspace").and_then(|found| found.get("members")).and_then(Value::as_array)
        {
            reading.members.extend(workspace.iter().filter_map(Value::as_str).map(str::to_owned));
        }
        if let Some(list) = uv.get("dev-dependencies") {
            let mut own = Reading::of(&reading.file, Kind::Project);
            let packages = self.list(&mut own, Some(list), Some("dev"));
            let origin = Origin::holding(&reading.file, self.text, "dev-dependencies");
            reading.offered.push(offered(origin, "dev", "dependency group", packages, own));
        }
        for key in UNREAD {
            if uv.contains_key(key) {
                let origin = Origin::holding(&reading.file, self.text, key);
                let why = match key {
                    "conflicts" => "extras that exclude each other: one of them is taken",
                    "extra-build-dependencies" | "no-build-isolation-package" | "no-binary-package" => {
                        "builds from source are allowed by name: `allow-source = [{ name = \"…\", build = [\"…\"] }]`"
                    }
                    _ => "a setting of uv that is not read",
                };
                reading.leave(origin, &format!("[tool.uv] {key}"), why);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Reading {
        from_pyproject_toml("pyproject.toml", text, Machine::X86_64, crate::model::compat::embedded())
    }

    fn requirements(packages: &[Asked]) -> Vec<String> {
        packages.iter().map(Asked::requirement).collect()
    }

    #[test]
    fn standard_project_gives_packages_python_and_offers() {
        let reading = read(
            "[project]\nrequires-python = \">=3.10\"\ndependencies = [\"torch==2.7.1\", \"numpy<2\"]\n[project.optional-dependencies]\ngpu = [\"flash-attn\"]\n[dependency-groups]\ndev = [\"pytest\", {include-group = \"lint\"}]\nlint = [\"ruff\"]\n",
        );
        assert_eq!(requirements(&reading.packages), ["torch==2.7.1", "numpy<2"]);
        assert_eq!(reading.python[0].versions.to_string(), ">=3.10");
        let offered: Vec<_> =
            reading.offered.iter().map(|one| (one.name.as_str(), one.packages.len())).collect();
        assert_eq!(offered, [("gpu", 1), ("dev", 2), ("lint", 1)]);
        assert!(reading.is_readable_by_lock);
    }

    #[test]
    fn sources_of_uv_say_cuda_index_and_what_cannot_be_taken() {
        let reading = read(
            r#"
[project]
dependencies = ["torch", "apex", "lib", "own", "deep"]
[tool.uv.sources]
torch = [{ index = "pt", marker = "sys_platform == 'linux'" }, { index = "win", marker = "sys_platform == 'win32'" }]
apex = { index = "vendor" }
lib = { git = "https://h/lib.git" }
own = { workspace = true }
deep = { url = "https://h/deep-1.2+cu12-cp310-cp310-linux_x86_64.whl" }
[[tool.uv.index]]
name = "pt"
url = "https://download.pytorch.org/whl/cu126"
explicit = true
[[tool.uv.index]]
name = "win"
url = "https://download.pytorch.org/whl/cu118"
explicit = true
[[tool.uv.index]]
name = "vendor"
url = "https://wheels.example.com/simple"
explicit = true
"#,
        );
        assert_eq!(requirements(&reading.packages), ["torch", "apex", "deep==1.2"]);
        let cuda: Vec<_> = reading.cuda.iter().map(|fact| fact.cuda.to_string()).collect();
        assert_eq!(cuda, ["cu126"]);
        assert_eq!(reading.packages[1].index.as_deref(), Some("vendor"));
        assert_eq!(reading.indexes[0].url, "https://wheels.example.com/simple");
        assert_eq!(reading.left.len(), 2, "{:?}", reading.left);
        assert!(!reading.is_readable_by_lock);
    }

    #[test]
    fn groups_that_uv_installs_are_wanted() {
        let reading = read(
            "[project]\ndependencies = [\"einops\"]\n[dependency-groups]\ncu = [\"torch==2.7.1+cu128\"]\n[tool.uv]\ndefault-groups = \"all\"\n",
        );
        assert_eq!(requirements(&reading.packages), ["einops", "torch==2.7.1"]);
        assert_eq!(reading.packages[1].local.as_deref(), Some("cu128"));
    }

    #[test]
    fn poetry_projects_are_read() {
        let reading = read(
            r#"
[tool.poetry.dependencies]
python = ">=3.11,<3.14"
torch = {version = "^2.6.0+cu126", source = "pytorch"}
cupy-cuda12x = "^13.4.0"
lib = {git = "https://h/lib.git"}
plot = {version = "*", optional = true}
[tool.poetry.group.dev.dependencies]
pytest = "^8.0"
[[tool.poetry.source]]
name = "pytorch"
url = "https://download.pytorch.org/whl/cu126"
priority = "explicit"
"#,
        );
        assert_eq!(requirements(&reading.packages), ["cupy-cuda12x>=13.4.0,<14", "torch>=2.6.0,<3"]);
        assert_eq!(reading.packages[1].local.as_deref(), Some("cu126"));
        assert_eq!(reading.python[0].versions.to_string(), ">=3.11, <3.14");
        assert_eq!((reading.offered.len(), reading.left.len()), (1, 2));
    }

    #[test]
    fn tables_of_pixi_are_read_with_the_project() {
        let reading = read(
            "[project]\nrequires-python = \">=3.11\"\ndependencies = [\"timm\"]\n[tool.pixi.workspace]\nplatforms = [\"linux-64\"]\n[tool.pixi.dependencies]\npytorch-gpu = \"2.6.*\"\ncuda-version = \"12.6.*\"\n",
        );
        assert_eq!(requirements(&reading.packages), ["timm", "torch==2.6.*"]);
        assert_eq!(reading.cuda[0].cuda.to_string(), "cu126");
        assert!(!reading.is_readable_by_lock);
    }

    #[test]
    fn extras_of_poetry_are_offered_and_what_is_in_none_is_told() {
        let reading = read(
            "[tool.poetry.dependencies]\ntorch = \"^2.4\"\nflash-attn = { version = \"2.6.3\", optional = true }\nplot = { version = \"*\", optional = true }\n[tool.poetry.extras]\nfast = [\"flash_attn\"]\n",
        );
        assert_eq!(requirements(&reading.packages), ["torch>=2.4,<3"]);
        assert_eq!(
            (reading.offered[0].what, requirements(&reading.offered[0].packages)),
            ("extra", vec!["flash-attn==2.6.3".to_owned()])
        );
        assert_eq!(reading.left[0].written, "plot = \"*\"");
    }

    #[test]
    fn broken_file_is_one_line() {
        let reading = read("[project\n");
        assert!(reading.left[0].why.starts_with("not TOML"), "{:?}", reading.left);
        assert!(!reading.says_something());
    }
}

//! uv.lock: its packages as a graph, and those that `uv sync` installs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pep508_rs::ExtraName;
use serde::Deserialize;
use toml::Value;

use super::lock_selection::{
    LockSelection, Mismatches, Refused, SelectedPackage, extra_names, holds_here, normalized, sha256_of,
};

/// A package has at most this many entries for a target: each version is one, and so is each source.
const MOST_FORKS: usize = 64;

/// A uv.lock.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct UvLock {
    pub(super) requires_python: Option<String>,
    #[serde(default)]
    supported_markers: Vec<String>,
    #[serde(default)]
    manifest: Manifest,
    #[serde(default)]
    pub(super) package: Vec<UvPackage>,
}

/// What of a workspace is in no package.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Manifest {
    #[serde(default)]
    members: Vec<String>,
    #[serde(default)]
    dependency_groups: BTreeMap<String, Vec<Dependency>>,
}

/// A package of a uv.lock.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct UvPackage {
    pub(super) name: String,
    pub(super) version: Option<String>,
    #[serde(default)]
    pub(super) source: toml::Table,
    #[serde(default, rename = "resolution-markers")]
    pub(super) markers: Vec<String>,
    #[serde(default)]
    dependencies: Vec<Dependency>,
    #[serde(default)]
    optional_dependencies: BTreeMap<String, Vec<Dependency>>,
    #[serde(default)]
    dev_dependencies: BTreeMap<String, Vec<Dependency>>,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    wheels: Vec<UvFile>,
    sdist: Option<UvFile>,
}

/// A file of a package.
#[derive(Deserialize)]
struct UvFile {
    /// `sha256:…`.
    hash: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Metadata {
    #[serde(default)]
    provides_extras: Vec<String>,
    #[serde(default)]
    requires_dev: toml::Table,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    version: Option<String>,
    source: Option<toml::Table>,
    marker: Option<String>,
    #[serde(default, alias = "extras")]
    extra: Vec<String>,
}

impl UvLock {
    /// Reads a uv.lock, or returns why it cannot be read.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        // The version decides what else there is.
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let why = |error: toml::de::Error| format!("not a lock of uv: {}", error.message().trim());
        match toml::from_str::<Versioned>(text).map_err(why)?.version {
            1 => toml::from_str(text).map_err(why),
            other => Err(format!("format {other} of uv's lock: this envforge reads format 1")),
        }
    }

    /// The packages of the project: the one at the lock, else every member of the workspace.
    fn roots(&self) -> Vec<usize> {
        let at_lock = |package: &UvPackage| {
            let path = package.source.get("editable").or_else(|| package.source.get("virtual"));
            path.and_then(Value::as_str) == Some(".")
        };
        let all = || self.package.iter().enumerate();
        let roots: Vec<usize> = all().filter(|(_, one)| at_lock(one)).map(|(at, _)| at).collect();
        if !roots.is_empty() {
            return roots;
        }
        all().filter(|(_, one)| self.manifest.members.contains(&one.name)).map(|(at, _)| at).collect()
    }
}

impl UvPackage {
    /// Why it has no release of an index.
    pub(super) fn left(&self) -> Option<&'static str> {
        let has = |key: &str| self.source.contains_key(key);
        if has("git") {
            return Some("it comes from a repository");
        }
        let is_archive = self.source.get("url").and_then(Value::as_str).is_some_and(|url| !is_wheel(url));
        let local = ["path", "directory", "editable", "virtual"].into_iter().any(has);
        (local || is_archive).then_some("it comes from a path or an address")
    }
}

/// Whether an address is that of a wheel, whose name says its release.
pub(super) fn is_wheel(url: &str) -> bool {
    let path = url.split(['#', '?']).next().unwrap_or_default();
    camino::Utf8Path::new(path).extension() == Some("whl")
}

/// Returns the packages that `uv sync` with those extras and groups installs.
pub(super) fn selected(text: &str, selection: &LockSelection<'_>) -> Result<Vec<SelectedPackage>, Refused> {
    let lock = UvLock::parse(text).map_err(Refused::Unreadable)?;
    let roots = lock.roots();
    if roots.is_empty() && lock.manifest.dependency_groups.is_empty() {
        return Err(Refused::Unreadable("it names no project".to_owned()));
    }
    let (mut extras, mut groups) = (BTreeSet::new(), BTreeSet::new());
    for root in roots.iter().map(|at| &lock.package[*at]) {
        extras.extend(root.optional_dependencies.keys().chain(&root.metadata.provides_extras).cloned());
        groups.extend(root.dev_dependencies.keys().chain(root.metadata.requires_dev.keys()).cloned());
    }
    groups.extend(lock.manifest.dependency_groups.keys().cloned());
    let mut mismatches = Mismatches::default();
    mismatches.python(lock.requires_python.as_deref(), selection);
    mismatches.environments(&lock.supported_markers, selection);
    mismatches.names("extra", selection.extras, &extras);
    mismatches.names("group", selection.groups, &groups);
    mismatches.check()?;
    let wanted: BTreeSet<String> = selection.groups.iter().map(|name| normalized(name)).collect();
    let groups = wanted.into_iter().chain(default_groups(selection.pyproject, &groups)).collect();
    let extras = selection.extras.iter().map(|name| normalized(name)).collect();
    Ok(Walk::new(&lock, selection, (extras, groups), &roots)?.packages(&roots))
}

/// The groups that `uv sync` installs without being asked: `dev`, unless the project says otherwise.
fn default_groups(pyproject: Option<&toml::Table>, known: &BTreeSet<String>) -> Vec<String> {
    let written = pyproject.and_then(|table| table.get("tool")?.get("uv")?.get("default-groups"));
    let names = match written {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(normalized).collect(),
        Some(Value::String(text)) if text == "all" => known.iter().cloned().collect(),
        _ => vec!["dev".to_owned()],
    };
    names.into_iter().filter(|name| known.contains(name)).collect()
}

/// A walk from the project to everything that it needs.
struct Walk<'a> {
    lock: &'a UvLock,
    selection: &'a LockSelection<'a>,
    extras: BTreeSet<String>,
    groups: BTreeSet<String>,
    /// The packages of this target, by name.
    by_name: BTreeMap<&'a str, Vec<usize>>,
    /// The extras and groups of the project as uv writes them into markers of forks that exclude each other.
    active: Vec<ExtraName>,
}

impl<'a> Walk<'a> {
    fn new(
        lock: &'a UvLock,
        selection: &'a LockSelection<'a>,
        (extras, groups): (BTreeSet<String>, BTreeSet<String>),
        roots: &[usize],
    ) -> Result<Self, Refused> {
        let mut walk = Self { lock, selection, extras, groups, by_name: BTreeMap::new(), active: Vec::new() };
        for &at in roots {
            walk.activate(&lock.package[at].name);
        }
        for (at, package) in lock.package.iter().enumerate() {
            let holds = |text: &String| holds_here(Some(text), selection, &walk.active);
            if package.markers.is_empty() || package.markers.iter().any(holds) {
                walk.by_name.entry(&package.name).or_default().push(at);
            }
        }
        match walk.by_name.iter().find(|(_, all)| all.len() > MOST_FORKS) {
            None => Ok(walk),
            Some((name, all)) => Err(Refused::Unreadable(format!(
                "it has `{name}` {} times: at most {MOST_FORKS} are read",
                all.len()
            ))),
        }
    }

    fn packages(self, roots: &[usize]) -> Vec<SelectedPackage> {
        let lock = self.lock;
        let mut open: VecDeque<(usize, String)> = VecDeque::new();
        let mut first: Vec<&Dependency> = Vec::new();
        for &at in roots {
            let groups = &lock.package[at].dev_dependencies;
            open.push_back((at, String::new()));
            open.extend(self.extras.iter().map(|extra| (at, extra.clone())));
            first.extend(self.groups.iter().filter_map(|name| groups.get(name)).flatten());
        }
        let of_workspace = self.groups.iter().filter_map(|name| lock.manifest.dependency_groups.get(name));
        first.extend(of_workspace.flatten());
        for dependency in first {
            self.follow(dependency, &mut open);
        }
        let mut seen: BTreeSet<(usize, String)> = BTreeSet::new();
        while let Some((at, extra)) = open.pop_front() {
            if !seen.insert((at, extra.clone())) {
                continue;
            }
            let package = &lock.package[at];
            let dependencies = match extra.as_str() {
                "" => Some(&package.dependencies),
                extra => package.optional_dependencies.get(extra),
            };
            for dependency in dependencies.into_iter().flatten() {
                self.follow(dependency, &mut open);
            }
        }
        let found: BTreeSet<usize> = seen.into_iter().map(|(at, _)| at).collect();
        let members = &lock.manifest.members;
        let others = found.into_iter().filter(|at| !roots.contains(at)).map(|at| &lock.package[at]);
        others.filter(|package| !members.contains(&package.name)).map(selected_package).collect()
    }

    /// Makes markers of forks hold for what is selected of a project: `extra-6-vision-gpu`, `group-6-vision-dev`.
    fn activate(&mut self, name: &str) {
        let encoded = |kind: &str, one: &String| format!("{kind}-{}-{name}-{one}", name.len());
        let extras = self.extras.iter().map(|one| encoded("extra", one));
        let groups = self.groups.iter().map(|one| encoded("group", one));
        let project = format!("project-{}-{name}", name.len());
        let all: Vec<String> = extras.chain(groups).chain([project]).collect();
        self.active.extend(extra_names(&all));
    }

    /// Opens the packages that a dependency leads to.
    fn follow(&self, dependency: &Dependency, open: &mut VecDeque<(usize, String)>) {
        if !holds_here(dependency.marker.as_deref(), self.selection, &self.active) {
            return;
        }
        for &at in self.by_name.get(dependency.name.as_str()).into_iter().flatten() {
            let package = &self.lock.package[at];
            let is_version = |version: &String| package.version.as_ref() == Some(version);
            if dependency.version.as_ref().is_none_or(is_version)
                && dependency.source.as_ref().is_none_or(|source| package.source == *source)
            {
                open.push_back((at, String::new()));
                open.extend(dependency.extra.iter().map(|extra| (at, extra.clone())));
            }
        }
    }
}

fn selected_package(package: &UvPackage) -> SelectedPackage {
    let files = package.wheels.iter().chain(&package.sdist);
    SelectedPackage {
        name: package.name.clone(),
        version: package.version.clone(),
        left: package.left(),
        hashes: files.filter_map(|file| sha256_of(file.hash.as_deref()?)).collect(),
    }
}

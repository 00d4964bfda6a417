//! The libraries that an extension meets, and the loader's walk through them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::finding::Finding;
use super::preloaded::{TorchRelease, is_preloaded};
use super::table::{GLOBAL_DEPENDENCIES, Table};

/// Where a library of a [`World`] is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In site-packages: by the path that another library names, or because it is loaded.
    Packages,
    /// In a folder that the loader searches by itself.
    System,
}

/// The libraries that an extension meets after `import torch`.
#[derive(Debug, Default)]
pub struct World {
    tables: Vec<Table>,
    /// Libraries of the system by file name, and by soname.
    system: BTreeMap<String, usize>,
    /// Libraries of packages by normalised path.
    paths: BTreeMap<String, usize>,
    /// What is loaded, in order.
    loaded: Vec<usize>,
    /// What every library sees, in order: the interpreter and what was loaded for all.
    global: Vec<usize>,
}

/// The longest list of symbols that is worth reporting of one library.
const REPORTED: usize = 20;

impl World {
    /// Adds a library.
    pub fn add(&mut self, place: Place, table: Table) {
        let index = self.tables.len();
        match place {
            Place::System => {
                // The first folder wins, as the loader's does.
                self.system.entry(table.file().to_owned()).or_insert(index);
                if let Some(soname) = table.soname.clone() {
                    self.system.entry(soname).or_insert(index);
                }
            }
            Place::Packages => drop(self.paths.insert(normalised(&table.path), index)),
        }
        self.tables.push(table);
    }

    /// The libraries.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Marks the libraries that a process has loaded before, each with what it needs: `is_root` names those that are loaded by
    /// themselves, `is_global` those of them whose symbols every later library sees.
    pub fn load(&mut self, is_root: impl Fn(&Table) -> bool, is_global: impl Fn(&Table) -> bool) {
        // The global ones first: the interpreter has loaded its own libraries before any other.
        for wanted in [true, false] {
            for index in 0..self.tables.len() {
                let table = &self.tables[index];
                if !is_root(table) || is_global(table) != wanted {
                    continue;
                }
                let (closure, _) = self.closure(index);
                for one in closure {
                    if !self.loaded.contains(&one) {
                        self.loaded.push(one);
                    }
                    if wanted && !self.global.contains(&one) {
                        self.global.push(one);
                    }
                }
            }
        }
    }

    /// Marks what an interpreter has loaded after `import torch`, for that release of torch.
    pub fn import_torch(&mut self, torch: TorchRelease, is_interpreter: impl Fn(&Table) -> bool) {
        let is_global = |one: &Table| {
            is_interpreter(one) || one.path.strip_prefix("torch/lib/") == Some(GLOBAL_DEPENDENCIES)
        };
        let is_root = |one: &Table| {
            is_global(one) || one.path.starts_with("torch/_C.") || is_preloaded(torch, &one.path)
        };
        self.load(is_root, is_global);
    }

    /// The reasons for which the loader refuses a library of this world; none if it loads.
    pub fn audit(&self, path: &str) -> Vec<Finding> {
        let Some(&root) = self.paths.get(&normalised(path)) else { return Vec::new() };
        let found = self.tables[root].machine;
        let running = self.global.first().or(self.loaded.first());
        let wanted = running.map_or(found, |one| self.tables[*one].machine);
        if found != wanted {
            let library = self.tables[root].path.clone();
            return vec![Finding::OtherProcessor { library, found, wanted }];
        }
        let (closure, mut findings) = self.closure(root);
        let scope: Vec<usize> = self.global.iter().chain(&closure).copied().collect();
        let system: BTreeSet<usize> = self.system.values().copied().collect();
        let is_new = |index: &usize| !self.loaded.contains(index) && !system.contains(index);
        for index in closure.iter().filter(|index| **index == root || is_new(index)) {
            let versions = self.missing_versions(*index, &closure);
            let is_explained = |finding: &Finding| {
                let Finding::MissingSymbol { symbol, .. } = finding else { return false };
                symbol.split_once('@').is_some_and(|(_, of)| versions.iter().any(|one| one.is_of_version(of)))
            };
            let symbols = self.missing_symbols(*index, &scope).into_iter().filter(|one| !is_explained(one));
            findings.extend(symbols.collect::<Vec<_>>());
            findings.extend(versions);
        }
        let unique: BTreeSet<Finding> = findings.into_iter().collect();
        unique.into_iter().collect()
    }

    /// A library and all that it needs, breadth first as the loader does it, and what is missing.
    fn closure(&self, root: usize) -> (Vec<usize>, Vec<Finding>) {
        let (mut found, mut findings, mut queue) =
            (vec![root], Vec::new(), VecDeque::from([(root, Vec::new())]));
        let names = |index: usize| {
            let table = &self.tables[index];
            [Some(table.file()), table.soname.as_deref()].into_iter().flatten().map(move |name| (name, index))
        };
        let mut known: BTreeMap<&str, usize> = names(root).collect();
        // An RPATH holds for the needs of its needs, too: each library carries those on its way.
        while let Some((index, inherited)) = queue.pop_front() {
            let table = &self.tables[index];
            let passed: Vec<String> = expanded(table, &table.rpath).chain(inherited).collect();
            let folders = if table.runpath.is_empty() {
                passed.clone()
            } else {
                expanded(table, &table.runpath).collect()
            };
            for soname in &table.needed {
                if known.contains_key(soname.as_str()) {
                    continue;
                }
                match self.find(soname, &folders, table.machine) {
                    Some(next) if found.contains(&next) => {}
                    Some(next) => {
                        for (name, index) in names(next) {
                            known.entry(name).or_insert(index);
                        }
                        found.push(next);
                        queue.push_back((next, passed.clone()));
                    }
                    None => {
                        let (soname, needed_by) = (soname.clone(), table.path.clone());
                        findings.push(Finding::MissingLibrary { soname, needed_by });
                    }
                }
            }
        }
        (found, findings)
    }

    /// The library that a soname leads to: one that is loaded, one in those folders, one of the system.
    fn find(&self, soname: &str, folders: &[String], machine: u16) -> Option<usize> {
        let loaded = self.loaded.iter().copied().find(|one| self.tables[*one].is_called(soname));
        let by_path = || {
            let mut paths = folders.iter().map(|folder| normalised(&format!("{folder}/{soname}")));
            paths.find_map(|path| self.paths.get(&path).copied())
        };
        let of_system = || self.system.get(soname).copied();
        let fits = |index: &usize| self.tables[*index].machine == machine;
        loaded.or_else(|| by_path().filter(fits)).or_else(|| of_system().filter(fits))
    }

    /// The versions that none of the libraries of that name has: one that is loaded, or that comes along.
    fn missing_versions(&self, index: usize, closure: &[usize]) -> Vec<Finding> {
        let table = &self.tables[index];
        let mut findings = Vec::new();
        for need in &table.version_needs {
            let mut all = self.loaded.iter().chain(closure).map(|one| &self.tables[*one]);
            let Some(other) = all.find(|one| one.is_called(&need.library)) else { continue };
            let definitions = &other.version_definitions;
            // The loader lets a library pass that defines no version at all.
            if definitions.is_empty() || definitions.contains(&need.version) {
                continue;
            }
            findings.push(Finding::MissingVersion {
                library: need.library.clone(),
                version: need.version.clone(),
                newest: newest(definitions, &need.version),
                needed_by: table.path.clone(),
            });
        }
        findings
    }

    fn missing_symbols(&self, index: usize, scope: &[usize]) -> Vec<Finding> {
        let table = &self.tables[index];
        let is_missing =
            |symbol: &&String| !scope.iter().any(|library| self.tables[*library].answers(symbol));
        let missing = table.undefined.iter().filter(is_missing).take(REPORTED);
        missing
            .map(|symbol| {
                let (symbol, needed_by) = (symbol.clone(), table.path.clone());
                let mut others = self.paths.values().map(|one| &self.tables[*one]);
                if let Some(other) = others.find(|one| one.answers(&symbol)) {
                    return Finding::SymbolOfAnother { symbol, library: other.path.clone(), needed_by };
                }
                Finding::MissingSymbol { near: self.near(&symbol, index, scope), symbol, needed_by }
            })
            .collect()
    }

    /// A symbol of the same function with other arguments or the other C++ ABI, and the library that has it: the one with the
    /// longest common beginning, of all libraries but the asking one.
    fn near(&self, symbol: &str, asking: usize, scope: &[usize]) -> Option<(String, String)> {
        let stem = stem(symbol)?;
        let others = scope.iter().filter(|index| **index != asking).map(|index| &self.tables[*index]);
        let near = others.flat_map(|table| {
            let from = table.exports.range(stem.to_owned()..).take_while(|one| one.starts_with(stem));
            from.filter(|one| !one.contains('@')).map(move |one| (one, table))
        });
        let (near, table) = near.max_by_key(|(one, _)| shared(one, symbol))?;
        Some((near.clone(), table.file().to_owned()))
    }
}

/// The name of a mangled C++ function with its scopes, without its arguments.
fn stem(symbol: &str) -> Option<&str> {
    let start = symbol.strip_prefix("_ZNK").or_else(|| symbol.strip_prefix("_ZN"));
    let (mut rest, is_nested) = match start {
        Some(rest) => (rest, true),
        None => (symbol.strip_prefix("_Z")?, false),
    };
    let mut parts = 0;
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let Ok(length) = rest[..digits].parse::<usize>() else { break };
        rest = rest.get(digits..)?.get(length..)?;
        parts += 1;
        if !is_nested {
            break;
        }
    }
    // Constructors and destructors are functions of their own.
    let kind = usize::from(is_nested && rest.starts_with(['C', 'D']));
    (parts > 0).then(|| &symbol[..symbol.len() - rest.len() + kind])
}

/// The number of first bytes that two names share.
fn shared(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
}

/// The newest of the versions whose name begins as this one's.
fn newest(definitions: &BTreeSet<String>, version: &str) -> Option<String> {
    let (family, _) = version.split_once('_')?;
    let numbers = |one: &str| -> Option<Vec<u32>> {
        let (of, numbers) = one.split_once('_')?;
        (of == family).then(|| numbers.split('.').map(str::parse).collect::<Result<_, _>>().ok())?
    };
    definitions.iter().filter(|one| numbers(one).is_some()).max_by_key(|one| numbers(one)).cloned()
}

/// The folders that a library names, `$ORIGIN` expanded.
fn expanded<'a>(
    table: &'a Table,
    folders: impl IntoIterator<Item = &'a String>,
) -> impl Iterator<Item = String> {
    let origin = table.path.rsplit_once('/').map_or(".", |(folder, _)| folder);
    folders.into_iter().map(move |one| one.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", origin))
}

/// A path without `.`, double slashes and `..`, but for those that lead out of site-packages.
fn normalised(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            ".." if path.starts_with('/') => {}
            other => parts.push(other),
        }
    }
    let joined = parts.join("/");
    if path.starts_with('/') { format!("/{joined}") } else { joined }
}

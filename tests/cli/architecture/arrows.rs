//! From paths to arrows: which file uses which, whatever way the path takes.

use std::collections::BTreeSet;

use super::modules::{Module, Modules, PathText};

/// One file uses another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrow {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) line: usize,
    /// Whether a name is only passed on by `pub use`, and not used.
    pub(super) is_passed_on: bool,
}

/// Where a path ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At a module.
    Module(usize),
    /// At an item of a module.
    Item(usize),
}

impl Place {
    fn module(self) -> usize {
        match self {
            Place::Module(index) | Place::Item(index) => index,
        }
    }
}

/// A resolved path: its end, and the modules whose `use` it went through.
type Resolved = (Place, Vec<usize>);

/// How many `use` a path may go through.
const MOST_HOPS: usize = 16;

/// Every arrow between files, outside tests.
pub(super) fn arrows(modules: &Modules) -> Vec<Arrow> {
    let mut found = BTreeSet::new();
    for (index, module) in modules.all.iter().enumerate().filter(|(_, module)| !module.is_test) {
        module_arrows(modules, index, module, &mut found);
    }
    found.into_iter().collect()
}

fn module_arrows(modules: &Modules, index: usize, module: &Module, found: &mut BTreeSet<Arrow>) {
    let mut add = |to: &str, line: usize, is_passed_on: bool| {
        if to != module.file {
            found.insert(Arrow { from: module.file.clone(), to: to.to_owned(), line, is_passed_on });
        }
    };
    let mut add_resolved = |(place, hops): Resolved, line, is_passed_on| {
        let end = place.module();
        add(&modules.all[end].file, line, is_passed_on);
        // A way through another room is an arrow to that room too.
        for hop in hops.into_iter().filter(|hop| !is_above(modules, *hop, end)) {
            add(&modules.all[hop].file, line, is_passed_on);
        }
    };
    for import in &module.imports {
        let Some(resolved) = resolve(modules, index, &import.path, 0) else { continue };
        let line = import.path.line;
        if let Some(name) = &import.name {
            add_resolved(resolved, line, import.is_public && !module.idents.contains_key(name));
            continue;
        }
        // `*`: every name of it that is used here, else the module itself.
        let mut used = false;
        if let Place::Module(globbed) = resolved.0 {
            for (name, line) in &module.idents {
                if let Some(resolved) = lookup(modules, globbed, name, 0) {
                    add_resolved(resolved, *line, false);
                    used = true;
                }
            }
        }
        if !used {
            add_resolved(resolved, line, import.is_public);
        }
    }
    for path in &module.paths {
        if let Some(resolved) = resolve(modules, index, path, 0) {
            add_resolved(resolved, path.line, false);
        }
    }
    for (file, line) in &module.file_references {
        add(file, *line, false);
    }
    for (name, line) in &module.macro_calls {
        if let Some(file) = modules.macros.get(name) {
            add(file, *line, false);
        }
    }
}

/// Whether one module is the other or above it.
fn is_above(modules: &Modules, above: usize, below: usize) -> bool {
    std::iter::successors(Some(below), |at| modules.all[*at].parent).any(|at| at == above)
}

/// Follows a path from a module; `None` if it leads to another crate.
fn resolve(modules: &Modules, from: usize, path: &PathText, hops: usize) -> Option<Resolved> {
    let mut segments = path.segments.iter().map(String::as_str).peekable();
    let mut at = from;
    let first = *segments.peek()?;
    let is_library =
        |name: &str| modules.library.as_ref().filter(|(library, _)| library == name).map(|(_, at)| *at);
    if path.is_absolute {
        at = is_library(first)?;
        segments.next();
    } else if first == "crate" {
        at = modules.all[from].root;
        segments.next();
    } else if first == "self" || first == "super" {
        while let Some(word @ ("self" | "super")) = segments.peek().copied() {
            at = if word == "super" { modules.all[at].parent? } else { at };
            segments.next();
        }
    } else if lookup(modules, from, first, hops).is_none() {
        at = is_library(first)?;
        segments.next();
    }
    let mut through = Vec::new();
    for name in segments {
        match lookup(modules, at, name, hops) {
            Some((Place::Module(next), more)) => {
                through.extend(more);
                at = next;
            }
            Some((item, more)) => {
                through.extend(more);
                return Some((item, through));
            }
            // Made by a macro, or a name of another crate that is passed on.
            None => return Some((Place::Item(at), through)),
        }
    }
    Some((Place::Module(at), through))
}

/// Finds a name in a module: a child, an item, or what one of its `use` stands for.
fn lookup(modules: &Modules, module: usize, name: &str, hops: usize) -> Option<Resolved> {
    let here = &modules.all[module];
    if let Some(child) = here.children.get(name) {
        return Some((Place::Module(*child), Vec::new()));
    }
    if here.items.contains(name) {
        return Some((Place::Item(module), Vec::new()));
    }
    if hops > MOST_HOPS {
        return None;
    }
    let named = here.imports.iter().filter(|import| import.name.as_deref() == Some(name));
    for import in named {
        // `use a::a;` and `use name;` stand for what is outside this module.
        if import.path.segments.len() == 1 && !import.path.is_absolute && import.path.segments[0] == name {
            continue;
        }
        if let Some((place, mut through)) = resolve(modules, module, &import.path, hops + 1) {
            through.push(module);
            return Some((place, through));
        }
    }
    let globs = here.imports.iter().filter(|import| import.name.is_none());
    for import in globs {
        if let Some((Place::Module(globbed), _)) = resolve(modules, module, &import.path, hops + 1)
            && let Some((place, mut through)) = lookup(modules, globbed, name, hops + 1)
        {
            through.push(module);
            return Some((place, through));
        }
    }
    None
}
